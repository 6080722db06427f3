"""The child process of a benchmark: its results and what they took, or why it has none.

A script takes the time and the output of a process from :func:`run_child` alone: a process that fell over, or
that ended well without the results that were expected of it, is never a time.
"""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, Any, Generic, TypeVar

Results = TypeVar("Results")
DRAIN_S = 10.0
"""How long the output of a process that has ended is read on: one that it left may hold the pipes."""
TOLD_LINES = 20
"""How many of the last lines of a process stand below the problem of a benchmark that ends by it."""


class ChildFailure(SystemExit):
    """The end of a benchmark whose child process has no results.

    ``problem`` is one line, and ends with the last line of the child's stderr.
    """

    def __init__(self, command: Sequence[str], problem: str, lines: Sequence[str] = ()) -> None:
        self.problem = ": ".join([problem, *lines[-1:]])
        super().__init__("\n".join([f"{' '.join(command)[:200]} {problem}", *lines[-TOLD_LINES:]]))


@dataclass(frozen=True)
class Ended(Generic[Results]):
    """A child process that ended well: what was read of it, and what it used.

    ``lines`` are those of its stdout, each with the seconds since it was started.
    """

    results: Results
    code: int
    seconds: float
    used: resource.struct_rusage
    lines: tuple[tuple[float, str], ...]

    @property
    def cpu_s(self) -> float:
        """CPU seconds of the process and of those that it waited for."""
        return self.used.ru_utime + self.used.ru_stime


def run_child(
    command: Sequence[str],
    read: Callable[[str], Results],
    *,
    good: Collection[int] = (0,),
    given: str = "",
    limit_s: float | None = None,
    log: IO[bytes] | None = None,
    **options: Any,
) -> Ended[Results]:
    """Return what ``read`` makes of the stdout of ``command``, which reads ``given`` on its stdin.

    Raises :class:`ChildFailure` where it does not start or end in time, where its exit code is not ``good``,
    and where ``read`` raises ``ValueError``, ``LookupError``, ``TypeError`` or ``OSError``: the results are
    not there. ``log`` receives its stderr (and its stdout, with ``stderr=STDOUT``) line by line.
    """
    try:
        run = _Run(command, log, options, stdin=bool(given))
    except OSError as error:
        raise ChildFailure(command, f"could not be started: {error}") from None
    in_time = run.end(given, limit_s)
    last = [line for _, line in run.lines[-1] if line]
    if not in_time:
        raise ChildFailure(command, f"did not end within {limit_s:g} s", last)
    if run.child.returncode not in good:
        raise ChildFailure(command, _ending(run.child.returncode), last)
    try:
        results = read("\n".join(line for _, line in run.lines[0]))
    except (ValueError, LookupError, TypeError, OSError) as error:
        reason = str(error) if type(error) is ValueError else f"{type(error).__name__}: {error}"
        raise ChildFailure(command, f"ended without its results: {reason}", last) from error
    return Ended(results, run.child.returncode, run.seconds, run.used, tuple(run.lines[0]))


def _ending(code: int) -> str:
    return f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"


class _Run:
    """One process and its output; ``lines`` are those of stdout and, where it is apart, of stderr."""

    seconds: float
    used: resource.struct_rusage

    def __init__(
        self, command: Sequence[str], log: IO[bytes] | None, options: dict[str, Any], *, stdin: bool
    ) -> None:
        self.began = time.perf_counter()
        pipes = {"stdin": subprocess.PIPE if stdin else None, "stderr": subprocess.PIPE, **options}
        self.child = subprocess.Popen(command, stdout=subprocess.PIPE, **pipes)
        streams = [stream for stream in (self.child.stdout, self.child.stderr) if stream]
        self.lines: list[list[tuple[float, str]]] = [[] for _ in streams]
        logs = [None] * (len(streams) - 1) + [log]
        self.drains = [
            threading.Thread(target=self._drain, args=each, daemon=True)
            for each in zip(streams, self.lines, logs, strict=True)
        ]

    def _drain(self, stream: IO[bytes], lines: list[tuple[float, str]], log: IO[bytes] | None) -> None:
        with stream:
            for line in stream:
                lines.append((time.perf_counter() - self.began, line.decode(errors="replace").rstrip()))
                if log:
                    log.write(line)
                    log.flush()

    def end(self, given: str, limit_s: float | None) -> bool:
        """Return whether the process has ended in time; one that has not is killed."""
        late = threading.Event()
        limit = threading.Timer(limit_s or 0.0, lambda: (late.set(), self.child.kill()))
        for thread in (*self.drains, *([limit] if limit_s else [])):
            thread.start()
        try:
            if self.child.stdin:
                with suppress(BrokenPipeError), self.child.stdin:
                    self.child.stdin.write(given.encode())
            _, status, self.used = os.wait4(self.child.pid, 0)
        except BaseException:
            self.child.kill()
            self.child.wait()
            raise
        finally:
            limit.cancel()
        self.seconds = time.perf_counter() - self.began
        self.child.returncode = os.waitstatus_to_exitcode(status)
        for thread in self.drains:
            thread.join(DRAIN_S)
        return not late.is_set()
