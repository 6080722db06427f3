"""A store on a file system that is read-only: it is said before the first case, and readers do not mind."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

from small_disk import with_read_only

SUM = ("toy", "--device", "fake", "--models", "sum", "--config", "eager")


def run_read_only(sandbox: Any, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """A command of torchgauge to which ``folder`` is read-only."""
    return subprocess.run(
        with_read_only(folder, sandbox.command(*words)),
        env=sandbox.environment,
        cwd=sandbox.store_path.parent,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_a_new_run_ends_before_its_first_case(sandbox: Any, ending: Any) -> None:
    """Where a store would be made, and in one that is there, which stays as it was."""
    folder = sandbox.store_path.parent / "elsewhere"
    folder.mkdir()
    store = folder / "store"
    words = ("run", *SUM, *sandbox.quick, "--store", str(store))
    done = run_read_only(sandbox, folder, *words)
    sandbox.assert_ended(done, ending(3, "Read-only file system", state=""))
    assert "try:" in done.stderr
    assert "[1/1]" not in done.stderr
    assert sandbox.run(*words).returncode == 0
    before = sorted(str(each) for each in store.rglob("*"))
    again = run_read_only(sandbox, folder, *words)
    sandbox.assert_ended(again, ending(3, "Read-only file system", state=""))
    assert sorted(str(each) for each in store.rglob("*")) == before


def test_a_run_is_not_resumed_there(sandbox: Any, ending: Any) -> None:
    """It is as resumable as before."""
    two = ("slow", "--device", "fake", "--config", "eager", "--models", "slow_1,slow_2", "--prefetch", "1")
    assert sandbox.measure(*two, "--budget", "0.001s").returncode == 3
    done = run_read_only(sandbox, sandbox.store_path, "run", "--resume", str(sandbox.folder().path))
    sandbox.assert_ended(done, ending(3, "Read-only file system", state="out_of_budget"))
    again = sandbox.run("run", "--resume", str(sandbox.folder().path))
    sandbox.assert_ended(again, ending(0))


def test_what_reads_a_store_needs_not_write_to_it(sandbox: Any) -> None:
    """List, check, query and the dashboard, which lies elsewhere."""
    assert sandbox.measure(*SUM).returncode == 0
    store, site = ("--store", str(sandbox.store_path)), str(sandbox.store_path.parent / "site")
    for words in (
        ("results", "list", *store),
        ("results", "fsck", *store),
        ("results", "query", *store),
        ("dashboard", "build", str(sandbox.store_path), "--out", site),
    ):
        done = run_read_only(sandbox, sandbox.store_path, *words)
        assert done.returncode == 0, (words, done.stderr)
    sandbox.assert_accounted()
