"""Who is a stray, and who only looks like one: a mark is inherited by whoever is started below."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from torchgauge.harness.pool import strays

ASK = """
import os, sys
from torchgauge.harness.pool import strays
lease = os.open(sys.argv[1], os.O_RDONLY)
print(os.getpid() in strays.of_the_dead(lease), os.getppid() in strays.of_the_dead(lease))
"""
NEST = "import subprocess, sys; subprocess.run([sys.executable, '-c', *sys.argv[1:]], check=True)"


def test_a_command_that_was_started_below_a_dead_run_does_not_end_itself(tmp_path: Path) -> None:
    """Nor whoever started it, such as a terminal that outlived the worker which it was opened in."""
    lease = tmp_path / "acc.0"
    lease.touch()
    found = lease.stat()
    mark = {strays.MARK: f"0123456789abcdef {found.st_dev:x}:{found.st_ino:x}"}
    command = [sys.executable, "-c", NEST, ASK, str(lease)]
    done = subprocess.run(
        command, env={**os.environ, **mark}, capture_output=True, text=True, timeout=120, check=True
    )
    assert done.stdout.split() == ["False", "False"]


def test_what_is_below_is_no_stray_while_others_come_and_go() -> None:
    """Healthy children of other runners are started all the time."""
    mark = {strays.MARK: strays._TOKEN}
    loop = "import subprocess, sys\nwhile True: subprocess.run(['true'])"
    child = subprocess.Popen([sys.executable, "-c", loop], env={**os.environ, **mark})
    try:
        assert [strays.escaped() for _ in range(30)] == [[]] * 30
    finally:
        child.kill()
        child.wait()
