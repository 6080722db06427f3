"""Whether another group is to be started before the deadline: the plan's forecast, corrected by this run.

A forecast comes from other nights and perhaps from another machine. How long the groups of this run took in
proportion to what was expected of them says more with each of them, and the plan's own share shrinks.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

from torchgauge.records import Group, Plan

FULL_TRUST = 2.0
"""Groups of usual length that the forecast counts for where all of it was recorded."""
TIMES_OFF = 5.0
"""How far from its forecast one group may pull the pace of the others, as a factor."""


@dataclass
class Pace:
    """Expected seconds by group id, and what this run has made of them; threads may share it.

    ``closing_s`` is what the end of the run takes after the last group. A group of which nothing was expected
    is taken for the mean of those that were done.
    """

    expected: dict[str, float]
    trust: float = 0.0
    closing_s: float = 0.0
    _begun: bool = False
    _said: float = 0.0
    _took: float = 0.0
    _durations: list[float] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @classmethod
    def of_plan(cls, plan: Plan) -> Pace:
        """The pace that ``plan`` expects; one that only learns where the plan has no schedule."""
        schedule = plan.schedule
        if schedule is None:
            return cls({})
        trust = FULL_TRUST * schedule.known / max(1, len(schedule.expected_s))
        return cls(dict(schedule.expected_s), trust, schedule.closing_s)

    @property
    def ratio(self) -> float:
        """Seconds of this run for each one that was expected; 1 before any group is done."""
        with self._lock:
            return self._ratio()

    def expected_seconds(self, group: Group) -> float | None:
        """Wall seconds that ``group`` will probably take; None where neither plan nor run says."""
        with self._lock:
            said = self.expected.get(group.id)
            if said is not None:
                return said * self._ratio()
            return sum(self._durations) / len(self._durations) if self._durations else None

    def learn(self, group: Group, seconds: float) -> None:
        """``group`` took ``seconds``, whatever it waited for included."""
        with self._lock:
            said = self.expected.get(group.id)
            if said == 0:
                return  # nothing of it was tried
            self._durations.append(seconds)
            if said is not None:
                self._said += said
                self._took += min(max(seconds, said / TIMES_OFF), said * TIMES_OFF)

    def may_start(self, group: Group, left_s: float) -> bool:
        """Whether ``group`` is to be started now: if it fits, or if it is the first of the run.

        So a run with any budget gets on, and so does each of its resumptions. A group of which nothing is
        tried takes no time and always may.
        """
        if self.expected.get(group.id) == 0:
            return True
        with self._lock:
            first, self._begun = not self._begun, True
        return first or self.fits(group, left_s)

    def fits(self, group: Group, left_s: float) -> bool:
        """Whether ``group`` will probably end within ``left_s``; where nobody can say it does."""
        seconds = self.expected_seconds(group)
        return seconds is None or seconds <= left_s

    def next_to_start(self, groups: Sequence[Group], left_s: float | None) -> int | None:
        """The position of the first of ``groups`` that may start with ``left_s`` to go; None where none may.

        The most valuable stand first, so a smaller one of less value takes the place of what does not fit.
        ``left_s`` is None where there is no deadline.
        """
        if left_s is None:
            return 0 if groups else None
        return next((number for number, group in enumerate(groups) if self.may_start(group, left_s)), None)

    def _ratio(self) -> float:
        usual = sum(self.expected.values()) / max(1, len(self.expected))
        weight = self.trust * usual
        if self._said + weight <= 0:
            return 1.0
        return (self._took + weight) / (self._said + weight)
