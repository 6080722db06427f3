"""Compaction changes no answer of any reader, loses nothing, and gives way to whatever is published later."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

sys.path.insert(0, str(Path(__file__).parent))

import reader_answers as readers
import stored_runs as made

import torchgauge
from torchgauge.errors import DamagedTableError, UsageError
from torchgauge.results import frames
from torchgauge.results.compacted.compaction import compact
from torchgauge.results.dataset import around_damage, gaps_of, read_table, row_count
from torchgauge.results.fsck import check_store
from torchgauge.results.publication import publish_again
from torchgauge.results.store import Store
from torchgauge.workflows.ingest.removal import remove_run
from torchgauge.workflows.publish import Retention, forget, state_of

KILLS = Path(__file__).with_name("compaction_kills.py")


class At:
    """A clock that stands at a moment."""

    def __init__(self, now: float) -> None:
        self._now = now

    def now(self) -> float:
        """The moment."""
        return self._now

    def steady(self) -> float:
        """The same."""
        return self._now


CLOCK = At(readers.NOW)


@pytest.fixture
def sound(tmp_path: Path) -> Store:
    """Three nights of one month without damage."""
    store = Store.open(tmp_path / "sound", create=True)
    for number in range(3):
        of = made.result(readers.LINEAR, 1e-3 * (number + 1), started_at=made.BEGIN + number)
        made.run(store, readers.run_id(number), [of], at=made.BEGIN + number)
    return store


def test_every_reader_says_the_same_byte_for_byte(tmp_path: Path) -> None:
    """Over runs of every kind, and again after what is published and compacted a second time."""
    store = readers.mixed_store(tmp_path / "store")
    words, rows = readers.words_of_readers(store.path), readers.rows_of(store)
    site = readers.site_of(store.path, tmp_path / "before")
    assert f"tables/summaries/{readers.DAMAGED}.parquet" in words[f"results fsck --store {store.path} --json"]
    reports = {each.month: each for each in compact(store, clock=CLOCK)}
    may = reports[readers.MONTH]
    assert (may.done, len(may.runs)) == ("compacted", 6)
    assert list(may.left) == [readers.DAMAGED]
    assert set(reports) == {readers.MONTH, "2026-06"}
    kept = {path.stem for path in (store.path / "tables" / "results").glob("*.parquet")}
    assert kept == {readers.DAMAGED}
    for _ in range(2):
        assert readers.words_of_readers(store.path) == words
        assert readers.rows_of(Store.open(store.path)) == rows
        assert readers.site_of(store.path, tmp_path / "after") == site
        publish_again(Store.open(store.path), readers.run_id(1))
        assert readers.words_of_readers(store.path) == words
        compact(Store.open(store.path), readers.MONTH, clock=CLOCK)
    assert [each.done for each in compact(store, clock=CLOCK)] == ["nothing to do"] * 2


def test_the_latest_rows_are_the_same_with_and_without_months(tmp_path: Path) -> None:
    """Frames of the newest rows, and the matrix of a metric, over compacted months and runs beside them."""
    store = readers.mixed_store(tmp_path / "store")
    shutil.rmtree(store.path / "runs" / readers.DAMAGED)
    for path in store.path.glob(f"tables/*/{readers.DAMAGED}.parquet"):
        path.unlink()
    before = frames.latest(store, clock=CLOCK), frames.matrix(store, "latency")
    assert before[1].size
    compact(store, readers.MONTH, clock=CLOCK)
    for _ in range(2):
        opened = Store.open(store.path)
        pd.testing.assert_frame_equal(frames.latest(opened, clock=CLOCK), before[0])
        pd.testing.assert_frame_equal(frames.matrix(opened, "latency"), before[1])
        publish_again(opened, readers.run_id(3))


def test_what_is_published_after_compaction_wins(sound: Store) -> None:
    """A run that was published again is read from its own tables, and then from its month again."""
    compact(sound, clock=CLOCK)
    run = readers.run_id(1)
    publish_again(sound, run)
    assert sound.month_of(run) is None
    other = readers.run_id(2)
    for name in ("results", "summaries"):  # tables of another content, to see which ones are read
        shutil.copy(sound.table_path(name, run), sound.table_path(name, "copy"))
    assert read_table(sound, "results", other).num_rows == 1
    for name in ("results", "summaries"):
        sound.table_path(name, "copy").unlink()
    assert compact(sound, clock=CLOCK)[0].done == "compacted"
    assert sound.month_of(run) is not None
    assert not list(sound.path.glob("tables/*/*.parquet"))


def test_a_run_published_while_its_month_is_compacted_stays(sound: Store, monkeypatch) -> None:
    """Its tables changed after they were read: they stay, and are read."""
    from torchgauge.results.compacted import manifest

    write, run = manifest.MonthManifest.write, readers.run_id(1)

    def publish_first(month: manifest.MonthManifest, root: Path) -> None:
        publish_again(Store.open(root), run)
        write(month, root)

    monkeypatch.setattr(manifest.MonthManifest, "write", publish_first)
    compact(sound, clock=CLOCK)
    monkeypatch.undo()
    assert sound.with_own_tables() == {run}
    assert check_store(sound).findings == ()
    assert compact(sound, clock=CLOCK)[0].done == "compacted"
    assert sound.with_own_tables() == set()


def test_a_reader_that_began_before_finds_its_rows(sound: Store) -> None:
    """Months that are compacted, and compacted anew, under the eyes of a store that was opened before."""
    begun = Store.open(sound.path)
    rows = read_table(begun, "summaries").to_pylist()
    published = begun.published()
    compact(sound, clock=CLOCK)
    assert read_table(begun, "summaries", published).to_pylist() == rows
    publish_again(sound, readers.run_id(0))
    compact(sound, clock=CLOCK)
    begun.month_rows.__init__(begun.path)  # type: ignore[misc]  # what it read before does not count
    assert read_table(begun, "summaries", published).to_pylist() == rows


@pytest.mark.parametrize("harm", ["flip", "cut", "gone", "manifest"])
def test_a_damaged_month_is_named_and_made_again_of_its_journals(sound: Store, harm: str) -> None:
    """Readers leave its runs out and say so; the advice makes it again."""
    rows = read_table(sound, "results").to_pylist()
    compact(sound, clock=CLOCK)
    (month,) = sound.compacted.manifests()
    file = sound.path / (month.path if harm == "manifest" else month.file("results").path)
    if harm == "flip":
        readers.flip(file, 40)
    elif harm == "gone":
        file.unlink()
    else:
        os.truncate(file, file.stat().st_size // 2)
    store = Store.open(sound.path)
    name = file.relative_to(store.path).as_posix()
    advice = f"torchgauge results compact --month {readers.MONTH} --store {store.path}"
    (finding,) = [each for each in check_store(store).findings if each.path == name]
    assert finding.remedy == advice
    with pytest.raises(DamagedTableError) as error:
        read_table(store, "results")
    assert name in error.value.message
    assert error.value.hint == advice
    assert around_damage(store, lambda: read_table(store, "results")).num_rows == 0
    (gap,) = gaps_of(store)
    assert name in gap
    assert advice in gap
    compact(Store.open(store.path), readers.MONTH, clock=CLOCK)
    assert read_table(Store.open(store.path), "results").to_pylist() == rows
    assert check_store(Store.open(store.path)).findings == ()


def test_a_damaged_month_without_a_journal_is_refused(sound: Store) -> None:
    """What cannot be made again is named, and nothing is removed."""
    compact(sound, clock=CLOCK)
    (month,) = sound.compacted.manifests()
    readers.flip(sound.path / month.file("summaries").path)
    sound.run(readers.run_id(1)).journal_path.unlink()
    before = sorted(sound.path.glob("compacted/*/*"))
    (report,) = compact(Store.open(sound.path), readers.MONTH, clock=CLOCK)
    assert (report.done, list(report.left)) == ("refused", [readers.run_id(1)])
    assert "has no journal" in report.left[readers.run_id(1)]
    assert sorted(sound.path.glob("compacted/*/*")) == before


def test_what_is_taken_out_of_the_store_stays_out(sound: Store) -> None:
    """A removed run of a month counts no more, and its rows go with the next compaction."""
    compact(sound, clock=CLOCK)
    gone = readers.run_id(1)
    remove_run(sound, gone, "withdrawn by the test", CLOCK)
    assert sound.published() == (readers.run_id(0), readers.run_id(2))
    assert state_of(sound).rows == 2
    assert len(frames.latest(sound, clock=CLOCK)) == 1
    assert compact(sound, clock=CLOCK)[0].runs == (readers.run_id(0), readers.run_id(2))
    assert not (sound.path / "compacted" / "withdrawn" / gone).exists()
    assert sound.published() == (readers.run_id(0), readers.run_id(2))
    assert check_store(sound).findings == ()


def test_samples_may_go(sound: Store) -> None:
    """``dashboard publish --keep-samples`` removes those of whole months, and nobody misses them."""
    compact(sound, clock=CLOCK)
    assert read_table(sound, "samples").num_rows == 30
    assert forget(sound, Retention(samples_days=5.0), CLOCK)["samples"] == 3
    store = Store.open(sound.path)
    assert read_table(store, "samples").num_rows == 0
    assert row_count(store, "results", readers.run_id(0)) == 1
    assert check_store(store).findings == ()


def test_two_compactions_at_once_are_refused(sound: Store) -> None:
    """By the lock that another process holds; a look at what would be done is no compaction."""
    (sound.path / "compacted").mkdir()
    descriptor = os.open(sound.path / "compacted", os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        with pytest.raises(UsageError, match="is being compacted by another process"):
            compact(sound, clock=CLOCK)
        assert compact(sound, dry_run=True, clock=CLOCK)[0].done == "would be compacted"
    finally:
        os.close(descriptor)
    assert sound.with_own_tables() == set(sound.run_ids())


def test_clocks_three_days_apart(sound: Store) -> None:
    """No month is compacted that is not over; where a clock is ahead, what comes later is read too."""
    end = 1_780_271_999.0  # 2026-05-31 23:59:59 UTC
    with pytest.raises(UsageError, match="2026-05 is not over: the date of this machine is 2026"):
        compact(sound, readers.MONTH, clock=At(end))
    assert compact(sound, clock=At(end)) == []
    ahead = At(end + 3 * made.DAY)
    assert compact(sound, clock=ahead)[0].done == "compacted"
    late, future = readers.run_id(3), "20260701T000000Z-0000000f"
    made.run(sound, late, [made.result(readers.LINEAR)], at=end)
    made.run(sound, future, [made.result(readers.LINEAR)], at=end + 31 * made.DAY)
    assert len(sound.published()) == 5
    reports = compact(sound, clock=ahead)
    assert [(each.month, each.done, len(each.runs)) for each in reports] == [
        (readers.MONTH, "compacted", 4),
        ("2026-07", "not over", 1),
    ]
    assert read_table(sound, "results").num_rows == 5


def test_a_store_that_is_only_read_is_refused_with_its_name(sound: Store, monkeypatch) -> None:
    """And is as it was."""
    mkdir = Path.mkdir

    def refuse(path: Path, *arguments: object, **named: object) -> None:
        if path.name == "compacted":
            raise OSError(30, "Read-only file system")
        mkdir(path, *arguments, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(Path, "mkdir", refuse)
    said = readers.asked("results", "compact", "--store", str(sound.path))
    assert said.startswith("InfrastructureError\n")
    assert "compacted cannot be written: Read-only file system" in said
    assert read_table(sound, "results").num_rows == 3


def test_a_kill_at_any_point_loses_nothing(tmp_path: Path) -> None:
    """SIGKILL before renames and removals: the same rows then, and once it was repeated."""
    environment = os.environ | {"PYTHONPATH": str(Path(torchgauge.__file__).parents[1])}
    command = [sys.executable, str(KILLS), str(tmp_path)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    seen = json.loads(done.stdout)
    assert seen["points"] > 8
    assert seen["killed"] == seen["points"]
    assert seen["wrong"] == []
