"""A child that is watched while it answers: which question hangs, and an exit that does not end.

Parent side. A question has a deadline of its own, so that one hook without an answer costs that answer, and
not all that the device says.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from torchgauge.clock import SYSTEM_CLOCK
from torchgauge.processes.kept_process import KeptProcess

QUESTION_S = 20.0
"""Seconds that one question may take; each needs milliseconds, and the first touches a cold device."""
EXIT_S = 20.0
"""Seconds that the process may take to end after it has said everything."""
TICK_S = 0.05
QUESTION, DONE = "question", "done"
"""The stage before a question, with its name, and the last one."""


class Watched:
    """What a child's report says so far, and since when its last line has been the last."""

    def __init__(self, report: Path) -> None:
        self.report = report
        self._size = -1
        self._since = SYSTEM_CLOCK.steady()
        self.stage, self.name = "", ""

    def look(self) -> None:
        """Read what is new."""
        size = self.report.stat().st_size if self.report.exists() else 0
        if size == self._size:
            return
        self._size, self._since = size, SYSTEM_CLOCK.steady()
        lines = self.report.read_bytes().splitlines() if size else []
        try:
            found = json.loads(lines[-1]) if lines else {}
            self.stage, self.name = str(found.get("stage", "")), str(found.get("data", ""))
        except (ValueError, AttributeError):
            return  # a line that is being written

    @property
    def overdue(self) -> bool:
        """Whether the question, or the exit, has taken too long."""
        limit = {QUESTION: QUESTION_S, DONE: EXIT_S}.get(self.stage)
        return limit is not None and SYSTEM_CLOCK.steady() - self._since > limit

    @property
    def hanging(self) -> str:
        """The question that has no answer; empty where none is open."""
        return self.name if self.stage == QUESTION else ""

    def wait(self, child: KeptProcess, timeout: float) -> int | None:
        """The child's exit status; None where time is up or it is :attr:`overdue`."""
        end = SYSTEM_CLOCK.steady() + timeout
        while SYSTEM_CLOCK.steady() < end:
            try:
                return child.wait(TICK_S)
            except subprocess.TimeoutExpired:
                self.look()
            if self.overdue:
                return None
        return None
