"""Commands that measure with an executor, and what must hold of what they leave."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torchgauge.records import Cause, Result, Status

GATE = "TORCHGAUGE_FAULTS_GATE"
SLOW = ("slow", "--device", "fake", "--config", "eager")


def assert_whole(sandbox: Any) -> list[Result]:
    """The rows of the only run: each planned case once, published, and nothing left of those who measured."""
    rows: list[Result] = sandbox.assert_accounted()
    return rows


def lost(rows: list[Any]) -> list[Any]:
    """The rows of cases that nobody measured."""
    found = [row for row in rows if row.status is Status.INFRA]
    assert {row.cause for row in found} == {Cause.LOST_WORKER}
    return found


def gate(sandbox: Any, tickets: int) -> Path:
    """The gate of the suite ``slow``: so many models may be built, the others wait for ``open``."""
    folder = sandbox.store_path.parent / "gate"
    folder.mkdir()
    for number in range(tickets):
        (folder / f"ticket-{number}").touch()
    sandbox.environment[GATE] = str(folder)
    return folder


def started(sandbox: Any, place: Any, *more: str, **options: str) -> Any:
    """``torchgauge run`` of the six slow models, which goes on."""
    store = ("--store", str(sandbox.store_path))
    return sandbox.start("run", *SLOW, *sandbox.quick, *store, *place.words(**options), *more)


def running_worker(sandbox: Any) -> int:
    """The process id of the `torchgauge worker` that measures."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")
            ours = sandbox.marker.encode() in (process / "environ").read_bytes()
        except OSError:
            continue
        if ours and words[1:4] == [b"-m", b"torchgauge.cli.main", b"worker"]:
            return int(process.name)
    raise AssertionError("no worker")
