"""A site that is built where one stands has the bytes of one that is built in an empty folder."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pyarrow.parquet as pq
import pytest
from site_files import files_of, generator, small_shape
from store_builder import CPU, DAY, EAGER, NOW, RunBuilder, result, workloads

from torchgauge.dashboard import build_site, site_folder
from torchgauge.dashboard.snapshots import EPOCH_LENGTH
from torchgauge.records import Case, Status


def _nights(folder: Path, which: list[int], **changes: int) -> Path:
    """A store with the nights ``which`` of a shape whose other nights can be added later."""
    path: Path = generator().generate(folder, small_shape(**changes), which)
    return path


def test_nights_that_are_added_leave_no_trace_of_the_site_before(tmp_path: Path) -> None:
    """Over the end of an epoch, a renamed model and a device that stopped, one night or several at once."""
    shape = {"nights": EPOCH_LENGTH + 4, "silent": 2}
    store = _nights(tmp_path, list(range(EPOCH_LENGTH - 2)), **shape)
    build_site(store, tmp_path / "site", now=NOW)
    for nights in (
        [EPOCH_LENGTH - 2, EPOCH_LENGTH - 1],
        [EPOCH_LENGTH],
        [EPOCH_LENGTH + 1, EPOCH_LENGTH + 2],
    ):
        _nights(tmp_path, nights, **shape)
        report = build_site(store, tmp_path / "site", now=NOW)
        assert build_site(store, tmp_path / "again", now=NOW).digest == report.digest
        assert files_of(tmp_path / "site") == files_of(tmp_path / "again")


def test_files_of_a_closed_epoch_stay_as_they_are(tmp_path: Path) -> None:
    """What browsers and mirrors hold is still true after the next night, whatever it brings."""
    shape = {"nights": EPOCH_LENGTH + 3, "silent": 1}
    store = _nights(tmp_path, list(range(EPOCH_LENGTH + 1)), **shape)
    before = _closed(store, tmp_path)
    _nights(tmp_path, [EPOCH_LENGTH + 1, EPOCH_LENGTH + 2], **shape)
    assert {"series", "trends", "data", "snapshots"} == {name.split("/")[0] for name in before}
    assert _closed(store, tmp_path) == before


def _closed(store: Path, folder: Path) -> dict[str, bytes]:
    """The files of the first epoch and of its snapshots, after a build."""
    build_site(store, folder / "site", now=NOW)
    snapshots = json.loads((folder / "site" / "manifest.json").read_bytes())["snapshots"]
    first = {f"snapshots/{each['id']}" for each in snapshots if each["epoch"] == 0}
    return {
        name: content
        for name, content in files_of(folder / "site").items()
        if name.rpartition("/")[0] in first or name.rpartition("/")[2].startswith("0.")
    }


def _one(store: Path, at: float, status: Status = Status.PASS, index: int = 0) -> str:
    run = RunBuilder(f"run-{int(at)}", at)
    result(run, Case(workloads()[index], EAGER, CPU), status)
    run.write(store)
    return run.run_id


def _same_as_anew(tmp_path: Path) -> None:
    build_site(tmp_path / "store", tmp_path / "again", now=NOW)
    assert files_of(tmp_path / "site") == files_of(tmp_path / "again")


def test_a_second_run_of_a_day_changes_its_snapshot(tmp_path: Path) -> None:
    """A night that was lost and repeated: the snapshot and the overview have the result."""
    _one(tmp_path / "store", NOW - 7_200)
    build_site(tmp_path / "store", tmp_path / "site", now=NOW)
    _one(tmp_path / "store", NOW - 3_600, Status.INFRA)
    report = build_site(tmp_path / "store", tmp_path / "site", now=NOW)
    assert (report.passed, report.snapshots) == (1, 1)
    _same_as_anew(tmp_path)
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


@pytest.mark.parametrize("change", [_change_late, _change_vanished, _change_rewritten])
def test_a_store_with_another_past_gives_another_site(tmp_path: Path, change: Callable[[Path], None]) -> None:
    """Late, vanished and rewritten runs: the site is that of the store as it is."""
    for age in (2 * DAY, DAY, 60):
        _one(tmp_path / "store", NOW - age)
    before = build_site(tmp_path / "store", tmp_path / "site", now=NOW)
    change(tmp_path / "store")
    assert build_site(tmp_path / "store", tmp_path / "site", now=NOW).digest != before.digest
    _same_as_anew(tmp_path)


def _manifest_cut(site: Path) -> None:
    (site / "manifest.json").write_bytes((site / "manifest.json").read_bytes()[:300])


def _file_missing(site: Path) -> None:
    next((site / "snapshots").rglob("*.core.json")).unlink()


def _of_a_version_that_kept_state(site: Path) -> None:
    """Until November 2026 a site held what the next build started from."""
    (site / "state").mkdir()
    (site / "state" / "runs.json").write_text('{"runs":[],"metrics":[]}')
    (site / "state" / "cases.parquet").write_bytes(b"PAR1")


@pytest.mark.parametrize("change", [_manifest_cut, _file_missing, _of_a_version_that_kept_state])
def test_a_damaged_or_older_site_is_replaced_whole(tmp_path: Path, change: Callable[[Path], None]) -> None:
    """Nothing of it is believed, and nothing of it stays."""
    _one(tmp_path / "store", NOW - DAY)
    build_site(tmp_path / "store", tmp_path / "site", now=NOW)
    change(tmp_path / "site")
    _one(tmp_path / "store", NOW)
    build_site(tmp_path / "store", tmp_path / "site", now=NOW)
    _same_as_anew(tmp_path)


def test_the_same_store_again_changes_no_byte(tmp_path: Path) -> None:
    """And ages only with --now."""
    _one(tmp_path / "store", NOW)
    first = build_site(tmp_path / "store", tmp_path / "site", now=NOW)
    before = files_of(tmp_path / "site")
    again = build_site(tmp_path / "store", tmp_path / "site", now=NOW)
    assert again == first
    assert files_of(tmp_path / "site") == before


_BUILD = f"import sys; from torchgauge.dashboard import build_site; build_site(*sys.argv[1:], now={NOW})"
_BUILD_TO_THE_SWAP = f"""
import sys, time
from torchgauge.dashboard import build_site, site_folder
site_folder._swap = lambda *_: (print("reached", flush=True), time.sleep(3600))
build_site(*sys.argv[1:], now={NOW})
"""


def test_parallel_builds_leave_one_whole_site(tmp_path: Path) -> None:
    """Four processes at once: every file is there and fits the manifest, nothing stands beside it."""
    store = _nights(tmp_path, [0, 1])
    build_site(store, tmp_path / "expected", now=NOW)
    command = [sys.executable, "-c", _BUILD, str(store), str(tmp_path / "site")]
    with ExitStack() as stack:
        processes = [stack.enter_context(subprocess.Popen(command)) for _ in range(4)]
        assert [process.wait(120) for process in processes] == [0, 0, 0, 0]
    assert files_of(tmp_path / "site") == files_of(tmp_path / "expected")
    assert not list(tmp_path.glob(".site*"))


def test_a_folder_that_was_just_made_is_nobodys_to_tidy_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second build that begins between another's folder and its lock leaves the folder alone."""
    made, mkdir, finished = Event(), Path.mkdir, []

    def slow(self: Path, *args: Any, **options: Any) -> None:
        mkdir(self, *args, **options)
        if self.suffix == ".new" and not made.is_set():
            made.set()
            second.join(0.5)

    def write(content: bytes) -> None:
        with site_folder.writing_site(tmp_path / "site") as writer:
            writer.write("index.html", content)
        finished.append(content)

    monkeypatch.setattr(Path, "mkdir", slow)
    second = Thread(target=lambda: made.wait(120) and write(b"second"))
    second.start()
    write(b"first")
    second.join(120)
    assert sorted(finished) == [b"first", b"second"]
    assert [path.name for path in tmp_path.iterdir()] == ["site"]


def test_a_killed_build_leaves_the_old_site_and_the_next_one_tidies_up(tmp_path: Path) -> None:
    """Killed when all is written and nothing is in its place: readers never see the half of it."""
    store = _nights(tmp_path, [0, 1])
    build_site(store, tmp_path / "site", now=NOW)
    before = files_of(tmp_path / "site")
    _nights(tmp_path, [2])
    command = [sys.executable, "-c", _BUILD_TO_THE_SWAP, str(store), str(tmp_path / "site")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "reached\n"
        process.kill()
    assert files_of(tmp_path / "site") == before
    assert list(tmp_path.glob(".site.*.new"))
    build_site(store, tmp_path / "site", now=NOW)
    assert not list(tmp_path.glob(".site*"))
