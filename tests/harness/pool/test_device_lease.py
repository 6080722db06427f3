"""A device is for one run at a time, and whoever escaped from a run that was killed still has it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from torchgauge.devices.device import DeviceDescriptor
from torchgauge.harness.pool.device_lease import FOLDER, physical
from torchgauge.processes import process_tree

DEVICE = DeviceDescriptor("acc", "Accelerator", "m:c", "acc", visibility_variables=("ACC_VISIBLE", "OLD"))
ASK = """
import sys
from torchgauge.devices.device import DeviceDescriptor
from torchgauge.errors import InfrastructureError
from torchgauge.harness.pool.device_lease import leases, said
from torchgauge.records import DeviceTarget
device = DeviceDescriptor("acc", "Accelerator", "m:c", sys.argv[1])
try:
    held = leases(device, DeviceTarget("acc", int(sys.argv[2])), int(sys.argv[3]))
except InfrastructureError as error:
    sys.exit(f"{error}")
assert leases(device, DeviceTarget("acc", int(sys.argv[2])), int(sys.argv[3])) == held
print(len(held), *said(), flush=True)
"""
DAEMON = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        print(os.getpid(), flush=True)
        time.sleep(600)
    os._exit(0)
time.sleep(600)
"""
CLOSING_DAEMON = DAEMON.replace("print(", "os.closerange(3, 1000); print(", 1)
RUN = (
    ASK
    + """
import os, time
from torchgauge.harness.pool.strays import MARK, mark_of
from torchgauge.processes.kept_process import KeptProcess
mark = {MARK: mark_of(held)} if sys.argv[5] else {}
child = KeptProcess([sys.executable, "-c", sys.argv[4]], {**os.environ, **mark}, pass_fds=held)
print(child.pid, flush=True)
time.sleep(600)
"""
)


@pytest.fixture(autouse=True)
def _own_leases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(FOLDER, str(tmp_path / "leases"))


def ask(index: int = 0, count: int = 1, torch_type: str = "acc") -> subprocess.CompletedProcess[str]:
    """What another run is told that wants ``count`` devices."""
    words = [sys.executable, "-c", ASK, torch_type, str(index), str(count)]
    return subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)


def start(
    index: int = 0, count: int = 1, code: str = "import time; time.sleep(600)", *, marked: bool = False
) -> subprocess.Popen[str]:
    """A run that has them, with a child below a keeper."""
    words = [sys.executable, "-c", RUN, "acc", str(index), str(count), code, "marked" if marked else ""]
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True)


def line_of(process: subprocess.Popen[str]) -> int:
    """The next number that it prints."""
    assert process.stdout is not None
    return int(process.stdout.readline())


def test_a_second_run_is_told_who_has_the_device(tmp_path: Path) -> None:
    """With what to try; another device of the type is free, and so is this one when the first run ends."""
    with start() as first:
        line_of(first), line_of(first)
        busy = ask()
        assert busy.returncode == 1
        assert (
            f"device 'acc.0' is busy: pid {first.pid} (" in busy.stderr or f"pid {first.pid} (" in busy.stderr
        )
        assert "try: wait until this process ends, or end it" in busy.stderr
        assert ask(1).stdout == "1\n"
        assert "device 'acc.0' is busy" in ask(0, count=2).stderr
        first.kill()
    assert ask().stdout == "1\n"
    assert oct((tmp_path / "leases").stat().st_mode)[-4:] == "1777"


def test_a_daemon_that_escaped_keeps_the_device_busy_until_it_is_gone() -> None:
    """Driver, keeper and child are killed at once, so that nobody is left to end the daemon; it is named."""
    with start(code=DAEMON) as first:
        line_of(first)
        numbers = {line_of(first), line_of(first)}  # the daemon and the keeper, in any order
        (keeper,) = [each for each in numbers if _parent(each) == first.pid]
        (daemon,) = numbers - {keeper}
        os.kill(keeper, signal.SIGSTOP)  # else it would do its work
        first.kill()
        os.kill(keeper, signal.SIGKILL)
    try:
        busy = ask()
        assert f"device 'acc.0' is busy: pid {daemon} (" in busy.stderr, busy.stderr
    finally:
        os.kill(daemon, signal.SIGKILL)
    assert ask().stdout == "1\n"


def test_a_daemon_that_closed_its_lease_is_ended_by_the_next_run() -> None:
    """Driver, keeper and child are killed at once; the lease is free, and only a mark leads to the daemon."""
    with start(code=CLOSING_DAEMON, marked=True) as first:
        line_of(first)
        numbers = {line_of(first), line_of(first)}
        (keeper,) = [each for each in numbers if _parent(each) == first.pid]
        (daemon,) = numbers - {keeper}
        os.kill(keeper, signal.SIGSTOP)
        first.kill()
        os.kill(keeper, signal.SIGKILL)
    try:
        after = ask()
        assert (after.returncode, after.stdout.split()[0]) == (0, "1"), after.stderr
        assert f"ended a process that a killed run had left on device 'acc.0': pid {daemon} (" in after.stdout
        assert not process_tree.alive([daemon])
    finally:
        process_tree.signal_one(daemon, signal.SIGKILL)


def test_a_marked_process_of_a_living_run_is_left_alone() -> None:
    """Another device's run lives: its processes have another lease in their mark."""
    with start(1, code=CLOSING_DAEMON, marked=True) as first:
        line_of(first)
        numbers = {line_of(first), line_of(first)}
        assert ask().stdout.split() == ["1"]
        assert sorted(process_tree.alive(list(numbers))) == sorted(numbers)
        first.kill()
    assert ask(1).stdout.split()[0] == "1"


def test_a_killed_run_frees_the_device_with_all_that_it_left() -> None:
    """Its keeper ends the daemon while the next run waits."""
    with start(code=DAEMON) as first:
        for _ in range(3):
            line_of(first)
        first.kill()
    assert ask().stdout == "1\n"


def test_a_folder_that_cannot_be_used_is_said(tmp_path: Path) -> None:
    """With the variable that names another."""
    (tmp_path / "leases").write_text("")
    assert FOLDER in ask().stderr


@pytest.mark.parametrize(
    ("environment", "unit"),
    [
        ({}, "1"),
        ({"ACC_VISIBLE": "4, 7"}, "7"),
        ({"OLD": "GPU-a,GPU-b"}, "GPU-b"),
        ({"ACC_VISIBLE": "4"}, "1"),
    ],
)
def test_the_same_device_has_one_name_however_it_is_selected(environment: dict[str, str], unit: str) -> None:
    """Index 1 of what is visible is the second entry."""
    assert physical(DEVICE, 1, environment) == unit


def _parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
