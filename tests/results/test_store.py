"""The store: plans first, tables last, nothing shared."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import torchgauge
from torchgauge.errors import DamagedJournalError, InfrastructureError, UnknownNameError, UsageError
from torchgauge.results import publication
from torchgauge.results.dataset import read_table
from torchgauge.results.journal import End, Kind, RunState
from torchgauge.results.run_id import new_run_id
from torchgauge.results.store import Store

CHILD = Path(__file__).with_name("store_child.py")


class StoppedClock:
    def __init__(self, part: float = 0.0) -> None:
        self.part = part

    def now(self) -> float:
        return 1_760_000_000.0 + self.part

    def steady(self) -> float:
        return 0.0


def child(action: str, path: Path, run_id: str, **options: int) -> subprocess.Popen[bytes]:
    environment = os.environ | {"PYTHONPATH": str(Path(torchgauge.__file__).parents[1])}
    command = [sys.executable, str(CHILD), action, str(path), run_id]
    return subprocess.Popen(command, env=environment, **options)


def everything(store: Store) -> dict[str, list]:
    names = ("results", "summaries", "samples", "environments", "calibrations")
    return {name: read_table(store, name).to_pylist() for name in names}


def test_a_missing_store_is_a_usage_error_unless_it_may_be_created(tmp_path):
    """Reading says that is not a store; a run creates one."""
    with pytest.raises(UsageError, match="is not a store"):
        Store.open(tmp_path / "s")
    assert Store.open(tmp_path / "s", create=True).runs() == []
    assert Store.open(tmp_path / "s").published() == ()


def test_the_plan_is_on_disk_before_anything_runs(store, build):
    """A run begins with its whole plan, and an existing run is not begun again."""
    plan = build.plan()
    folder = store.begin(plan)
    assert folder.plan() == plan
    assert folder.logs.is_dir()
    assert [(i.run_id, i.state, i.planned, i.recorded) for i in store.runs()] == [
        ("run-1", RunState.INTERRUPTED, 2, 0)
    ]
    with pytest.raises(UsageError, match="exists"):
        store.begin(plan)
    with pytest.raises(UsageError, match="not valid as a folder name"):
        store.begin(replace(plan, run_id="../elsewhere"))
    assert [path.name for path in (store.path / "runs").iterdir()] == ["run-1"]


def test_the_state_of_a_run_follows_its_journal(store, build):
    """Running while it is written, interrupted when its writer is gone, complete at its end."""
    folder = store.begin(build.plan())
    with folder.open_journal() as journal:
        journal.append(Kind.RESULT, [build.result()])
        info = store.info("run-1")
        assert (info.state, info.counts, info.published) == (RunState.RUNNING, {"pass": 1}, False)
    assert store.info("run-1").state is RunState.INTERRUPTED
    with folder.open_journal() as journal:
        journal.append(Kind.RESULT, [build.crashed()])
        journal.append(Kind.END, [End(RunState.COMPLETE, 0.0)])
    before = store.info("run-1")
    assert (before.state, before.counts) == (RunState.COMPLETE, {"pass": 1, "crash": 1})
    store.finish("run-1")
    assert (before.condition, before.problem) == ("unpublished", "the run's tables are missing")
    after = replace(before, published=True, counts={"crash": 1, "pass": 1}, condition="", problem="")
    assert store.info("run-1") == after


def test_a_damaged_run_does_not_hide_the_others(store, build):
    """The list names the problem of a run that cannot be read."""
    build.published(store)
    store.begin(build.plan("run-2")).plan_path.write_text("{")
    infos = {info.run_id: info for info in store.runs()}
    assert "not JSON" in infos["run-2"].problem
    assert infos["run-1"].recorded == 2


def test_a_journal_of_another_plan_is_refused(store, build):
    """Rows are never appended to a run that they do not belong to."""
    folder = store.begin(build.plan())
    folder.open_journal().close()
    other = store.begin(build.plan("run-2", models=("other",)))
    other.journal_path.write_bytes(folder.journal_path.read_bytes())
    with pytest.raises(DamagedJournalError, match="does not belong"):
        other.open_journal()


def test_publishing_needs_exactly_the_planned_cases(store, build):
    """A case without a row, or a row without a planned case, stops the publication."""
    folder = store.begin(build.plan())
    with folder.open_journal() as journal:
        journal.append(Kind.RESULT, [build.result()])
        with pytest.raises(InfrastructureError, match=r"1 of 2 planned cases have no row: toy/conv"):
            store.finish("run-1")
        journal.append(Kind.RESULT, [build.crashed(), build.result(model="stranger")])
    with pytest.raises(InfrastructureError, match="1 case missing in its plan"):
        store.finish("run-1")
    assert list((store.path / "tables").rglob("*run-1*")) == []
    with pytest.raises(UnknownNameError, match=r"did you mean run-1"):
        store.finish("run1")


def test_publishing_again_changes_nothing(store, build):
    """A published run is immutable: its files keep their bytes and their age."""
    build.published(store)
    files = sorted((store.path / "tables").rglob("*.parquet"))
    before = [(path.read_bytes(), path.stat().st_mtime_ns) for path in files]
    store.finish("run-1")
    assert [(path.read_bytes(), path.stat().st_mtime_ns) for path in files] == before
    assert len(files) == 5


@pytest.mark.parametrize("reached", ["samples", "summaries", "environments", "calibrations", "results"])
def test_a_publication_that_stops_half_way_is_repeated(store, build, monkeypatch, reached):
    """Whichever table was the last one renamed, readers see no run, and then the whole one."""
    publish = publication.publish

    def stopping(aside, path):
        if path.parent.name == reached:
            raise OSError(28, "No space left on device")
        publish(aside, path)

    monkeypatch.setattr(publication, "publish", stopping)
    with pytest.raises(InfrastructureError, match="No space left"):
        build.published(store)
    assert not any(everything(store).values())
    monkeypatch.undo()
    store.finish("run-1")
    assert {name: len(rows) for name, rows in everything(store).items()} == {
        "results": 2,
        "summaries": 2,
        "samples": 3,
        "environments": 5,
        "calibrations": 1,
    }
    assert not list((store.path / "tables").rglob(".*"))


@pytest.mark.parametrize("step", ["close", "publish"])
def test_a_killed_publication_is_repeated(store, build, step):
    """A SIGKILL while tables are being written leaves a run that can still be published."""
    models = tuple(f"m{i}" for i in range(300))
    with store.begin(build.plan(models=models)).open_journal() as journal:
        journal.append(Kind.RESULT, [build.result(model=m, samples=[0.5] * 200) for m in models])
    process = child(step, store.path, "run-1", stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"reached\n"
    process.kill()
    process.communicate(timeout=120)
    assert store.published() == ()
    assert list((store.path / "tables").rglob(".*.tmp"))
    store.finish("run-1")
    assert len(everything(store)["samples"]) == 60_000
    assert not list((store.path / "tables").rglob(".*.tmp"))


def test_two_processes_write_runs_into_one_store(tmp_path):
    """Runs that begin and end at once in a store that neither has created both complete."""
    path = tmp_path / "shared"
    processes = [child("write", path, run_id) for run_id in ("a", "b")]
    assert [process.wait(120) for process in processes] == [0, 0]
    store = Store.open(path)
    assert [(info.run_id, info.state, info.published) for info in store.runs()] == [
        ("a", RunState.COMPLETE, True),
        ("b", RunState.COMPLETE, True),
    ]
    assert len(everything(store)["results"]) == 4


def test_a_non_finite_number_never_reaches_a_table(store, build):
    """Even a number that JSON can hold but a float cannot is refused, with its case."""
    folder = store.begin(build.plan(models=("linear",)))
    with folder.open_journal() as journal:
        journal.append(Kind.RESULT, [build.result(duration_s=12345.5)])
    text = folder.journal_path.read_bytes().replace(b"12345.5", b"1e99999")
    folder.journal_path.write_bytes(_resealed(text))
    with pytest.raises(
        InfrastructureError,
        match=r"cannot be published: .* the start or the duration of the case is impossible",
    ):
        store.finish("run-1")
    assert store.published() == ()


def test_run_ids_are_unique_and_sort_by_time():
    """Two runs of one moment have different ids, and the id begins with the time in UTC."""
    first, second = (new_run_id(StoppedClock()) for _ in range(2))
    assert first != second
    assert first.startswith("20251009T085320Z-000")
    ids = [new_run_id(StoppedClock(part / 1000)) for part in range(0, 1000, 5)]
    assert ids == sorted(ids), "within a second too"
    assert {len(each) for each in ids} == {len("20251009T085320Z-01234567")}
    assert new_run_id(StoppedClock(0.9999996)).startswith("20251009T085320Z-fff"), "not the next second's"


def test_a_table_that_cannot_be_read_says_what_to_do(store, build):
    """A damaged Parquet file is named, and the journal still has what it held."""
    build.published(store)
    store.table_path("samples", "run-1").write_bytes(b"PAR1 nothing PAR1")
    with pytest.raises(DamagedJournalError, match=r"samples/run-1\.parquet") as caught:
        read_table(store, "samples")
    assert caught.value.hint == f"torchgauge results publish run-1 --store {store.path}"
    with pytest.raises(UnknownNameError, match="summaries"):
        read_table(store, "summary")


def _resealed(text: bytes) -> bytes:
    """``text`` with checksums that fit, as a careless editor would make them."""
    import re
    import zlib

    def seal(match):
        number, kind, body = match.groups()
        crc = zlib.crc32(number + b":" + kind + b":" + body)
        return b'{"n":%s,"kind":"%s","crc":"%08x","data":%s}' % (number, kind, crc, body)

    return re.sub(rb'\{"n":(\d+),"kind":"(\w+)","crc":"\w+","data":(.*)\}', seal, text)
