"""Starting a process: with the variables that it is given, and an end when torchgauge ends."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NoReturn

from torchgauge.processes import process_tree

KEEPER = Path(__file__).with_name("keeper.py")
KEEPER_VARIABLE = "TORCHGAUGE_KEEPER"
"""The path of a program in the place of :data:`KEEPER`: torchgauge's own tests fork hosts with it."""
_SCRATCH: list[str] = []
"""The folders of :func:`scratch` that are open."""
INTERRUPTED = 130
"""The exit code of a command that Ctrl-C ended, as a shell says it."""
_KEPT: weakref.WeakSet[KeptProcess] = weakref.WeakSet()
"""The processes that were started and may still run."""
END_S = 3.0
"""How long the end of a process and of all that it started may take."""
_LIFELINE: list[tuple[int, int, int]] = []
"""The pipe of this process whose end tells keepers that it is gone: process id, end to read, end to hold."""


class KeptProcess(subprocess.Popen[bytes]):
    """A process below a keeper, which ends it with all that it started when torchgauge is gone, however.

    ``pid`` and the signals of ``Popen`` are the keeper's, ``child_pid`` is the process. ``environment`` is
    all of what it is given (:func:`torchgauge.processes.passed_variables.passed`). The folders
    ``remove``, and those of :func:`scratch`, go with a torchgauge that was killed.
    Raises ``OSError`` where the command cannot be started.
    """

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        *,
        remove: Sequence[str] = (),
        pass_fds: Sequence[int] = (),
        **streams: Any,
    ) -> None:
        # Each process has one lifeline: a fork must not use its parent's.
        if not _LIFELINE or _LIFELINE[0][0] != os.getpid():
            _LIFELINE[:] = [(os.getpid(), *os.pipe())]
        lifeline = _LIFELINE[0][1]
        answer, tells = os.pipe()
        words = [str(lifeline), str(tells), json.dumps([*remove, *_SCRATCH]), *command]
        try:
            super().__init__(
                [sys.executable, "-I", "-S", os.environ.get(KEEPER_VARIABLE, str(KEEPER)), *words],
                env=dict(environment),
                pass_fds=(*pass_fds, lifeline, tells),
                **streams,
            )
        except BaseException:
            os.close(answer)
            raise
        finally:
            os.close(tells)
        with os.fdopen(answer, "rb") as pipe:  # ends when the command runs, or cannot
            said = dict(line.split() for line in pipe.read().decode().splitlines())  # in any order
        self.child_pid = int(said.get("pid", self.pid))
        _KEPT.add(self)
        if said.keys() != {"pid"}:
            self.wait()
            for stream in (self.stdin, self.stdout, self.stderr):
                if stream is not None:
                    stream.close()
            number = int(said.get("error", 0))
            raise OSError(
                number, os.strerror(number) if number else "the process could not be supervised", command[0]
            )

    def end(self) -> None:
        """Kill the process and everything that it started; returns when they are gone."""
        if self.poll() is None:
            self.send_signal(signal.SIGTERM)
            try:
                self.wait(END_S)
            except subprocess.TimeoutExpired:
                self.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):  # what no signal ends is nobody's to wait for
            self.wait(END_S)


def new_scratch(name: str) -> str:
    """A new folder among the temporary ones, which :func:`remove_scratch` removes, or whoever ends us."""
    path = str(Path(tempfile.gettempdir(), f"torchgauge-{name}-{secrets.token_hex(6)}"))
    _SCRATCH.append(path)  # first: a signal may come between
    try:
        Path(path).mkdir(mode=0o700)
    except OSError:
        _SCRATCH.remove(path)
        raise
    return path


def remove_scratch(path: str) -> None:
    """Remove a folder of :func:`new_scratch`; a second call does nothing."""
    shutil.rmtree(path, ignore_errors=True)
    if path in _SCRATCH:
        _SCRATCH.remove(path)


@contextmanager
def scratch(name: str, folder: str | None = None) -> Iterator[Path]:
    """A new folder below ``folder`` (default: that for temporary files), for what is not worth keeping.

    It goes at the end, also where torchgauge is killed while a process runs that it started meanwhile: what a
    worker said lies there with its secrets until it is read.
    """
    with tempfile.TemporaryDirectory(prefix=f"torchgauge-{name}-", dir=folder) as path:
        _SCRATCH.append(path)
        try:
            yield Path(path)
        finally:
            _SCRATCH.remove(path)


def leave(code: int = INTERRUPTED) -> NoReturn:
    """End this process at once with all that it started, and remove the folders of :func:`scratch`.

    For a handler of a signal: nothing is unwound, whatever else runs or waits.
    """
    if _LIFELINE and _LIFELINE[0][0] == os.getpid():
        with contextlib.suppress(OSError):
            os.close(_LIFELINE[0][2])  # keepers see that we are gone, and remove what is theirs to remove
    left = {each.pid for each in _KEPT if each.returncode is None}
    for pid in left:
        process_tree.signal_one(pid, signal.SIGTERM)
    deadline = time.monotonic() + END_S
    while left and time.monotonic() < deadline:
        left = {pid for pid in left if _runs(pid)}
        time.sleep(0.01)
    for pid in left:
        process_tree.signal_one(pid, signal.SIGKILL)
    for folder in _SCRATCH:
        shutil.rmtree(folder, ignore_errors=True)
    os._exit(code)


def _runs(pid: int) -> bool:
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == 0
    except ChildProcessError:  # another thread has waited for it
        return False


def start_apart(command: Sequence[str], environment: Mapping[str, str], output: IO[bytes]) -> KeptProcess:
    """Start ``command`` apart from our terminal, with nothing to read; what it prints goes to ``output``.

    Raises as :class:`KeptProcess`.
    """
    return KeptProcess(
        command,
        environment,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )


def run(
    command: Sequence[str],
    environment: Mapping[str, str],
    *,
    timeout: float | None = None,
    cwd: str | Path | None = None,
    output: IO[bytes] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run ``command`` to its end, with nothing to read; what it prints goes to ``output``, else is answered.

    Raises ``OSError`` where it cannot be started and ``subprocess.TimeoutExpired``, with what it said until
    then, where it took more than ``timeout`` seconds; then it was killed with all that it started.
    """
    out, err = (subprocess.PIPE, subprocess.PIPE) if output is None else (output, subprocess.STDOUT)
    with KeptProcess(
        command, environment, stdin=subprocess.DEVNULL, stdout=out, stderr=err, cwd=cwd
    ) as child:
        try:
            said, complained = child.communicate(timeout=timeout)
        except subprocess.TimeoutExpired as late:
            child.end()
            with contextlib.suppress(subprocess.TimeoutExpired):
                late.stdout, late.stderr = child.communicate(timeout=END_S)
            late.cmd = list(command)
            raise
        except BaseException:
            child.end()
            raise
    text = [(each or b"").decode("utf-8", "replace") for each in (said, complained)]
    return subprocess.CompletedProcess(list(command), child.returncode, *text)
