"""When the interleaved rounds of one group have been enough."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torchgauge.autocorrelation import FEWEST, interval_inflation, lag_1_autocorrelation
from torchgauge.harness.worker.series import Series
from torchgauge.harness.worker.shared_budget import SharedBudget
from torchgauge.harness.worker.stopping import log_ratio_half_width, relative_half_width
from torchgauge.records import RunSettings

CEILING = 8.0
"""How many budgets a slow step may take for its rounds; then ``FEWEST`` are enough."""
HARD_CEILING = 24.0
"""How many budgets it may take for ``FEWEST`` rounds, or for more of them where they resemble each other."""
AGREEING_CHECKS = 2
"""Checks in a row that must find a series precise: one that does may have been lucky."""
ALIKE = 0.3
"""Autocorrelation of consecutive samples from which on they count as alike."""
ALIKE_ROUNDS = 30
"""Rounds that a group takes at least where its samples are alike: fewer say too little of their spread."""
LEAST_SHARE = 0.5
"""Share of its budget for which a group is sampled at least: a machine has regimes, and shows one at a time.

What precise groups left went to wide ones, so a campaign with any of those takes no longer for it.
"""
VISITS = 6
"""In how many parts that share is sampled, apart from each other in time where rounds are short."""
VISIT_ROUNDS = 3
"""Rounds that a visit has at least."""
LONGEST_REST_S = 1.0
"""Seconds between the beginnings of two visits, or half a budget of one configuration where that is less."""
WIDE = 2.0
"""How many times the target an interval must miss it by for others' unused time to be spent on it."""
MOST_BUDGETS = 3.0
"""How many budgets a wide group may take where others left time."""
MOST_WAITS = 5.0
"""How many budgets a group is sampled longer at most for blocks that others leave alone."""
PATIENCE_SHARE = 0.25
"""Part of a group's budget that its run may wait for quiet, beyond what one group may once."""


@dataclass
class Rounds:
    """When the rounds of one group, begun at ``began`` with ``budget`` seconds, have been enough."""

    all_series: Sequence[Series]
    settings: RunSettings
    shared_budget: SharedBudget
    began: float
    budget: float
    next_check: int = 0
    extended: bool = False
    waited: float = 0.0
    visits: int = 1
    visited: int = 0

    def __post_init__(self) -> None:
        self.next_check = self.settings.min_blocks
        self.deadline, self.visit_began = self.began + self.budget, self.began
        self.waits = SharedBudget(self.shared_budget.path and f"{self.shared_budget.path}.waits")

    @property
    def whole(self) -> list[Series]:
        """Series that have not failed."""
        return [series for series in self.all_series if series.failed is None]

    @property
    def live(self) -> list[Series]:
        """Series that take part in the next round."""
        return [series for series in self.whole if not series.stopped]

    def verdict(self, done: int, now: float) -> str:
        """Why to stop after ``done`` rounds, at ``now`` on the clock of ``began``; "" to go on."""
        seconds = now - self.began
        if seconds > HARD_CEILING * self.budget and done >= 3:
            return "budget"
        if seconds > CEILING * self.budget and done >= FEWEST and not (done < ALIKE_ROUNDS and self.alike()):
            return "budget"
        if done < self.settings.min_blocks:
            return ""
        if done >= self.next_check:
            self.next_check = done + max(2, done // 8)
            if self.check(now):
                return "precision"
            if self.extended and not self.wide():
                return "budget"
        if now <= self.deadline or (done < ALIKE_ROUNDS and self.alike()) or self.wait(now):
            return ""
        return "" if self.extend(now) else "budget"

    def rest(self, done: int, now: float) -> float:
        """Seconds to leave the machine to others after ``done`` rounds, so that another regime may come.

        Mostly 0; rounds that last long are apart by themselves.
        """
        part = LEAST_SHARE * self.budget / VISITS
        over = now - self.began >= part * self.visits and done - self.visited >= VISIT_ROUNDS
        if not over or self.visits == VISITS:
            return 0.0
        self.visits, self.visited = self.visits + 1, done
        began, self.visit_began = self.visit_began, now
        apart = min(LONGEST_REST_S, self.settings.measure_budget_s / 2.0)
        return max(0.0, apart - (now - began))

    def rested(self, seconds: float) -> None:
        """Leave ``seconds`` that nothing was sampled in out of every count."""
        self.began, self.deadline = self.began + seconds, self.deadline + seconds
        self.visit_began += seconds

    def wait(self, now: float) -> bool:
        """Whether to go on for blocks that nothing disturbs: too few are there, and patience is left."""
        if not any(series.apart and len(series.wall) < self.settings.min_blocks for series in self.live):
            return False
        left = min(MOST_WAITS * self.budget, max(0.0, self.settings.quiet_wait_s - self.waits.seconds()))
        self.waited = max(0.0, min(left, now - self.deadline))
        return self.waited < left

    def settle(self, now: float) -> None:
        """Count what must be counted, and hand on the time that is left, or was waited, to later groups."""
        for series in self.all_series:
            series.settle(self.settings.confidence)
        self.shared_budget.settle(self.budget - (now - self.began) + self.waited)
        self.waits.settle(self.waited - PATIENCE_SHARE * self.budget)

    def check(self, now: float) -> bool:
        """Judge every series; whether all are precise."""
        if now - self.began < LEAST_SHARE * self.budget:
            return False
        whole = self.whole
        if not whole:
            return False
        base, *others = whole
        for series in (base, *(each for each in others if not each.stopped)):
            fewest = ALIKE_ROUNDS if _alike(series) else self.settings.min_blocks
            precise = self.width(base, series) <= self.settings.precision_target
            series.agreed = series.agreed + 1 if precise and len(series.wall) >= fewest else 0
            if series.agreed >= AGREEING_CHECKS and series is not base:
                series.stopped = "precision"
        return base.agreed >= AGREEING_CHECKS and all(series.stopped for series in others)

    def width(self, base: Series, series: Series) -> float:
        """Half the width of the interval of ``series`` or of its ratio to ``base``: the greater, relative."""
        confidence = self.settings.confidence
        found = relative_half_width(series.wall, confidence) * interval_inflation(series.wall)
        if series is base:
            return found
        pairs = _pairs(base, series)
        ratio = log_ratio_half_width([a for a, _ in pairs], [b for _, b in pairs], confidence)
        return max(found, ratio * interval_inflation([a / b for a, b in pairs]))

    def alike(self) -> bool:
        """Whether consecutive samples of a series that goes on resemble each other."""
        return any(_alike(series) for series in self.live)

    def wide(self) -> bool:
        """Whether a series that goes on is so far from its target that others' time should go there."""
        limit = WIDE * self.settings.precision_target
        return any(self.width(self.whole[0], series) > limit for series in self.live)

    def extend(self, now: float) -> bool:
        """Take more time from the shared budget, once, where there is some and it is needed."""
        if self.extended or not self.live or not self.wide():
            return False
        more = min(self.shared_budget.seconds(), (MOST_BUDGETS - 1.0) * self.budget)
        self.extended, self.deadline = True, self.deadline + more
        return now <= self.deadline


def _alike(series: Series) -> bool:
    return lag_1_autocorrelation(series.wall) > ALIKE


def _pairs(base: Series, series: Series) -> list[tuple[float, float]]:
    """Samples of both series from the rounds that they share."""
    by_round = dict(zip(base.rounds, base.wall, strict=True))
    return [(by_round[n], wall) for n, wall in zip(series.rounds, series.wall, strict=True) if n in by_round]
