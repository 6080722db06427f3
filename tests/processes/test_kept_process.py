"""What torchgauge starts ends with it, whatever it is doing and however torchgauge ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from waiting import PATIENCE_S, left_after_patience, wait_until

from torchgauge.processes.kept_process import KeptProcess, run
from torchgauge.processes.passed_variables import passed

DAEMON = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', {!r}], start_new_session=True); "
SLEEP = "import time; time.sleep(600)"
KILLED_PARENT = """
import os, subprocess, sys, time
from torchgauge.processes.kept_process import KeptProcess
command = [sys.executable, "-c", sys.argv[1]]
child = KeptProcess(command, dict(os.environ), remove=[sys.argv[2]], stdin=subprocess.PIPE)
print(child.child_pid, flush=True)
time.sleep(600)
"""


@pytest.fixture
def mark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A variable by which every process that a test started is found."""
    text = f"TORCHGAUGE_TEST_MARKER={tmp_path}"
    monkeypatch.setenv(*text.split("="))
    yield text
    assert alive_after_patience(text) == []


def alive(mark: str) -> list[int]:
    """Processes with ``mark`` in their environment, but for this one."""
    found = []
    for each in Path("/proc").iterdir():
        if each.name.isdigit() and int(each.name) != os.getpid():
            try:
                if mark.encode() in (each / "environ").read_bytes().split(b"\0"):
                    found.append(int(each.name))
            except OSError:
                continue
    return found


def alive_after_patience(mark: str) -> list[int]:
    """Return the processes that are there when patience ends; what a test starts sleeps for ten minutes."""
    return left_after_patience(lambda: alive(mark))


def wait_for(mark: str, count: int) -> None:
    """Return when there are ``count`` processes."""
    wait_until(lambda: len(alive(mark)) >= count, lambda: f"{count} processes; {alive(mark)} live")


@pytest.mark.parametrize(
    ("code", "processes"),
    [(SLEEP, 2), (DAEMON.format(SLEEP) + SLEEP, 3), ("while True: pass", 2), ("input()", 2)],
    ids=["asleep", "with a daemon", "busy", "ends by itself"],
)
@pytest.mark.parametrize("stopped", [False, True], ids=["running", "stopped"])
def test_a_killed_parent_takes_everything_along(
    mark: str, tmp_path: Path, code: str, processes: int, stopped: bool
) -> None:
    """Also what looks at no pipe, what was stopped, and what left its session; and its folder."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    command = [sys.executable, "-c", KILLED_PARENT, code, str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        wait_for(mark, processes + 1)
        if stopped:
            os.kill(child, signal.SIGSTOP)
        parent.kill()
    assert alive_after_patience(mark) == []
    wait_until(lambda: not folder.exists(), f"{folder} to be removed")


def test_a_killed_child_leaves_no_daemon(mark: str) -> None:
    """What it started is adopted, and ends with it."""
    process = KeptProcess([sys.executable, "-c", DAEMON.format(SLEEP) + SLEEP], passed())
    wait_for(mark, 3)
    os.kill(process.child_pid, signal.SIGKILL)
    assert process.wait(PATIENCE_S) == -signal.SIGKILL
    assert alive_after_patience(mark) == []


def test_a_killed_keeper_takes_its_child_along(mark: str) -> None:
    """Nobody else would watch it."""
    process = KeptProcess([sys.executable, "-c", SLEEP], passed())
    process.kill()
    process.wait(PATIENCE_S)
    assert alive_after_patience(mark) == []


@pytest.mark.parametrize(
    ("code", "ending"),
    [
        ("pass", 0),
        ("raise SystemExit(3)", 3),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", -signal.SIGSEGV),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL),
        ("import os, signal; os.kill(os.getpid(), signal.SIGTERM)", -signal.SIGTERM),
        ("import signal; assert signal.getsignal(signal.SIGCHLD) is signal.SIG_DFL", 0),
        ("import signal; assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL", 0),
    ],
)
def test_the_end_is_that_of_the_command(mark: str, code: str, ending: int) -> None:
    """Its code or its signal; and it begins with signals as any process does."""
    assert run([sys.executable, "-c", code], passed()).returncode == ending


def test_ctrl_c_is_met_as_by_any_process(mark: str) -> None:
    """Who was started in the background of a shell ignores it, and so does what it starts."""
    words = [sys.executable, "-c", "import signal; print(signal.getsignal(signal.SIGINT))"]
    plain = subprocess.run(words, capture_output=True, text=True, check=True)
    assert run(words, passed()).stdout.split(" at ")[0] == plain.stdout.split(" at ")[0]


def test_what_is_said_comes_back_apart(mark: str, tmp_path: Path) -> None:
    """Both streams as text, or both in one file; nothing can be read."""
    code = "import sys; print('out'); print('err', file=sys.stderr); print(repr(sys.stdin.read()))"
    done = run([sys.executable, "-c", code], passed())
    assert (done.stdout, done.stderr) == ("out\n''\n", "err\n")
    with (tmp_path / "output").open("wb") as output:
        assert run([sys.executable, "-u", "-c", code], passed(), output=output).stdout == ""
    assert (tmp_path / "output").read_text() == "out\nerr\n''\n"


@pytest.mark.parametrize(("name", "error"), [("nothing-here", FileNotFoundError), (".", PermissionError)])
def test_a_command_that_cannot_be_started_is_an_error_at_once(
    mark: str, tmp_path: Path, name: str, error: type[OSError]
) -> None:
    """With the name of the command."""
    command = str(tmp_path / name)
    with pytest.raises(error) as raised:
        run([command], passed())
    assert raised.value.filename == command


def test_what_takes_too_long_is_killed_with_its_daemon(mark: str) -> None:
    """And what it had said is told."""
    code = "setsid sleep 600 & echo begun; exec sleep 600"  # a shell has begun long before the limit
    with pytest.raises(subprocess.TimeoutExpired) as late:
        run(["sh", "-c", code], passed(), timeout=3.0)
    assert late.value.stdout == b"begun\n"


def test_a_child_has_no_pipe_of_ours(mark: str) -> None:
    """It could keep open, or close, what tells that we are gone."""
    code = "import json, os; print(json.dumps([os.readlink(f'/proc/self/fd/{n}') for n in os.listdir('/proc/self/fd') if int(n) > 2 and os.path.exists(f'/proc/self/fd/{n}')]))"  # noqa: E501
    found = json.loads(run([sys.executable, "-c", code], passed()).stdout)
    assert [each for each in found if each.startswith("pipe:")] == []


SCRATCH_PARENT = """
import os, signal, sys
from torchgauge.processes.kept_process import run, scratch
signal.signal(signal.SIGINT, signal.default_int_handler)  # who was started in the background ignores it
with scratch("test", sys.argv[2]) as folder:
    (folder / "output").write_text("HF_TOKEN=secret")
    words = [sys.executable, "-c", "print('up', flush=True); " + sys.argv[1]]
    run(words, dict(os.environ), output=sys.stdout.buffer)
"""


@pytest.mark.parametrize("ends", [signal.SIGKILL, signal.SIGINT])
def test_what_a_worker_said_goes_with_a_torchgauge_that_ended_before_it_was_read(
    mark: str, tmp_path: Path, ends: signal.Signals
) -> None:
    """It holds secrets until the parent has read it."""
    with subprocess.Popen(
        [sys.executable, "-c", SCRATCH_PARENT, SLEEP, str(tmp_path)],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    ) as parent:  # fmt: skip
        assert parent.stdout is not None
        assert parent.stdout.readline() == "up\n"
        (folder,) = tmp_path.glob("torchgauge-test-*")
        assert (folder / "output").is_file()
        parent.send_signal(ends)
    assert alive_after_patience(mark) == []
    assert not folder.exists()
