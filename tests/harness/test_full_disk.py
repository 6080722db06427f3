"""A disk that fills up under a case: the environment broke, and the model is not blamed for it."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from typing import Any

import pytest
from small_disk import with_small_disk

pytestmark = pytest.mark.torch
MODELS = "bus_error,writes_more_than_there_is,maps_more_than_there_is,after_maps_more_than_there_is"


@pytest.fixture(scope="session")
def rows(make_sandbox: Callable[[], Any]) -> dict[str, Any]:
    """The rows of models that meet a full disk, by name: their folder for temporary files is a small one."""
    sandbox = make_sandbox()
    disk = sandbox.temporary.with_name("disk")
    words = ("--device", "cpu", "--config", "eager", "--models", MODELS, "--store", str(sandbox.store_path))
    alone = ("--prefetch", "1")  # one model fills the disk at a time
    command = sandbox.command("run", "faults", *sandbox.quick, *alone, *words)
    done = subprocess.run(
        with_small_disk(disk, command, size="16m"),
        env=sandbox.environment | {"TMPDIR": str(disk)},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert sandbox.store_path.exists(), done.stderr
    assert done.returncode == 3, done.stderr
    return {row.case.workload.model: row for row in sandbox.rows()}


def _ending(row: Any) -> tuple[str, str | None]:
    return row.status.value, row.cause.value if row.cause else None


def test_a_mapped_file_that_cannot_grow_is_no_crash_of_the_model(rows: dict[str, Any]) -> None:
    """SIGBUS while a folder of the worker is full: the row names the folder and what was free of it."""
    row = rows["maps_more_than_there_is"]
    assert _ending(row) == ("infra", "disk_full"), row.reason
    assert "SIGBUS" in row.reason
    assert "/disk had 0 of 16,777,216 bytes free" in row.reason


def test_an_error_of_a_full_disk_is_no_error_of_the_model(rows: dict[str, Any]) -> None:
    """What the kernel refused to write for want of room."""
    row = rows["writes_more_than_there_is"]
    assert _ending(row) == ("infra", "disk_full")
    assert "No space left on device" in row.reason


def test_sigbus_without_a_full_disk_is_a_crash(rows: dict[str, Any]) -> None:
    """The signal alone is no evidence."""
    assert _ending(rows["bus_error"]) == ("crash", "signal")


def test_the_next_case_is_measured(rows: dict[str, Any]) -> None:
    """Though the disk is full still: it needs none of it."""
    assert _ending(rows["after_maps_more_than_there_is"]) == ("pass", None)


def test_a_disk_without_room_for_a_run_is_said_before_it(make_sandbox: Callable[[], Any]) -> None:
    """How much there is and how much the cases may take; no case is measured, and no run begins."""
    sandbox = make_sandbox()
    disk = sandbox.temporary.with_name("disk")
    command = sandbox.command("run", "toy", "--device", "fake", "--models", "sum", "--store", f"{disk}/store")
    done = subprocess.run(
        with_small_disk(disk, [*command, *sandbox.quick], size="1m"),
        env=sandbox.environment,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 3, done.stderr
    assert "MB free, and a run of 2 cases may write 1.3 MB" in done.stderr
    assert "try: free disk space" in done.stderr
    assert "[2/2]" not in done.stderr
