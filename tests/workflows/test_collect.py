"""Collecting a night: what is missing is said, what is refused is a record, and the newest attempt counts."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from campaign_sets import Night, bytes_of, files_of, in_row, terms, write_folder, write_zip

from torchgauge.errors import UsageError
from torchgauge.results.dataset import read_table
from torchgauge.results.journal import RunState
from torchgauge.workflows.collect import Collection, collect
from torchgauge.workflows.ingest.refusal import Reason


@pytest.fixture
def night(tmp_path: Path) -> Night:
    return Night(tmp_path)


def collected(night: Night) -> Collection:
    return collect(night.path / "artifacts", night.expected, night.store, clock=night.clock)


def test_a_whole_night_is_complete(night: Night) -> None:
    """All shards there: complete, every case counted, every run published with its provenance."""
    night.pack(1)
    night.pack(2)
    found = collected(night)
    assert found.complete
    assert (found.planned, found.recorded, found.counts) == (4, 4, {"pass": 4})
    assert night.store.published() == (night.run_id(1, 1), night.run_id(2, 1))
    said = json.loads((night.store.path / "runs" / night.run_id(2, 1) / "provenance.json").read_text())
    assert (said["campaign_id"], said["pool"], said["shard"]) == (night.campaign.campaign_id, "pool", 2)


def test_collecting_again_changes_nothing(night: Night) -> None:
    """The same artifacts give the same store and the same answer."""
    night.pack(1)
    night.pack(2)
    first = collected(night)
    before = bytes_of(night.store.path)
    second = collected(night)
    assert bytes_of(night.store.path) == before
    assert (second.state, second.counts) == (first.state, first.counts)
    assert not any(run.new for run in second.runs)


def test_a_missing_shard_makes_the_campaign_incomplete(night: Night) -> None:
    """A shard that did not come is named with its cases; what came is imported."""
    night.pack(2)
    found = collected(night)
    assert not found.complete
    assert [(each.pool, each.shard, each.cases) for each in found.missing] == [("pool", 1, 2)]
    assert found.gaps == ("pool pool, shard 1 of 2: no valid result set (2 cases)",)
    assert (found.planned, found.recorded) == (4, 2)
    assert night.store.published() == (night.run_id(2, 1),)


def test_an_empty_night_is_incomplete(night: Night) -> None:
    """No artifact at all is a night without a number, not a green one."""
    (night.path / "artifacts").mkdir()
    found = collected(night)
    assert len(found.missing) == 2
    assert found.state == "incomplete"
    with pytest.raises(UsageError, match="not a folder"):
        collect(night.path / "nowhere", night.expected, night.store)


def test_a_refused_shard_is_missing_with_its_reason(night: Night) -> None:
    """What is refused is no result: the shard is a gap, and a record says why."""
    night.pack(1)
    bad = night.pack(2)
    spoilt = in_row(files_of(bad), b'"status":"pass"', b'"status":"great"')
    shutil.rmtree(bad)
    write_folder(bad, spoilt)
    found = collected(night)
    assert [(each.artifact, each.reason) for each in found.rejected] == [(bad.name, Reason.SCHEMA)]
    assert [each.shard for each in found.missing] == [2]
    records = [json.loads(file.read_text()) for file in (night.store.path / "rejected").iterdir()]
    assert [(record["artifact"], record["reason"]) for record in records] == [(bad.name, "schema")]
    collected(night)
    assert len(list((night.store.path / "rejected").iterdir())) == 1


def test_a_run_out_of_budget_leaves_a_gap(night: Night) -> None:
    """Rows that say not_run make the campaign incomplete although every shard came."""
    from torchgauge.records import Cause, Phase, Status

    rows = night.results(1)
    rows[1] = night.result(
        night.cases[1],
        latency=None,
        status=Status.NOT_RUN,
        cause=Cause.BUDGET,
        phase=Phase.START,
        realised=None,
    )
    night.pack(1, results=rows, state=RunState.OUT_OF_BUDGET)
    night.pack(2)
    found = collected(night)
    assert not found.missing
    assert found.gaps == ("pool pool, shard 1: 1 not_run (out_of_budget)",)
    assert not found.complete


def test_the_newest_valid_attempt_counts(night: Night) -> None:
    """Of three attempts the newest is refused, the second imported, the first kept as evidence."""
    night.pack(1, 1)
    night.pack(1, 2)
    bad = night.pack(1, 3)
    (bad / "journal.jsonl").write_bytes(b"")
    night.pack(2)
    found = collected(night)
    assert found.complete
    assert [run.run_id for run in found.runs] == [night.run_id(1, 2), night.run_id(2, 1)]
    assert [(each.run_id, each.why) for each in found.duplicates] == [(night.run_id(), "a later attempt")]
    assert (night.store.path / "superseded" / night.run_id(1, 1) / "journal.jsonl").is_file()
    assert night.store.published() == (night.run_id(1, 2), night.run_id(2, 1))


def test_a_late_attempt_takes_the_place_of_its_predecessor(night: Night) -> None:
    """Of two collections of one campaign one run's rows are left; the other's files are kept as evidence."""
    night.pack(1, 1)
    night.pack(2)
    collected(night)
    night.pack(1, 2)
    found = collected(night)
    assert [run.supersedes for run in found.runs] == [(night.run_id(1, 1),), ()]
    assert night.store.published() == night.store.run_ids() == (night.run_id(1, 2), night.run_id(2, 1))
    assert (night.store.path / "superseded" / night.run_id(1, 1) / "journal.jsonl").is_file()
    again = collected(night)
    assert (again.state, again.counts, again.rejected) == ("complete", {"pass": 4}, ())
    assert night.store.published() == (night.run_id(1, 2), night.run_id(2, 1))


def test_an_earlier_attempt_that_comes_late_changes_nothing(night: Night) -> None:
    """Whatever order attempts come in, the newest one is in the tables."""
    earlier = night.pack(1, 1)
    night.pack(1, 2)
    shutil.move(earlier, night.path / earlier.name)
    collected(night)
    shutil.rmtree(night.path / "artifacts")
    (night.path / "artifacts").mkdir()
    shutil.move(night.path / earlier.name, night.path / "artifacts")
    found = collected(night)
    assert [each.reason for each in found.rejected] == [Reason.SUPERSEDED]
    assert night.store.published() == (night.run_id(1, 2),)


def test_what_a_kill_left_beside_its_successor_leaves_the_tables(night: Night) -> None:
    """Where a collection died before the earlier run left, the next one and the publication make it good."""
    from torchgauge.workflows.ingest.removal import retire_replaced, tombstones

    night.pack(1, 1)
    collected(night)
    shutil.copytree(night.store.path, night.path / "before")
    night.pack(1, 2)
    collected(night)
    for folder in ("runs", "tables"):
        shutil.copytree(night.path / "before" / folder, night.store.path / folder, dirs_exist_ok=True)
    shutil.rmtree(night.store.path / "superseded")
    assert len(night.store.published()) == 2
    retire_replaced(night.store)
    assert night.store.published() == (night.run_id(1, 2),)
    assert tombstones(night.store)[night.run_id(1, 1)]["superseded_by"] == night.run_id(1, 2)


def planned_again(night: Night, first: Sequence[int]) -> Night:
    """The same night by a newer plan, whose first shard has the cases with these numbers."""
    other = Night(night.path / "again", created_at=night.campaign.created_at + 30)
    order = [*first, *(number for number in range(4) if number not in first)]
    other.cases = [night.cases[number] for number in order]
    parts = [other.cases[:2], other.cases[2:]]
    cut = tuple(
        replace(shard, cases=tuple(each.id for each in part), terms=terms(part))
        for shard, part in zip(other.campaign.pools[0].shards, parts, strict=True)
    )
    other.campaign = replace(other.campaign, pools=(replace(other.campaign.pools[0], shards=cut),))
    other.store = night.store
    return other


def test_a_night_that_is_planned_twice_is_counted_once(night: Night) -> None:
    """A whole pool of the newer plan takes the older one's place; a part of it is refused and named."""
    night.pack(1)
    collected(night)
    again = planned_again(night, (0, 2))
    again.pack(1)
    part = collected(again)
    assert [each.reason for each in part.rejected] == [Reason.COUNTED]
    assert night.store.published() == (night.run_id(1, 1),)
    again.pack(2)
    whole = collected(again)
    assert whole.complete
    assert night.store.published() == (again.run_id(1, 1), again.run_id(2, 1))
    rows = read_table(night.store, "results", columns=["case_id"]).column("case_id").to_pylist()
    assert sorted(rows) == sorted(case.id for case in night.cases)
    late = collected(night)
    assert [each.reason for each in late.rejected] == [Reason.SUPERSEDED]


def test_a_part_of_a_newer_plan_that_shares_no_case_comes_in(night: Night) -> None:
    """What the first plan of a night never measured is taken from the second."""
    night.pack(1)
    collected(night)
    again = planned_again(night, (0, 1))
    again.pack(2)
    assert [run.shard for run in collected(again).runs] == [2]
    assert night.store.published() == (night.run_id(1, 1), again.run_id(2, 1))


def test_an_equal_copy_is_one_result_and_two_different_ones_are_none(night: Night) -> None:
    """The same set twice is taken once; two different sets of one attempt are both refused."""
    night.pack(1)
    folder = night.pack(2)
    zipped = folder.with_name(f"{folder.name}.zip")
    write_zip(zipped, list(files_of(folder).items()))
    found = collected(night)
    assert found.complete
    assert [each.why for each in found.duplicates] == ["an equal copy"]
    other = in_row(files_of(folder), b'"duration_s":0.0', b'"duration_s":9.0')
    write_zip(zipped, list(other.items()))
    again = collected(night)
    assert [each.reason for each in again.rejected] == [Reason.AMBIGUOUS] * 2
    assert [each.shard for each in again.missing] == [2]


def test_a_single_artifact_that_was_unpacked_flat_is_taken(night: Night) -> None:
    """Where one artifact matched, its files lie in the folder itself, which has no name of a set's."""
    night.pack(1).rename(night.path / "flat")
    (night.path / "artifacts").rmdir()
    (night.path / "flat").rename(night.path / "artifacts")
    found = collected(night)
    assert [run.run_id for run in found.runs] == [night.run_id(1, 1)]
    assert [each.shard for each in found.missing] == [2]
    assert not found.rejected
    (night.path / "artifacts" / "journal.jsonl").write_bytes(b"")
    again = collected(night)
    assert [each.artifact for each in again.rejected] == ["artifacts"]
