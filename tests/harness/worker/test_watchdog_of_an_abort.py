"""A process of a group that aborts: its watchdog tells, and the process ends as it would have."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

PROCESS = """
import ctypes, faulthandler, sys
from pathlib import Path
from torchgauge.harness.worker.watchdog import Watchdog

faulthandler.enable()
entry = dict(profiling_name="gloo:all_reduce", collective_seq_id=7, retired=True)
Watchdog(0, Path(sys.argv[1]), lambda record: print(record, flush=True), lambda: [entry]).start()
{abort}
"""


@pytest.mark.parametrize(
    ("abort", "told"),
    [
        ("ctypes.CDLL(None).abort()", True),
        ("ctypes.PyDLL(None).abort()", False),  # it keeps Python's lock, as a crash in an extension does
    ],
)
def test_it_tells_its_last_call_prints_its_stack_and_ends_by_the_signal(
    tmp_path: Path, abort: str, told: bool
) -> None:
    """Where nothing can be told it ends all the same."""
    done = subprocess.run(
        [sys.executable, "-c", PROCESS.format(abort=abort), str(tmp_path / "asked")],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == -signal.SIGABRT
    assert "Fatal Python error: Aborted" in done.stderr
    assert ("operation='all_reduce'" in done.stdout and "ended=False" in done.stdout) is told
