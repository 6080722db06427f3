"""How long an executor may be silent: what its longest group may take by the deadlines of the run.

It is alive while it yields, tells of an event or asks whether it is cancelled. Looks are counted, and not
seconds: a run that was stopped and goes on, or a machine that slept, has missed its looks too.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import astuple, dataclass

from torchgauge.clock import alarm
from torchgauge.records import Plan

LOOKS = 20
"""Looks at an executor within the longest time that it may be silent."""


class SilentExecutorError(TimeoutError):
    """An executor hangs."""


@dataclass
class Silence:
    """The silence of an executor, of which ``limit_s`` seconds are too many."""

    limit_s: float
    looks: int = 0

    @classmethod
    def within(cls, plan: Plan) -> Silence:
        """The one that ``plan`` allows: its longest group starts, and each case of it takes all it may."""
        deadlines = plan.settings.deadlines
        once = sum(astuple(deadlines))
        cases = (len(each.cases) * (deadlines.check_s if each.checks else once) for each in plan.groups)
        return cls(once + max(cases, default=0.0))

    def heard(self) -> None:
        """The executor is alive."""
        self.looks = 0

    @contextmanager
    def ended(self) -> Iterator[None]:
        """Raise :class:`SilentExecutorError` inside, where nothing is heard for too long."""
        with alarm(self.limit_s / LOOKS, self._look):
            yield

    def _look(self) -> None:
        self.looks += 1
        if self.looks > LOOKS:
            self.looks = 0  # what is raised may take as long to leave, and no longer
            raise SilentExecutorError(
                f"was silent for {self.limit_s:g} s, longer than all deadlines of its longest group"
            )
