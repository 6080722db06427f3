"""What a person means by a name: ids, their ends, and counting back from the newest."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from stored_runs import BEGIN, DAY, case, control_run, result, run

from torchgauge.errors import UnknownNameError, UsageError
from torchgauge.results.lookup import (
    find_results,
    resolve,
    resolve_any_run,
    resolve_comparison,
    resolve_either,
    resolve_run,
    resumed_folder,
)
from torchgauge.results.store import Store

KNOWN = ("20260101T000000Z-aaaa1111", "20260102T000000Z-bbbb2222", "20260103T000000Z-cccc2222")


@pytest.fixture
def full(tmp_path) -> Store:
    """Two finished runs whose names are not in order of time, one that is not finished, and a comparison."""
    store = Store.open(tmp_path / "store", create=True)
    run(store, "zebra", [result(case())])
    run(store, "apple", [result(case())], at=BEGIN + DAY)
    run(store, "later", [result(case())], at=BEGIN + 2 * DAY, publish=False)
    control_run(store, 1, [0.0, 0.01, 0.0])
    return store


@pytest.mark.parametrize(
    ("name", "found"),
    [
        (KNOWN[1], KNOWN[1]),
        ("20260101", KNOWN[0]),
        ("aaaa1111", KNOWN[0]),
        ("latest", KNOWN[2]),
        ("latest~0", KNOWN[2]),
        ("latest~2", KNOWN[0]),
    ],
)
def test_a_name_means_one_id(name, found) -> None:
    """An id, its beginning or end, or so many before the newest."""
    assert resolve(name, KNOWN) == found


@pytest.mark.parametrize(
    ("name", "error", "words"),
    [
        ("latest~3", UsageError, "there are 3 runs"),
        ("2222", UsageError, "means 2 runs"),
        ("11", UnknownNameError, "unknown run '11'"),
        ("", UnknownNameError, "unknown run"),
        ("latest~x", UnknownNameError, "unknown run"),
    ],
)
def test_a_name_that_means_none_or_several_is_refused(name, error, words) -> None:
    """Too far back, the end of two, too short, and no word of ours."""
    with pytest.raises(error, match=words):
        resolve(name, KNOWN)


def test_latest_of_nothing_says_how_the_first_comes_about() -> None:
    """What to try is not a list of nothing."""
    with pytest.raises(UsageError, match="there are no comparisons") as caught:
        resolve("latest", (), "comparison")
    assert "torchgauge ab" in caught.value.hint


def test_latest_is_in_order_of_time(full) -> None:
    """The newest finished run for its numbers, the newest at all for what goes on; names do not decide."""
    assert (resolve_run(full, "latest"), resolve_run(full, "latest~1")) == ("apple", "zebra")
    assert resolve_any_run(full, "latest") == "later"
    assert resolve_comparison(full, "latest").startswith("ab-0001")
    assert resolve_either(full, "appl") == "apple"


def test_a_run_without_tables_is_refused_with_its_folder(full) -> None:
    """Nothing can be read of it, and the command that finishes it is said."""
    with pytest.raises(UsageError, match="later is not finished") as caught:
        resolve_run(full, "later")
    assert str(full.path / "runs" / "later") in caught.value.hint


def test_what_goes_on_is_a_folder_or_a_name(full) -> None:
    """A folder as it is typed; a name in the store; neither is a mistake of the option."""
    folder = full.path / "runs" / "later"
    assert resumed_folder("elsewhere", str(folder), "runs") == str(folder)
    assert resumed_folder(str(full.path), "latest", "runs") == str(folder)
    with pytest.raises(UsageError, match="--resume no/where"):
        resumed_folder(str(full.path), "no/where", "runs")
    with pytest.raises(UsageError, match="folder of a comparison"):
        resumed_folder("elsewhere", "latest", "comparisons")


def test_rows_are_found_by_run_and_by_case(full) -> None:
    """``latest`` is a run; what has a colon is a case."""
    rows, whole = find_results(str(full.path), "latest~2")
    assert (whole, [row.run_id for row in rows]) == (True, ["zebra"])
    rows, whole = find_results(str(full.path), case().id)
    assert (whole, [row.run_id for row in rows]) == (False, ["zebra"])
