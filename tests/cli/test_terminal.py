"""On a terminal of 80 columns every line fits, something moves at once, and a pipe gets plain lines."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time
from pathlib import Path
from typing import Any

import pytest
from waiting import PATIENCE_S

COLUMNS = 80
MOVES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
RUN = ("run", "toy", "--models", "noop,sum", "--device", "fake", "--config", "eager", "--no-calibration")


def on_terminal(*words: str, columns: int = COLUMNS, **variables: str) -> tuple[str, int]:
    """What ``torchgauge words`` writes on a terminal of so many columns, and how it ends."""
    pid, terminal = pty.fork()
    if pid == 0:  # the child, which is nothing but the command
        environment = {**os.environ, "TERM": "xterm-256color"}
        environment.pop("COLUMNS", None)
        environment |= variables
        os.execve(sys.executable, [sys.executable, "-m", "torchgauge", *words], environment)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    said, deadline = b"", time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        if not select.select([terminal], [], [], 1.0)[0]:
            continue
        try:
            data = os.read(terminal, 65536)
        except OSError:  # a terminal that nobody writes to any more
            break
        if not data:
            break
        said += data
    else:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        raise AssertionError(
            f"waited {PATIENCE_S:.0f} s in vain for the end of {words}, which wrote {said!r}"
        )
    os.close(terminal)
    return said.decode(), os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def lines(said: str) -> list[str]:
    """The lines that stay: what a live line drew and took back is none of them."""
    kept = (each.rpartition("\x1b[2K")[2] for each in said.replace("\r\n", "\n").split("\n"))
    return [line for each in kept if (line := MOVES.sub("", each))]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, int]:
    """A short run on a terminal; the path of its store is long, as paths are."""
    store = tmp_path_factory.mktemp("a-folder-with-a-name-that-is-rather-long-for-a-terminal") / "store"
    return on_terminal(*RUN, "--measure-seconds", "0.1", "--store", str(store))


def test_a_run_fits_the_terminal_and_leaves_it_as_it_was(run: tuple[str, int]) -> None:
    """One line for each case; the first thing said moves, and the cursor is shown again."""
    said, code = run
    assert code == 0, said
    assert said.index("planning: ") < said.index("2 cases in 2 groups")
    assert said.rindex("\x1b[?25h") > said.rindex("\x1b[?25l")
    found = lines(said)
    assert sum(bool(re.match(r"\[[12]/2\] (noop|sum) eager: pass ", each)) for each in found) == 2, found
    wide = [each for each in found if len(each) > COLUMNS]
    assert [each for each in wide if not re.match(r"(run \S+|logs) in /", each)] == []  # a path stays whole


def test_no_colour_is_said_where_nobody_wants_it() -> None:
    """With ``NO_COLOR`` nothing is coloured; a mistake is told as on any other terminal."""
    said, code = on_terminal("run", "toy", "--models", "nosuch", "--device", "fake", NO_COLOR="1")
    assert code == 2, said
    assert not COLOUR.search(said)
    assert any("nosuch" in each for each in lines(said))


@pytest.mark.parametrize(
    ("columns", "said"),
    [(0, None), (80, "-3")],
)
def test_any_width_of_a_terminal_shows_everything(tmp_path: Path, columns: int, said: str | None) -> None:
    """A terminal that says no width, as that of a step of continuous integration, has the usual one."""
    variables = {} if said is None else {"COLUMNS": said, "LINES": said}
    store = ("--store", str(tmp_path / "store"))
    commands: list[tuple[tuple[str, ...], int, str]] = [
        ((*RUN, "--measure-seconds", "0.1", *store), 0, "2/2 pass"),
        (("results", "list", *store), 0, "complete"),
        (("results", "show", "latest", *store), 0, "pass"),
        (("suites", "list"), 0, "toy"),
        (("run", "toy", "--device", "nosuch", *store), 2, "nosuch"),
        (("run", "toy", "--device"), 2, "--device"),
    ]
    for words, code, shown in commands:
        text, ended = on_terminal(*words, columns=columns, **variables)
        assert ended == code, text
        assert shown in text.replace("\r\n", "")
        assert "Traceback" not in text


def test_a_pipe_gets_no_control_characters(tmp_path: Path, process: Any) -> None:
    """Neither from a run nor from help, tables and mistakes."""
    done = process(*RUN, "--measure-seconds", "0.1", "--store", str(tmp_path / "store"))
    assert done.returncode == 0, done.stderr
    others = [process(*words) for words in (("--help",), ("suites", "list"), ("run", "--device", "nosuch"))]
    for text in (part for each in (done, *others) for part in (each.stdout, each.stderr)):
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f]", text)
    assert "planning" not in done.stderr
