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
ENOUGH = 5
"""Finished groups before the first estimate, if fewer than a quarter have recorded times.

Quick groups finish first.
"""
KNOWN = 0.5
"""Lowest ``trust`` at which recorded times suffice: a quarter of the groups has one."""
LAST = 0.85
"""What the last groups take of what those took that had others beside them."""
CLOSING = 0.25
"""What passes after the last row, of what a budget keeps aside for it."""


@dataclass
class TimeLeft:
    """Groups by their ids with the seconds that are expected of each, or 1 of all where nothing is known.

    ``trust`` is how many groups of usual length the expectation counts for. Of all that is planned ``share``
    was left when the run began. ``devices`` are those of the groups: what one took says most of the others of
    its device. Moments are seconds of a steady clock.
    """

    expected: dict[str, float]
    trust: float = 0.0
    closing_s: float = 0.0
    share: float = 1.0
    devices: dict[str, str] = field(default_factory=dict)
    _begun: dict[str, float] = field(default_factory=dict)
    _done: dict[str, float] = field(default_factory=dict)

    @classmethod
    def of_plan(cls, plan: Plan, share: float = 1.0) -> TimeLeft:
        """What is known of the groups of ``plan`` before any of them is begun."""
        schedule, devices = plan.schedule, {group.id: str(group.device) for group in plan.groups}
        if schedule is None:
            return cls({group.id: 1.0 for group in plan.groups}, share=share, devices=devices)
        trust = FULL_TRUST * schedule.known / max(1, len(schedule.expected_s))
        calibrates = plan.settings.calibrate and not all(group.checks for group in plan.groups)
        closing = CLOSING * schedule.closing_s if calibrates else 0.0
        return cls(dict(schedule.expected_s), trust, closing, share, devices)

    def heard(self, group: Group, now: float) -> None:
        """Something of ``group`` runs ``now``."""
        self._begun.setdefault(group.id, now)

    def ended(self, group: str, now: float) -> None:
        """The group with the id ``group`` has its rows; one that nobody heard of began with the run."""
        self._done.setdefault(group, now)

    def seconds(self, began: float, now: float) -> float | None:
        """Return the seconds left of a run that ``began``; None while too few times are known."""
        measured = {each: at for each, at in list(self._done.items()) if self.expected.get(each, 1.0) > 0}
        tried = sum(held > 0 for held in self.expected.values())
        if self.trust < KNOWN and len(measured) < max(1, min(ENOUGH, -(-tried // 2))):
            return None
        took = {each: at - self._begun[each] for each, at in measured.items() if each in self._begun}
        weights = self._weights(measured, took)
        slowness = _slowness(took, weights) or (1.0 if self.trust else 0.0)
        ages = {each: now - at for each, at in list(self._begun.items()) if each not in self._done}
        work = sum(weights[each] for each in measured) + _under_way(ages, weights, slowness)
        usual = self.trust * sum(weights.values()) / max(1, len(weights))
        if work + usual <= 0:  # all that is planned is known to be unsupported
            return self.closing_s
        first = min(self._begun.values(), default=began)
        pace = (now - first + usual) / (work + usual)
        rest = pace * (self.share * sum(weights.values()) - work)
        last = len(self._done) + len(ages) >= len(self.expected)
        return max(0.0, rest, _longest(ages, weights, slowness) if last else 0.0) + self.closing_s

    def _weights(self, measured: dict[str, float], took: dict[str, float]) -> dict[str, float]:
        """What each group is expected to take, beside the others; of a device that was measured as it was."""
        found = {**self.expected, **{each: 1.0 for each in measured if each not in self.expected}}
        overall = _slowness(took, found)
        if not overall:
            return found
        by_device: dict[str, dict[str, float]] = {}
        for each, seconds in took.items():
            by_device.setdefault(self.devices.get(each, ""), {})[each] = seconds
        factors = {device: _slowness(those, found) / overall for device, those in by_device.items()}
        return {each: held * factors.get(self.devices.get(each, ""), 1.0) for each, held in found.items()}


def _under_way(ages: dict[str, float], weights: dict[str, float], slowness: float) -> float:
    """How much of the groups under way is done, each by its age beside what others took."""
    if slowness <= 0:
        return 0.0
    return sum(min(NEARLY * weights.get(each, 1.0), age / slowness) for each, age in ages.items())


def _longest(ages: dict[str, float], weights: dict[str, float], slowness: float) -> float:
    """Seconds that the slowest of what is under way still takes: the last groups have cores to spare."""
    left = (slowness * weights.get(each, 1.0) - age for each, age in ages.items())
    return LAST * max(left, default=0.0)


def _slowness(took: dict[str, float], weights: dict[str, float]) -> float:
    """Seconds from beginning to end of groups for each one that was expected; 0 where there is none."""
    expected = sum(weights[each] for each in took)
    return sum(took.values()) / expected if expected else 0.0
