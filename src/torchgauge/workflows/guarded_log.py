"""What torchgauge prints in a step of GitHub Actions: no word of a stranger is a command to the runner.

The runner obeys ``::command::`` at the begin of a line, with blanks before it or not, and ``##[command]``
anywhere in a line (actions/runner, src/Runner.Common/ActionCommand.cs). Names of artifacts, messages of
models and words of pip stand in what torchgauge prints. A blank between its signs takes a command apart: in
everything, once, where it leaves the process.
"""

from __future__ import annotations

import os
import re
import stat
import sys
from typing import Any, TextIO

from torchgauge.processes.process_tree import close_to_others

_LINES = re.compile(r"(\r\n|\n|\r)")
_OLD_FORM = re.compile(r"##(?=\[)")
_NEW_FORM = re.compile(r"^(\s*):(?=:)")


class GuardedLog:
    """The text stream ``stream`` of a step, in which nothing that is written is a command."""

    def __init__(self, stream: TextIO) -> None:
        self.stream, self._line = stream, ""

    def write(self, text: str) -> int:
        """Write ``text``; a command may come in several parts."""
        for part in _LINES.split(text):
            if _LINES.fullmatch(part):
                self.stream.write(part)
                self._line = ""
            else:
                said = harmless(self._line)
                self._line += part
                self.stream.write(harmless(self._line)[len(said) :])
        return len(text)

    def command(self, line: str) -> None:
        """Write ``line``, a command of our own, on a line of its own."""
        self.stream.write("\n" * bool(self._line) + f"{line}\n")
        self._line = ""

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


def say_command(line: str) -> None:
    """Write ``line``, a command of our own to the runner, on stderr."""
    stream: Any = sys.stderr
    getattr(stream, "command", lambda line: stream.write(f"{line}\n"))(line)
    stream.flush()


def harmless(line: str) -> str:
    """``line`` with a blank in what the runner would take for a command."""
    return _NEW_FORM.sub(r"\1: ", _OLD_FORM.sub("## ", line))


def guard_log() -> None:
    """Guard both streams of this process to its end: a traceback is the last that it says.

    What is measured cannot write around them by ``/proc/PID/fd``, unless it runs as root.
    """
    close_to_others()
    sys.stdout, sys.stderr = _guarded(sys.stdout), _guarded(sys.stderr)


def _guarded(stream: Any) -> Any:
    """``stream``, guarded where it is a log: one that goes into a file keeps every sign."""
    try:
        into_file = stat.S_ISREG(os.fstat(stream.fileno()).st_mode)
    except (OSError, ValueError):
        into_file = False
    return stream if into_file else GuardedLog(stream)
