"""A contributor who submits more than their day allows: refused by name, however it is cut into sets."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from campaign_sets import FixedClock, Night, bytes_of

from torchgauge.errors import DataFileError
from torchgauge.workflows.ingest.contributors import ROWS_PER_DAY, contributor_named
from torchgauge.workflows.ingest.intake import Refused, Taken, import_sets
from torchgauge.workflows.ingest.provenance import rows_of_day
from torchgauge.workflows.ingest.refusal import Reason
from torchgauge.workflows.ingest.removal import remove_run
from torchgauge.workflows.publish import Retention, forget


def submitted(
    night: Night, *sets: Path, most: int = 4, name: str = "acme", later_s: float = 0.0
) -> tuple[list[Taken], list[Refused]]:
    """What becomes of sets of two rows each, of a contributor with ``most`` rows a day."""
    expected = replace(night.expected, rows_per_day=most)
    return import_sets(night.store, sets, expected, name, FixedClock(night.clock.at + later_s))


def test_rows_above_the_quota_are_refused_and_the_store_stays(tmp_path: Path) -> None:
    """Two sets of two rows fill a quota of four; a later attempt, which would replace one, is too much."""
    night = Night(tmp_path)
    taken, refused = submitted(night, night.pack(1), night.pack(2))
    assert (len(taken), refused) == (2, [])
    before = bytes_of(night.store.path)
    taken, refused = submitted(night, night.pack(1, 2))
    assert (taken, [each.reason for each in refused]) == ([], [Reason.QUOTA])
    assert bytes_of(night.store.path) == before


def test_sets_of_one_call_share_the_quota(tmp_path: Path) -> None:
    """What one set takes is not there for the next."""
    night = Night(tmp_path)
    taken, refused = submitted(night, night.pack(1), night.pack(2), most=3)
    assert (len(taken), [each.reason for each in refused]) == (1, [Reason.QUOTA])


def test_replaced_attempts_count(tmp_path: Path) -> None:
    """Attempt after attempt leaves one run's rows in the tables, and uses the day up all the same."""
    night = Night(tmp_path)
    sets = [night.pack(1, attempt) for attempt in range(1, 6)]
    words = [submitted(night, each, most=6)[1] for each in sets]
    assert [each[0].reason if each else None for each in words] == [None] * 3 + [Reason.QUOTA] * 2


def test_removed_and_forgotten_rows_count(tmp_path: Path) -> None:
    """Neither a removal nor the end of what is kept of replaced runs gives the day's rows back."""
    night = Night(tmp_path)
    for attempt in (1, 2):
        assert submitted(night, night.pack(1, attempt))[1] == []
    assert (
        forget(night.store, Retention(superseded_days=0), FixedClock(night.clock.at + 1))["superseded"] == 1
    )
    remove_run(night.store, night.run_id(1, 2), "withdrawn", night.clock)
    refused = submitted(night, night.pack(1, 3), later_s=2)[1]
    assert [each.reason for each in refused] == [Reason.QUOTA]
    assert rows_of_day(night.store, "acme", night.clock.at) == 4


def test_a_set_that_is_there_already_costs_nothing(tmp_path: Path) -> None:
    """Repeating an import is no second contribution."""
    night = Night(tmp_path)
    first = night.pack(1)
    assert [submitted(night, first, most=2)[0][0].new for _ in range(3)] == [True, False, False]


@pytest.mark.parametrize(("name", "later_s"), [("other", 0.0), ("acme", 86_401.0)])
def test_another_contributor_and_another_day_have_their_own(
    name: str, later_s: float, tmp_path: Path
) -> None:
    """The quota is of one contributor and one day."""
    night = Night(tmp_path)
    submitted(night, night.pack(1), most=2)
    taken, refused = submitted(night, night.pack(2), most=2, name=name, later_s=later_s)
    assert (len(taken), refused) == (1, [])


def test_the_file_says_the_quota_and_has_a_default(tmp_path: Path) -> None:
    """A number of rows from one on; where nothing is said, the documented one."""
    file = tmp_path / "contributors.yml"
    entry = "version: 1\ncontributors:\n  - {{name: acme, pools: [lab], contact: a@b{}}}\n"
    file.write_text(entry.format(""))
    assert contributor_named(file, "acme").rows_per_day == ROWS_PER_DAY == 50_000
    file.write_text(entry.format(", rows_per_day: 7"))
    assert contributor_named(file, "acme").rows_per_day == 7
    file.write_text(entry.format(", rows_per_day: 0"))
    with pytest.raises(DataFileError):
        contributor_named(file, "acme")
