"""CPU time of this process and of those that it starts: a compiler works in both.

Standard library only. Of processes that still run it is known on Linux only, of those that ended everywhere
but on Windows.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass

from torchgauge.processes.process_tree import descendants, stat_of


@dataclass(frozen=True)
class CpuTime:
    """Seconds on all cores: ``own`` of this process, ``others`` of what it started, ended or not."""

    own: float
    others: float

    @property
    def whole(self) -> float:
        """Both."""
        return self.own + self.others

    def __add__(self, more: CpuTime) -> CpuTime:
        """Both together."""
        return CpuTime(self.own + more.own, self.others + more.others)


def spent_in(call: Callable[[], float]) -> tuple[float, CpuTime]:
    """What ``call`` returns, and the CPU time that passed meanwhile."""
    own, others = time.process_time(), _of_others()
    found = call()
    return found, CpuTime(time.process_time() - own, max(0.0, _of_others() - others))


def _of_others() -> float:
    ended = os.times()
    return ended.children_user + ended.children_system + sum(map(_of_running, descendants(os.getpid())))


def _of_running(pid: int) -> float:
    """Seconds of a process and of those of its children that have ended; 0 for one that has gone."""
    try:
        ticks = stat_of(pid)[11:15]
    except OSError:
        return 0.0
    return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")
