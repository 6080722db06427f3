"""A disk that is full in the middle of a run ends it with words, and the run can be resumed."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

import pytest
from waiting import wait_until

GATE = "TORCHGAUGE_FAULTS_GATE"
PROBED = ("--measure-seconds", "0.1", "--no-calibration", "--threads", "1")
"""With the memory probe, whose job is written after the group was measured and before its row is."""
MODELS = "slow_1,slow_2"
LIMITED = """
import resource, signal, sys
from torchgauge.harness.worker.capped_log import CappedLog
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (4, resource.RLIM_INFINITY))
log = CappedLog(sys.argv[1], 100)
log.write(b"four bytes and many more")
log.write(b"and more")
print(log.close())
"""


@pytest.mark.parametrize("prefetch", ["1", "2"])
def test_a_full_disk_in_the_middle_of_a_run_is_an_error_with_a_way_on(sandbox, ending, prefetch: str) -> None:
    """The next file that the parent writes does not fit; its rows are there, nothing is left running."""
    gate = sandbox.store_path.parent / "gate"
    gate.mkdir()
    sandbox.environment[GATE] = str(gate)
    store = ("--store", str(sandbox.store_path))
    words = ("--device", "fake", "--config", "eager", "--models", MODELS, "--prefetch", prefetch)
    process = sandbox.start("run", "slow", *words, *PROBED, *store)
    wait_until(
        lambda: any(_in_build(path) for path in sandbox.store_path.glob("runs/[!.]*/work/**/events")),
        "a worker that builds",
    )
    before = resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (1, resource.RLIM_INFINITY))
    assert before[0] == resource.RLIM_INFINITY
    (gate / "open").touch()
    _, said = process.communicate(timeout=120)
    assert process.returncode == 3, said
    assert "Traceback" not in said
    assert "File too large" in said
    assert "free disk space" in said
    assert sandbox.survivors() == []

    done = sandbox.run("run", "--resume", str(sandbox.folder().path))
    sandbox.assert_ended(done, ending(0))


def test_a_log_that_cannot_be_written_costs_no_worker(tmp_path: Path) -> None:
    """The host goes on: what is measured does not depend on what is printed."""
    path = tmp_path / "log"
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(path)], capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stdout) == (0, "32\n"), done.stderr
    assert path.read_bytes() == b"four"


def _in_build(events: Path) -> bool:
    return b'"phase":"build"' in events.read_bytes()
