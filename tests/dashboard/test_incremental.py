"""An incremental build gives the bytes of a full one, or is a full one that says why."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from site_files import files_of, generator, small_shape
from store_builder import CPU, DAY, EAGER, NOW, RunBuilder, result, workloads

from torchgauge.dashboard import build_site
from torchgauge.dashboard.snapshots import EPOCH_LENGTH
from torchgauge.records import Case, Status
from torchgauge.results.store import Store


def _nights(folder: Path, which: list[int], **changes: int) -> Path:
    """A store with the nights ``which`` of a shape whose other nights can be added later."""
    path: Path = generator().generate(folder, small_shape(**changes), which)
    return path


def test_nights_that_are_added_give_the_bytes_of_a_full_build(tmp_path: Path) -> None:
    """Over the end of an epoch, a renamed model and a device that stopped, one night or several at once."""
    shape = {"nights": EPOCH_LENGTH + 4, "silent": 2}
    store = _nights(tmp_path, list(range(EPOCH_LENGTH - 2)), **shape)
    build_site(store, tmp_path / "site")
    for nights in (
        [EPOCH_LENGTH - 2, EPOCH_LENGTH - 1],
        [EPOCH_LENGTH],
        [EPOCH_LENGTH + 1, EPOCH_LENGTH + 2],
    ):
        _nights(tmp_path, nights, **shape)
        report = build_site(store, tmp_path / "site")
        assert report.full_because == ""
        assert report.kept > 0
        full = build_site(store, tmp_path / "again", full=True)
        assert full.full_because == "--full"
        assert full.digest == report.digest
        assert files_of(tmp_path / "site") == files_of(tmp_path / "again")


def test_a_closed_epoch_is_linked_and_not_written_again(tmp_path: Path) -> None:
    """What browsers and mirrors hold stays the same file."""
    shape = {"nights": EPOCH_LENGTH + 3, "devices": 1, "models": 1}
    store = _nights(tmp_path, list(range(EPOCH_LENGTH + 1)), **shape)
    build_site(store, tmp_path / "site")
    closed = sorted((tmp_path / "site" / "series").rglob("0.json"))
    before = [path.stat().st_ino for path in closed]
    _nights(tmp_path, [EPOCH_LENGTH + 1], **shape)
    build_site(store, tmp_path / "site")
    assert closed
    assert [path.stat().st_ino for path in closed] == before


def test_without_hard_links_files_are_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some file systems have none."""
    store = _nights(tmp_path, [0, 1])
    build_site(store, tmp_path / "site")

    def refuse(*_: object) -> None:
        raise OSError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    _nights(tmp_path, [2])
    report = build_site(store, tmp_path / "site")
    assert report.kept > 0
    monkeypatch.undo()
    build_site(store, tmp_path / "again", full=True)
    assert files_of(tmp_path / "site") == files_of(tmp_path / "again")


def _one(store: Path, at: float, status: Status = Status.PASS, index: int = 0) -> str:
    run = RunBuilder(f"run-{int(at)}", at)
    result(run, Case(workloads()[index], EAGER, CPU), status)
    run.write(store)
    return run.run_id


def _same_as_full(tmp_path: Path) -> None:
    build_site(tmp_path / "store", tmp_path / "again", full=True)
    assert files_of(tmp_path / "site") == files_of(tmp_path / "again")


def test_a_second_run_of_a_day_changes_its_snapshot(tmp_path: Path) -> None:
    """A night that was lost and repeated: the snapshot has the result, the board the last attempt."""
    _one(tmp_path / "store", NOW - 7_200)
    build_site(tmp_path / "store", tmp_path / "site")
    _one(tmp_path / "store", NOW - 3_600, Status.INFRA)
    report = build_site(tmp_path / "store", tmp_path / "site")
    assert (report.full_because, report.passed, report.snapshots) == ("", 0, 1)
    _same_as_full(tmp_path)
    series = next((tmp_path / "site" / "series").rglob("0.json"))
    assert json.loads(series.read_bytes())["cases"][0]["status"] == "p"


def _change_late(store: Path) -> None:
    _one(store, NOW - 5 * DAY)


def _change_vanished(store: Path) -> None:
    shutil.rmtree(store / "runs" / f"run-{int(NOW - DAY)}")
    for table in (store / "tables").iterdir():
        (table / f"run-{int(NOW - DAY)}.parquet").unlink()


def _change_rewritten(store: Path) -> None:
    path = store / "tables" / "results" / f"run-{int(NOW - DAY)}.parquet"
    table = pq.read_table(path)
    index = table.schema.get_field_index("reason")
    pq.write_table(table.set_column(index, table.schema.field(index), [["another"]]), path)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (_change_late, "was created before"),
        (_change_vanished, "is gone from the store"),
        (_change_rewritten, "changed since the last build"),
    ],
)
def test_a_store_with_another_past_is_built_in_full(tmp_path: Path, change: object, reason: str) -> None:
    """And says why."""
    for age in (2 * DAY, DAY, 60):
        _one(tmp_path / "store", NOW - age)
    build_site(tmp_path / "store", tmp_path / "site")
    change(tmp_path / "store")  # type: ignore[operator]
    report = build_site(tmp_path / "store", tmp_path / "site")
    assert reason in report.full_because
    assert report.kept == 0
    _same_as_full(tmp_path)


def _damage_manifest(site: Path) -> None:
    (site / "manifest.json").write_bytes((site / "manifest.json").read_bytes()[:300])


def _damage_version(site: Path) -> None:
    text = (site / "manifest.json").read_text()
    (site / "manifest.json").write_text(text.replace('"torchgauge ', '"torchgauge 0.0.0+', 1))


def _damage_state(site: Path) -> None:
    (site / "state" / "cases.parquet").write_bytes(b"PAR1")


def _damage_epoch(site: Path) -> None:
    path = site / "data" / "0.parquet"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(bytes(content))


def _damage_kept(site: Path) -> None:
    next((site / "snapshots").rglob("*.core.json")).unlink()


def _damage_size(site: Path) -> None:
    path = next((site / "snapshots").rglob("*.core.json"))
    path.write_bytes(path.read_bytes()[:-1])


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (_damage_manifest, "cannot be read"),
        (_damage_version, "another version"),
        (_damage_state, "is damaged"),
        (_damage_epoch, "is damaged"),
        (_damage_kept, "lacks"),
        (_damage_size, "another size"),
    ],
)
def test_a_damaged_site_is_built_in_full(tmp_path: Path, damage: object, reason: str) -> None:
    """Nothing of it is believed."""
    _one(tmp_path / "store", NOW - DAY)
    build_site(tmp_path / "store", tmp_path / "site")
    damage(tmp_path / "site")  # type: ignore[operator]
    _one(tmp_path / "store", NOW)
    report = build_site(tmp_path / "store", tmp_path / "site")
    assert reason in report.full_because
    _same_as_full(tmp_path)


def test_the_same_store_again_keeps_everything_it_can(tmp_path: Path) -> None:
    """A build without a new run changes no byte, and ages only with --now."""
    _one(tmp_path / "store", NOW)
    first = build_site(tmp_path / "store", tmp_path / "site")
    before = files_of(tmp_path / "site")
    again = build_site(tmp_path / "store", tmp_path / "site")
    assert (again.digest, again.full_because) == (first.digest, "")
    assert files_of(tmp_path / "site") == before


_BUILD = "import sys; from torchgauge.dashboard import build_site; build_site(*sys.argv[1:], full=True)"


_BUILD_TO_THE_SWAP = """
import sys, time
from torchgauge.dashboard import build_site, site_folder
site_folder._swap = lambda *_: (print("reached", flush=True), time.sleep(3600))
build_site(*sys.argv[1:], full=True)
"""


def test_parallel_builds_leave_one_whole_site(tmp_path: Path) -> None:
    """Four processes at once: every file is there and fits the manifest, nothing stands beside it."""
    store = _nights(tmp_path, [0, 1])
    build_site(store, tmp_path / "expected")
    command = [sys.executable, "-c", _BUILD, str(store), str(tmp_path / "site")]
    for process in [subprocess.Popen(command) for _ in range(4)]:
        assert process.wait(120) == 0
    assert files_of(tmp_path / "site") == files_of(tmp_path / "expected")
    assert not list(tmp_path.glob(".site*"))


def test_a_killed_build_leaves_the_old_site_and_the_next_one_tidies_up(tmp_path: Path) -> None:
    """Killed when all is written and nothing is in its place: readers never see the half of it."""
    store = _nights(tmp_path, [0, 1])
    build_site(store, tmp_path / "site")
    before = files_of(tmp_path / "site")
    _nights(tmp_path, [2])
    command = [sys.executable, "-c", _BUILD_TO_THE_SWAP, str(store), str(tmp_path / "site")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "reached\n"
        process.kill()
    assert files_of(tmp_path / "site") == before
    assert list(tmp_path.glob(".site.*.new"))
    build_site(store, tmp_path / "site")
    assert not list(tmp_path.glob(".site*"))


def test_runs_of_three_schema_versions_are_one_site(tmp_path: Path) -> None:
    """Stores are merged by copying files; the oldest runs first, then one of today on top."""
    data = Path(__file__).parents[1] / "results" / "data"
    for version in ("v0", "v1"):
        shutil.copytree(data / version, tmp_path / "store", dirs_exist_ok=True)
    first = build_site(tmp_path / "store", tmp_path / "site")
    assert first.runs >= 2
    newest = max(info.created_at for info in Store.open(tmp_path / "store").runs())
    _one(tmp_path / "store", newest + DAY)
    report = build_site(tmp_path / "store", tmp_path / "site")
    assert (report.full_because, report.runs) == ("", first.runs + 1)
    _same_as_full(tmp_path)
