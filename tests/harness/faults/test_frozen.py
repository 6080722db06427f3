"""A process that stands still: nobody hears from it, and nothing ends it but SIGKILL."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path
from typing import Any

from waiting import wait_until


def test_a_frozen_worker_costs_its_case_and_no_other(sandbox: Any, ending: Any) -> None:
    """Its phase passes its deadline, and the row says so; every planned case has one row."""
    gate = sandbox.store_path.parent / "gate"
    gate.mkdir()
    (gate / "ticket-0").touch()
    sandbox.environment["TORCHGAUGE_FAULTS_GATE"] = str(gate)
    store = ("--store", str(sandbox.store_path))
    words = ("slow", "--device", "fake", "--config", "eager", "--timeout", "12", "--prefetch", "1")
    process = sandbox.start("run", *words, *sandbox.quick, *store)
    sandbox.wait_for_rows(1)
    (host,) = children(children(process.pid)[0])
    workers = wait_until(lambda: children(host), "a worker of the host")  # the next one waits for its ticket
    for worker in workers:
        os.kill(worker, signal.SIGSTOP)
    (gate / "open").touch()
    _, said = process.communicate(timeout=120)
    done = subprocess.CompletedProcess(process.args, process.returncode, "", said)
    rows = sandbox.assert_ended(done, ending(1))
    (frozen,) = [row for row in rows if row.status.value != "pass"]
    assert frozen.status.value == "timeout"
    assert "took longer than 12 s" in frozen.reason


def children(pid: int) -> list[int]:
    """Process ids of the direct children of ``pid``."""
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
