"""What is known of one pair of an A/B run: its launches, their estimates, and what they have cost."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from torchgauge.records.comparison import Launch, Pair
from torchgauge.results.comparing.estimators import (
    Estimator,
    LaunchEstimate,
    Unusable,
    choose_estimator,
    estimate,
)
from torchgauge.results.comparing.noise import Prior
from torchgauge.results.comparing.other_metrics import RATIO_METRICS
from torchgauge.results.comparing.policy import Rule
from torchgauge.results.comparing.sequential import Levels, Moderated, looks, moderate
from torchgauge.results.comparing.status_verdict import unfit

MIN_LAUNCHES = 3
"""Launches from which a spread is taken; also the fewest that confirm a suspicion."""

MAX_FAILURES = 2
"""Launches without an estimate after which a pair that never had one is given up; the second confirms."""

DEARER = 1.5
"""The next launch may cost so many times the dearest so far: the load of a machine is not constant."""


@dataclass(frozen=True)
class Timing:
    """One usable launch: the estimate that the verdict rests on, and that of wall time."""

    launch: Launch
    latency: LaunchEstimate
    wall: LaunchEstimate | None


@dataclass
class Stage:
    """The launches of one stage, the first or the confirming one, in the order in which they came."""

    launches: list[Launch] = field(default_factory=list)
    timings: list[Timing] = field(default_factory=list)

    @property
    def spent_s(self) -> float:
        """Seconds that the stage has cost."""
        return sum(_cost(launch) for launch in self.launches)

    def room_for_another(self, max_time_s: float) -> bool:
        """Whether a launch somewhat dearer than the dearest so far still ends within ``max_time_s``."""
        dearest = max(map(_cost, self.launches), default=0.0)
        return self.spent_s + DEARER * dearest <= max_time_s

    def logs(self, wall: bool = False) -> list[float]:
        """The log ratios of the usable launches; of wall time where every launch has it, else empty."""
        if not wall:
            return [timing.latency.log_ratio for timing in self.timings]
        found = [timing.wall.log_ratio for timing in self.timings if timing.wall is not None]
        return found if len(found) == len(self.timings) else []


@dataclass
class PairEvidence:
    """One pair with its rule, its history and its launches; ``quarantine`` is the reason, empty for none."""

    pair: Pair
    rule: Rule
    max_launches: int
    prior: Prior | None = None
    wall_prior: Prior | None = None
    quarantine: str = ""
    estimator: Estimator | None = None
    first: Stage = field(default_factory=Stage)
    fresh: Stage = field(default_factory=Stage)
    unusable: list[str] = field(default_factory=list)
    failed: bool = False
    mismatch: str = ""

    def levels(self, rule: Rule) -> Levels:
        """Error and tolerance of one look by ``rule``; three times the tolerance in quarantine."""
        return Levels(
            tolerance=rule.tolerance * (3.0 if self.quarantine else 1.0),
            planned=looks(self.max_launches),
            harm=rule.alpha / 5,
            harmless=rule.alpha,
        )

    @property
    def launches(self) -> list[Launch]:
        """All launches of both stages."""
        return self.first.launches + self.fresh.launches

    def add(self, launch: Launch) -> None:
        """Take a launch: estimate it, or keep the reason why that cannot be."""
        stage = self.fresh if launch.confirms else self.first
        stage.launches.append(launch)
        self.mismatch = self.mismatch or _mismatch(launch)
        failed = unfit(launch)
        if failed:
            self.unusable.append(f"launch {launch.number}: {failed}")
            self.failed = True
            return
        if self.estimator is None and launch.blocks:
            self.estimator = choose_estimator(launch)
        found = estimate(launch, self.estimator or Estimator.WALL)
        if isinstance(found, Unusable):
            self.unusable.append(f"launch {launch.number}: {found.reason}")
            return
        wall = estimate(launch, Estimator.WALL)
        stage.timings.append(Timing(launch, found, wall if isinstance(wall, LaunchEstimate) else None))

    @property
    def look(self) -> int:
        """The number of usable launches at the last planned look that was reached; 0 before the first."""
        reached = [look for look in looks(self.max_launches) if look <= len(self.first.timings)]
        return reached[-1] if reached else 0

    @property
    def given_up(self) -> bool:
        """Whether no further launch can help: nothing in common to measure, or launch after launch failed."""
        if self.mismatch:
            return True
        tried, usable = len(self.first.launches), len(self.first.timings)
        return tried - usable >= MAX_FAILURES and tried - usable > usable

    @property
    def exhausted(self) -> bool:
        """Whether the launches or the time of the first stage have ended."""
        return len(self.first.launches) >= self.max_launches or not self.first.room_for_another(
            self.rule.max_time_s
        )

    @property
    def owes_warm_compilations(self) -> bool:
        """Whether it compiles on both sides and has too few warm compilations to be compared.

        The first launch finds an empty cache and each later one a filled one.
        """
        compiles = self.pair.base.configuration.compiled and self.pair.head.configuration.compiled
        usable = len(self.first.timings)
        return compiles and not self.pair.control and 0 < usable <= RATIO_METRICS["compile_warm"]

    def may_go_on(self, launches: int) -> bool:
        """Whether it has no more than ``launches`` usable ones, enough to be timed, and room for another."""
        usable = len(self.first.timings)
        return MIN_LAUNCHES <= usable <= launches and not self.given_up and not self.exhausted

    def evidence(self, usable: int, wall: bool = False) -> Moderated | None:
        """The moderated estimate over the first ``usable`` launches of the first stage; None below three."""
        logs = self.first.logs(wall)[:usable]
        if len(logs) < MIN_LAUNCHES:
            return None
        prior = self.wall_prior if wall else self.prior
        return moderate(np.array(logs), *((prior.spread, prior.df) if prior else ()))

    @property
    def confirmations(self) -> int:
        """Fresh launches that a suspicion asks for: half as many as before, three at least."""
        return max(MIN_LAUNCHES, (len(self.first.timings) + 1) // 2)

    @property
    def needs_fresh(self) -> bool:
        """Whether a suspicion still lacks fresh launches, and there is room for them."""
        return (
            len(self.fresh.timings) < self.confirmations
            and len(self.fresh.launches) < self.confirmations + MAX_FAILURES
            and self.fresh.room_for_another(self.rule.max_time_s)
        )

    def fresh_evidence(self, wall: bool = False) -> Moderated | None:
        """The estimate of the fresh launches alone; the first ones say how far launches spread, no more."""
        logs = self.fresh.logs(wall)
        before = self.evidence(len(self.first.timings), wall)
        if len(logs) < self.confirmations or before is None:
            return None
        return moderate(np.array(logs), float(before.spread), float(before.df))


def _cost(launch: Launch) -> float:
    return launch.setup_s + launch.measure_s


def _mismatch(launch: Launch) -> str:
    """Why both sides of ``launch`` did not compute the same; empty where they did or nothing is known."""
    base, head = launch.base.realised, launch.head.realised
    if base is None or head is None or base.hash == head.hash:
        return ""
    differing = [
        f"{name} {ours} against {theirs}"
        for name, ours, theirs in (
            ("parameters", base.parameters, head.parameters),
            ("buffers", base.buffers, head.buffers),
            ("inputs", base.inputs, head.inputs),
        )
        if ours != theirs
    ]
    detail = f" ({', '.join(differing)})" if differing else ""
    return f"base realised {base.hash} and head {head.hash}: they did not compute the same{detail}"
