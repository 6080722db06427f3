"""Collecting a night: what is missing is said, what is refused is a record, and the newest attempt counts."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from campaign_sets import Night, bytes_of, files_of, in_row, write_folder, write_zip

from torchgauge.errors import UsageError
from torchgauge.results.journal import RunState
from torchgauge.workflows.collect import Collection, collect
from torchgauge.workflows.ingest.refusal import Reason


@pytest.fixture
def night(tmp_path: Path) -> Night:
    return Night(tmp_path)


def collected(night: Night, **options: bool) -> Collection:
    return collect(night.path / "artifacts", night.expected, night.store, clock=night.clock, **options)


def test_a_whole_night_is_complete(night: Night) -> None:
    """All shards there: complete, every case counted, every run published with its provenance."""
    night.pack(1)
    night.pack(2)
    found = collected(night)
    assert found.complete
    assert (found.planned, found.recorded, found.counts) == (4, 4, {"pass": 4})
    assert night.store.published() == ("run-1-1", "run-2-1")
    said = json.loads((night.store.path / "runs" / "run-2-1" / "provenance.json").read_text())
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
    assert night.store.published() == ("run-2-1",)


def test_an_empty_night_is_incomplete(night: Night) -> None:
    """No artifact at all is a night without a number, not a green one."""
    (night.path / "artifacts").mkdir()
    found = collected(night)
    assert len(found.missing) == 2
    assert found.state == "incomplete"
    with pytest.raises(UsageError, match="no folder"):
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
    assert [run.run_id for run in found.runs] == ["run-1-2", "run-2-1"]
    assert [(each.run_id, each.why) for each in found.duplicates] == [("run-1-1", "a later attempt")]
    assert (night.store.path / "superseded" / "run-1-1" / "journal.jsonl").is_file()
    assert night.store.published() == ("run-1-2", "run-2-1")


def test_a_late_attempt_says_what_it_supersedes(night: Night) -> None:
    """An attempt that comes after its predecessor was imported is added; nothing is taken away."""
    night.pack(1, 1)
    night.pack(2)
    collected(night)
    night.pack(1, 2)
    found = collected(night)
    assert [run.supersedes for run in found.runs] == [("run-1-1",), ()]
    assert night.store.published() == ("run-1-1", "run-1-2", "run-2-1")
    assert not (night.store.path / "superseded").exists()


def test_an_equal_copy_is_one_result_and_two_different_ones_are_none(night: Night) -> None:
    """The same set twice is taken once; two different sets of one attempt are both refused."""
    night.pack(1)
    folder = night.pack(2)
    copy = night.path / "artifacts" / "copy.zip"
    write_zip(copy, list(files_of(folder).items()))
    found = collected(night, named=False)
    assert found.complete
    assert [each.why for each in found.duplicates] == ["an equal copy"]
    copy.unlink()
    write_folder(copy.with_suffix(""), in_row(files_of(folder), b'"duration_s":0.0', b'"duration_s":9.0'))
    again = collected(night, named=False)
    assert [each.reason for each in again.rejected] == [Reason.AMBIGUOUS] * 2
    assert [each.shard for each in again.missing] == [2]


def test_an_artifact_of_another_name_is_refused(night: Night) -> None:
    """A job cannot hand in a set under the name of another job's artifact."""
    night.pack(1)
    moved = night.pack(2)
    moved.rename(moved.with_name(night.job(1, 2).artifact))
    found = collected(night)
    assert [each.reason for each in found.rejected] == [Reason.ARTIFACT_NAME]
    assert [each.shard for each in found.missing] == [2]


def test_a_single_artifact_that_was_unpacked_flat_is_taken(night: Night) -> None:
    """Where one artifact matched, its files lie in the folder itself, which has no name of a set's."""
    night.pack(1).rename(night.path / "flat")
    (night.path / "artifacts").rmdir()
    (night.path / "flat").rename(night.path / "artifacts")
    found = collected(night)
    assert [run.run_id for run in found.runs] == ["run-1-1"]
    assert [each.shard for each in found.missing] == [2]
    assert not found.rejected
    (night.path / "artifacts" / "journal.jsonl").write_bytes(b"")
    again = collected(night)
    assert [each.artifact for each in again.rejected] == ["artifacts"]
