"""How long the rest of a run will take, from what is done and what is under way.

Why what is under way counts: three groups are prepared at once, so that the others are nearly done as well
when the first row comes, and a pace of rows alone says three times too much.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from torchgauge.harness.pool.pace import FULL_TRUST
from torchgauge.records import Group, Plan

NEARLY = 0.7
"""The most of a group that counts as done while it is under way."""
LAST = 0.85
"""What the last groups take of what those took that had others beside them."""


@dataclass
class TimeLeft:
    """Groups by their ids with the seconds that are expected of each, or 1 of all where nothing is known.

    ``trust`` is how many groups of usual length the expectation counts for. Of all that is planned ``share``
    was left when the run began. Moments are seconds of a steady clock.
    """

    expected: dict[str, float]
    trust: float = 0.0
    closing_s: float = 0.0
    share: float = 1.0
    _begun: dict[str, float] = field(default_factory=dict)
    _done: dict[str, float] = field(default_factory=dict)

    @classmethod
    def of_plan(cls, plan: Plan, share: float = 1.0) -> TimeLeft:
        """What is known of the groups of ``plan`` before any of them is begun."""
        schedule = plan.schedule
        if schedule is None:
            return cls({group.id: 1.0 for group in plan.groups}, share=share)
        trust = FULL_TRUST * schedule.known / max(1, len(schedule.expected_s))
        calibrates = plan.settings.calibrate and not all(group.checks for group in plan.groups)
        return cls(dict(schedule.expected_s), trust, schedule.closing_s if calibrates else 0.0, share)

    def heard(self, group: Group, now: float) -> None:
        """Something of ``group`` runs ``now``."""
        self._begun.setdefault(group.id, now)

    def ended(self, group: str, now: float) -> None:
        """The group with the id ``group`` has its rows; one that nobody heard of began with the run."""
        self._done.setdefault(group, now)

    def seconds(self, began: float, now: float) -> float | None:
        """Seconds left of a run that ``began``; None before any group is done, where nothing was known."""
        measured = {each: at for each, at in list(self._done.items()) if self.expected.get(each, 1.0) > 0}
        if not measured and not self.trust:
            return None
        done = sum(self._weight(each) for each in measured)
        work = done + self._under_way(measured, now)
        usual = self.trust * sum(self.expected.values()) / max(1, len(self.expected))
        if work + usual <= 0:  # all that is planned is known to be unsupported
            return self.closing_s
        first = min(self._begun.values(), default=began)
        pace = (now - first + usual) / (work + usual)
        whole = self.share * sum(self.expected.values())
        return max(0.0, pace * (whole - work), self._longest(measured, now)) + self.closing_s

    def _under_way(self, measured: dict[str, float], now: float) -> float:
        """How much of the groups under way is done, each by its age beside what others took."""
        slowness = self._slowness(measured)
        if slowness <= 0:
            return 0.0
        return sum(min(NEARLY * self._weight(each), age / slowness) for each, age in self._ages(now).items())

    def _longest(self, measured: dict[str, float], now: float) -> float:
        """Seconds that the slowest of what is under way still takes: the last groups have cores to spare."""
        slowness = self._slowness(measured)
        ages = self._ages(now)
        if len(self._done) + len(ages) < len(self.expected):
            return 0.0
        return max((LAST * (slowness * self._weight(each) - age) for each, age in ages.items()), default=0.0)

    def _slowness(self, measured: dict[str, float]) -> float:
        """Seconds from beginning to end of a group for each one that is expected; 0 where nobody knows."""
        took = {each: at - self._begun[each] for each, at in measured.items() if each in self._begun}
        weights = sum(self._weight(each) for each in took)
        return sum(took.values()) / weights if weights else 1.0 if self.trust else 0.0

    def _ages(self, now: float) -> dict[str, float]:
        """Seconds since each group that is under way began."""
        return {each: now - at for each, at in list(self._begun.items()) if each not in self._done}

    def _weight(self, group: str) -> float:
        return self.expected.get(group, 1.0)
