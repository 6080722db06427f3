"""Publishing: history never shrinks without a reason, and a history file that was cut off is none."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from campaign_sets import FixedClock, Night, import_sets

from torchgauge.errors import DataFileError, InfrastructureError, UsageError
from torchgauge.results.comparing.comparison_store import comparison_ids
from torchgauge.workflows.collect import collect
from torchgauge.workflows.ingest.refusal import Reason
from torchgauge.workflows.ingest.removal import remove_run, tombstones
from torchgauge.workflows.publish import (
    PublishedState,
    Retention,
    check_no_shrinking,
    forget,
    publish,
    read_state,
    state_of,
    write_state,
)


class Built:
    """Counts how often a site was built."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self) -> None:
        self.times += 1


@pytest.fixture
def night(tmp_path: Path) -> Night:
    """A night of two runs in its store."""
    night = Night(tmp_path)
    night.pack(1)
    night.pack(2)
    collect(night.path / "artifacts", night.expected, night.store, clock=night.clock)
    return night


def test_the_first_publication_writes_the_history(night: Night) -> None:
    """Runs, rows and the oldest date are remembered, and the next publication passes."""
    guard, build = night.path / "history.json", Built()
    state = publish(night.store, guard, build)
    assert (state.runs, state.oldest) == ({night.run_id(1, 1): 2, night.run_id(2, 1): 2}, night.begin)
    assert read_state(guard) == state
    publish(night.store, guard, build, expect_history=True)
    assert build.times == 2


def test_a_missing_history_is_refused_where_one_is_expected(night: Night) -> None:
    """A fetch that brought nothing must not begin a new history."""
    build = Built()
    with pytest.raises(DataFileError, match="missing"):
        publish(night.store, night.path / "history.json", build, expect_history=True)
    assert build.times == 0


def test_a_lost_run_stops_the_publication(night: Night) -> None:
    """A run that is gone without a tombstone is named, nothing is built and the history stays."""
    guard, build = night.path / "history.json", Built()
    publish(night.store, guard, build)
    before = guard.read_bytes()
    night.store.table_path("results", night.run_id(1, 1)).unlink()
    shutil.rmtree(night.store.path / "runs" / night.run_id(1, 1))
    with pytest.raises(InfrastructureError, match=f"1 run is gone: {night.run_id()}") as error:
        publish(night.store, guard, build)
    assert error.value.exit_code == 3
    assert build.times == 1
    assert guard.read_bytes() == before


def test_a_removal_with_a_reason_leaves_a_tombstone_and_may_shrink(night: Night) -> None:
    """A removed run is out of every table, its reason is kept, and it cannot come back."""
    guard, build = night.path / "history.json", Built()
    publish(night.store, guard, build)
    remove_run(night.store, night.run_id(1, 1), "withdrawn by its owner", night.clock)
    assert night.store.run_ids() == (night.run_id(2, 1),)
    assert not list((night.store.path / "tables").glob(f"*/{night.run_id()}.parquet"))
    stone = tombstones(night.store)[night.run_id(1, 1)]
    assert (stone["reason"], stone["rows"]) == ("withdrawn by its owner", 2)
    assert stone["provenance"]["pool"] == "pool"
    assert publish(night.store, guard, build).runs == {night.run_id(2, 1): 2}
    artifact = night.path / "artifacts" / night.job(1).artifact
    taken, refused = import_sets(night.store, [artifact], night.expected, clock=night.clock)
    assert not taken
    assert refused[0].reason is Reason.REMOVED


@pytest.mark.parametrize("reason", ["", "  ", "a\nb", "x" * 501, "\u202eno"])
def test_a_removal_without_a_plain_reason_is_refused(night: Night, reason: str) -> None:
    """Who reads the tombstone later must learn why."""
    with pytest.raises(UsageError, match="reason"):
        remove_run(night.store, night.run_id(1, 1), reason)
    assert night.store.run_ids() == (night.run_id(1, 1), night.run_id(2, 1))


def test_a_truncated_history_file_is_refused(night: Night) -> None:
    """However much of the file is missing, or whoever edited it: it is refused, never taken for shorter."""
    guard = night.path / "history.json"
    publish(night.store, guard, Built())
    whole = guard.read_bytes()
    for length in range(0, len(whole) - 1, 7):
        guard.write_bytes(whole[:length])
        with pytest.raises(DataFileError, match=r"not JSON|digest"):
            publish(night.store, guard, Built())
    data = json.loads(whole)
    del data["runs"][night.run_id(1, 1)]
    guard.write_text(json.dumps(data))
    with pytest.raises(DataFileError, match="does not match the digest in the file"):
        read_state(guard)


@pytest.mark.parametrize("name", ["99991231T235959Z-00000000", "0", "CON", "index.html"])
def test_an_ab_run_of_no_true_name_is_left_out(night: Night, name: str) -> None:
    """The site has a page of A/B runs, in the order of their names."""
    shutil.copytree(night.store.path / "runs" / night.run_id(), night.store.path / "comparisons" / name)
    publish(night.store, night.path / "history.json", Built(), clock=night.clock)
    assert list(night.store.left_out) == [name]
    assert comparison_ids(night.store) == ()


def test_what_counts_as_shrinking() -> None:
    """Fewer rows of a run, a later beginning, a missing run: each is said; growth is not."""
    before = PublishedState({"a": 2, "b": 3}, 100.0)
    check_no_shrinking(before, PublishedState({"a": 2, "b": 3, "c": 1}, 90.0), set())
    check_no_shrinking(before, PublishedState({"b": 3}, 200.0), {"a"})
    with pytest.raises(InfrastructureError, match="fewer rows"):
        check_no_shrinking(before, PublishedState({"a": 1, "b": 3}, 100.0), set())
    with pytest.raises(InfrastructureError, match="oldest"):
        check_no_shrinking(before, PublishedState({"a": 2, "b": 3}, 150.0), set())
    with pytest.raises(InfrastructureError, match="gone: a"):
        check_no_shrinking(before, PublishedState({"b": 9}, 100.0), {"b"})


def test_a_failed_build_leaves_the_history_as_it_was(night: Night) -> None:
    """What was not shown is not remembered as published."""

    def fail() -> None:
        raise InfrastructureError("the disk is full")

    guard = night.path / "history.json"
    write_state(guard, PublishedState({night.run_id(1, 1): 2}, night.begin))
    before = guard.read_bytes()
    with pytest.raises(InfrastructureError, match="full"):
        publish(night.store, guard, fail)
    assert guard.read_bytes() == before


def test_retention_forgets_samples_attempts_and_refusals_and_no_row(night: Night) -> None:
    """What is older than its days goes, the rest stays, and the history has every row as before."""
    night.pack(1, 2)
    first = night.path / "artifacts" / night.job(1, 1).artifact
    second = night.path / "artifacts" / night.job(2, 2).artifact
    shutil.copytree(first, second)
    fresh = Night(night.path / "fresh")
    shutil.copytree(night.path / "artifacts", fresh.path / "artifacts")
    collect(fresh.path / "artifacts", fresh.expected, fresh.store, clock=fresh.clock)
    before = state_of(fresh.store)
    limits = Retention(samples_days=30, superseded_days=30, rejected_days=30)
    soon, late = FixedClock(fresh.begin + 86_400), FixedClock(fresh.begin + 40 * 86_400)
    assert forget(fresh.store, limits, soon) == {"samples": 0, "superseded": 0, "rejected": 0}
    assert forget(fresh.store, Retention(), late) == {"samples": 0, "superseded": 0, "rejected": 0}
    assert forget(fresh.store, limits, late) == {"samples": 2, "superseded": 1, "rejected": 1}
    assert state_of(fresh.store) == before
