"""What is known of one pair of an A/B run: its launches, their estimates, and what they have cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from torchgauge.records import METRICS, Realised
from torchgauge.records.comparison import Launch, Pair
from torchgauge.results.comparing.estimators import (
    Estimator,
    LaunchEstimate,
    Unusable,
    choose_estimator,
    estimate,
)
from torchgauge.results.comparing.noise import Prior
from torchgauge.results.comparing.policy import Rule
from torchgauge.results.comparing.sequential import Levels, Moderated, looks, moderate
from torchgauge.results.comparing.status_verdict import unfit
from torchgauge.results.comparing.tails import TailEstimate, estimate_tail

LATENCY = "latency"
WALL = "latency_wall"
TAIL = "latency_tail"
WATCHED = frozenset({WALL, TAIL})
"""Step times that are watched for harm only: when it is enough is for the latency to say."""
TIMED = (LATENCY, WALL, TAIL)

MIN_LAUNCHES = 3
"""Launches from which a spread is taken; also the fewest that confirm a suspicion."""

MAX_FAILURES = 2
"""Launches without an estimate after which a pair that never had one is given up; the second confirms."""

DEARER = 1.5
"""The next launch may cost so many times the dearest so far: the load of a machine is not constant."""


@dataclass(frozen=True)
class Timing:
    """One usable launch: the estimate that the verdict rests on, and those of wall time and of slow steps."""

    launch: Launch
    latency: LaunchEstimate
    wall: LaunchEstimate | None
    tail: TailEstimate | None = None

    def of(self, metric: str) -> LaunchEstimate | None:
        """What it says of one of :data:`TIMED`."""
        return {LATENCY: self.latency, WALL: self.wall, TAIL: self.tail}[metric]


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

    def logs(self, metric: str = LATENCY) -> list[float]:
        """The log ratios of the usable launches; empty where one of them says nothing of ``metric``."""
        found = [
            each.log_ratio for each in (timing.of(metric) for timing in self.timings) if each is not None
        ]
        return found if len(found) == len(self.timings) else []


@dataclass
class PairEvidence:
    """One pair with its rule and its launches; by metric its own history, and what the run's cases share.

    ``quarantine`` is the reason, empty for none; ``waited`` says why CPU time took the place of clean steps.
    Where the sides have ``other_code`` of a user, they are compared whatever they build: ``models`` says how
    that differs.
    """

    pair: Pair
    rule: Rule
    max_launches: int
    priors: Mapping[str, Prior] = field(default_factory=dict)
    pooled: Mapping[str, Prior] = field(default_factory=dict)
    quarantine: str = ""
    estimator: Estimator | None = None
    first: Stage = field(default_factory=Stage)
    fresh: Stage = field(default_factory=Stage)
    unusable: list[str] = field(default_factory=list)
    waited: str = ""
    failed: bool = False
    mismatch: str = ""
    other_code: bool = False
    models: str = ""

    def levels(self, rule: Rule) -> Levels:
        """Error and tolerance of one look by ``rule``; three times the tolerance in quarantine."""
        return Levels(
            tolerance=rule.tolerated(quarantined=bool(self.quarantine)),
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
        base, head = launch.base.realised, launch.head.realised
        if base is not None and head is not None and base.hash != head.hash:
            if self.other_code:
                self.models = self.models or _models(base, head)
            else:
                self.mismatch = self.mismatch or _mismatch(base, head)
        failed = unfit(launch)
        if failed:
            self.unusable.append(f"launch {launch.number}: {failed}")
            self.failed = True
            return
        if self.estimator is None and launch.blocks:
            self.estimator = choose_estimator(launch)
        found = estimate(launch, self.estimator or Estimator.WALL)
        if isinstance(found, Unusable):
            found = self._by_cpu(launch, found)
        if isinstance(found, Unusable):
            self.unusable.append(f"launch {launch.number}: {found.reason}")
            return
        wall = estimate(launch, Estimator.WALL)
        wall_known = wall if isinstance(wall, LaunchEstimate) else None
        stage.timings.append(Timing(launch, found, wall_known, estimate_tail(launch)))

    def _by_cpu(self, launch: Launch, without: Unusable) -> LaunchEstimate | Unusable:
        """What ``launch``, which has too few clean steps, says by CPU time; all others are read by it, too.

        Waiting alone decides, never a ratio. ``without`` comes back where CPU time cannot be had of all.
        """
        if self.estimator is not Estimator.CLEAN_WALL:
            return without
        stages = (self.first, self.fresh)
        again = [[estimate(each.launch, Estimator.CPU) for each in stage.timings] for stage in stages]
        found = estimate(launch, Estimator.CPU)
        if any(isinstance(each, Unusable) for each in (found, *again[0], *again[1])):
            return without
        self.estimator = Estimator.CPU
        self.waited = f"launch {launch.number} had too few uninterrupted steps, so all launches use CPU time"
        for stage, estimates in zip(stages, again, strict=True):
            stage.timings = [
                replace(timing, latency=each)
                for timing, each in zip(stage.timings, estimates, strict=True)
                if isinstance(each, LaunchEstimate)
            ]
        return found

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
    def says_nothing(self) -> bool:
        """Whether it is given up without anything to compare."""
        return self.given_up and bool(self.mismatch or not self.first.timings)

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
        return compiles and not self.pair.control and 0 < usable <= METRICS["compile_warm"].launches

    def may_go_on(self, launches: int) -> bool:
        """Whether it has no more than ``launches`` usable ones, enough to be timed, and room for another."""
        usable = len(self.first.timings)
        return MIN_LAUNCHES <= usable <= launches and not self.given_up and not self.exhausted

    def prior(self, metric: str) -> Prior | None:
        """What is known of the spread: the case's own history, else what the cases of the run share."""
        return self.priors.get(metric) or self.pooled.get(metric)

    def evidence(self, usable: int, metric: str = LATENCY) -> Moderated | None:
        """The moderated estimate over the first ``usable`` launches of the first stage; None below three."""
        logs = self.first.logs(metric)[:usable]
        return None if len(logs) < MIN_LAUNCHES else self._moderate(logs, metric)

    def together(self, metric: str) -> Moderated:
        """The same over all launches of both stages."""
        return self._moderate(self.first.logs(metric) + self.fresh.logs(metric), metric)

    def _moderate(self, logs: list[float], metric: str) -> Moderated:
        prior = self.prior(metric)
        return moderate(np.array(logs), *((prior.spread, prior.df) if prior else ()))

    @property
    def confirmations(self) -> int:
        """Fresh launches that a suspicion asks for: half as many as before, three at least."""
        return max(MIN_LAUNCHES, (len(self.first.timings) + 1) // 2)

    def needs_fresh(self, wanted: int) -> bool:
        """Whether it still lacks some of ``wanted`` fresh launches, and there is room for them."""
        return (
            len(self.fresh.timings) < wanted
            and len(self.fresh.launches) < wanted + MAX_FAILURES
            and self.fresh.room_for_another(self.rule.max_time_s)
        )

    def fresh_evidence(self, metric: str, wanted: int) -> Moderated | None:
        """The estimate of the fresh launches alone, of which there have to be as many as ``wanted``.

        The first ones say how far launches spread, no more.
        """
        logs = self.fresh.logs(metric)
        before = self.evidence(len(self.first.timings), metric)
        if len(logs) < wanted or before is None:
            return None
        return moderate(np.array(logs), float(before.spread), float(before.df))


def _cost(launch: Launch) -> float:
    return launch.setup_s + launch.measure_s


def _mismatch(base: Realised, head: Realised) -> str:
    """Return why both sides did not compute the same."""
    differing = [f"{name} {ours} against {theirs}" for name, ours, theirs in _differing(base, head)]
    detail = f" ({', '.join(differing)})" if differing else ""
    return f"base and head built different models: hashes {base.hash} and {head.hash}{detail}"


def _models(base: Realised, head: Realised) -> str:
    """Return how the models of both sides differ."""
    differing = [f"base {ours}, head {theirs} {name}" for name, ours, theirs in _differing(base, head)]
    return f"the models differ: {'; '.join(differing) or 'names, shapes or dtypes of their tensors'}"


def _differing(base: Realised, head: Realised) -> list[tuple[str, str, str]]:
    names = ("parameters", "buffers", "inputs")
    both = ((name, _grouped(getattr(base, name)), _grouped(getattr(head, name))) for name in names)
    return [(name, ours, theirs) for name, ours, theirs in both if ours != theirs]


def _grouped(value: int | str) -> str:
    return f"{value:,}" if isinstance(value, int) else value
