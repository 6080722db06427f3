"""From what is known of a pair to its verdict in words and numbers: step times only."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from statistics import median

import numpy as np

from torchgauge.records.comparison import Action, MetricVerdict, Verdict
from torchgauge.results.comparing.estimators import Estimator
from torchgauge.results.comparing.pair_evidence import MIN_LAUNCHES, PairEvidence, Timing
from torchgauge.results.comparing.policy import Rule
from torchgauge.results.comparing.sequential import (
    Levels,
    Moderated,
    detectable,
    is_gain,
    is_harm,
    is_unchanged,
    moderate,
    needed,
)

LATENCY = "latency"
WALL = "latency_wall"

CONFIRMING = 0.05
"""One-sided error of the fresh launches, which are looked at once."""


@dataclass(frozen=True)
class Finding:
    """One step time of one pair at one look; ``p`` holds over all looks, ``p_adjusted`` over the run."""

    metric: str
    rule: Rule
    levels: Levels
    moderated: Moderated
    p: float
    p_adjusted: float

    @property
    def survives(self) -> bool:
        """Whether it is left after Benjamini and Hochberg."""
        return self.p_adjusted <= self.rule.alpha

    def is_suspicion(self, evidence: PairEvidence) -> bool:
        """Whether harm is shown, survives, and is above the floor of the rule."""
        base, head = _medians(evidence.first.timings, self.metric)
        return self.survives and bool(is_harm(self.moderated, self.levels)) and head - base >= self.rule.floor


def timing_verdict(evidence: PairEvidence, finding: Finding, has_to_repeat: bool) -> MetricVerdict:
    """The verdict on one step time; ``has_to_repeat`` where only fresh launches can make it a regression."""
    wall = finding.metric == WALL
    fresh = evidence.fresh_evidence(wall) if has_to_repeat else None
    confirmed = None if fresh is None else _repeats(fresh, finding.levels)
    verdict, reason = _decide(evidence, finding, has_to_repeat, confirmed)
    together = finding.moderated if fresh is None else _together(evidence, wall)
    level = finding.levels.harmless_now if verdict is Verdict.UNCHANGED else finding.levels.harm_now
    error = finding.levels.harmless if verdict is Verdict.UNCHANGED else finding.levels.harm
    low, high = together.interval(level)
    base, head = _medians(evidence.first.timings + evidence.fresh.timings, finding.metric)
    estimator = Estimator.WALL if wall else evidence.estimator
    return replace(
        _blank(evidence, finding.metric, finding.rule),
        estimator=estimator.value if estimator else "",
        verdict=verdict,
        reason=_joined(reason, _left_out(evidence)),
        base=base,
        head=head,
        ratio=math.exp(float(together.mean)),
        low=math.exp(float(low)),
        high=math.exp(float(high)),
        confidence=1 - 2 * error,
        p=finding.p,
        p_adjusted=finding.p_adjusted,
        tolerance=finding.levels.tolerance,
        launches=together.n,
        needed=needed(together, finding.levels) if verdict is Verdict.UNDECIDED else None,
        detectable=detectable(together, finding.levels),
        spread=float(together.spread),
        confirmed=confirmed,
        action=_action(finding, verdict, evidence),
    )


def untimed_verdict(evidence: PairEvidence) -> MetricVerdict:
    """The verdict on the latency of a pair that has too little to be judged by; it never has a ratio."""
    timings = evidence.first.timings
    blank = _blank(evidence, LATENCY, evidence.rule)
    estimator = evidence.estimator.value if evidence.estimator else ""
    if evidence.mismatch:
        return replace(blank, estimator=estimator, verdict=Verdict.NOT_COMPARABLE, reason=evidence.mismatch)
    if not evidence.launches:
        return replace(blank, reason="no launch was measured")
    why = evidence.unusable[-1] if evidence.unusable else "the launches or the time ended first"
    if evidence.failed and not timings:
        return replace(blank, estimator=estimator, verdict=Verdict.NOT_COMPARABLE, reason=why)
    reason = f"{len(timings)} usable launches, and {MIN_LAUNCHES} are the fewest: {why}"
    base, head = _medians(timings, LATENCY) if timings else (None, None)
    return replace(blank, estimator=estimator, reason=reason, base=base, head=head, launches=len(timings))


def _decide(
    evidence: PairEvidence, finding: Finding, has_to_repeat: bool, confirmed: bool | None
) -> tuple[Verdict, str]:
    moderated, levels = finding.moderated, finding.levels
    if finding.is_suspicion(evidence):
        if not has_to_repeat:
            return Verdict.REGRESSION, ""
        if confirmed is None:
            return Verdict.UNDECIDED, "suspected, but there were not enough fresh launches to repeat it"
        if confirmed:
            return Verdict.REGRESSION, f"repeated in {len(evidence.fresh.timings)} fresh launches"
        return Verdict.UNDECIDED, f"suspected, but {len(evidence.fresh.timings)} fresh launches did not agree"
    if is_gain(moderated, levels) and finding.survives:
        return Verdict.IMPROVEMENT, ""
    if is_unchanged(moderated, levels):
        return Verdict.UNCHANGED, ""
    return Verdict.UNDECIDED, _why_undecided(evidence, finding)


def _why_undecided(evidence: PairEvidence, finding: Finding) -> str:
    moderated, levels = finding.moderated, finding.levels
    changed = is_harm(moderated, levels) or is_gain(moderated, levels)
    if changed and not finding.survives:
        return f"the interval excludes 1, but p is {finding.p_adjusted:.2g} among all that was compared"
    if changed:
        return f"slower, but by less than the floor of {finding.rule.floor:g} s"
    if finding.metric == WALL:
        return "wall time is watched for harm only; the other estimator says when it is enough"
    if len(evidence.first.launches) >= evidence.max_launches:
        return f"{moderated.n} launches were not enough"
    if evidence.exhausted:
        return f"the time of {evidence.rule.max_time_s:g} s ended first"
    return "the run ended first"


def _repeats(fresh: Moderated, levels: Levels) -> bool:
    return bool(is_harm(fresh, replace(levels, planned=(fresh.n,), harm=CONFIRMING)))


def _together(evidence: PairEvidence, wall: bool) -> Moderated:
    logs = np.array(evidence.first.logs(wall) + evidence.fresh.logs(wall))
    prior = evidence.wall_prior if wall else evidence.prior
    return moderate(logs, *((prior.spread, prior.df) if prior else ()))


def _medians(timings: list[Timing], metric: str) -> tuple[float, float]:
    """Medians over launches of either side's median step, seconds."""
    each = [timing.wall if metric == WALL else timing.latency for timing in timings]
    known = [estimate for estimate in each if estimate is not None]
    return median(estimate.base for estimate in known), median(estimate.head for estimate in known)


def _blank(evidence: PairEvidence, metric: str, rule: Rule) -> MetricVerdict:
    pair = evidence.pair
    prior = evidence.wall_prior if metric == WALL else evidence.prior
    return MetricVerdict(
        pair_key=pair.key,
        pair_id=pair.id,
        base_case=pair.base.id,
        head_case=pair.head.id,
        metric=metric,
        unit="s",
        estimator="",
        verdict=Verdict.UNDECIDED,
        tolerance=evidence.levels(rule).tolerance,
        prior_spread=prior.spread if prior else None,
        prior_df=prior.df if prior else 0.0,
        quarantined=bool(evidence.quarantine),
        control=pair.control,
        action=Action.REPORT if pair.control and rule.action is Action.GATE else rule.action,
        time_s=evidence.first.spent_s + evidence.fresh.spent_s,
    )


def _action(finding: Finding, verdict: Verdict, evidence: PairEvidence) -> Action:
    """Controls never gate; wall time gates by harm alone, since when to stop is not for it to say."""
    watched = finding.metric == WALL and verdict is not Verdict.REGRESSION
    softened = (evidence.pair.control or watched) and finding.rule.action is Action.GATE
    return Action.REPORT if softened else finding.rule.action


def _left_out(evidence: PairEvidence) -> str:
    timings = evidence.first.timings + evidence.fresh.timings
    bad = sum(timing.latency.bad_steps for timing in timings)
    parts = [f"{bad} steps with impossible times left out"] if bad else []
    if evidence.unusable:
        parts.append(f"{len(evidence.unusable)} launches had no use, the last: {evidence.unusable[-1]}")
    if evidence.quarantine:
        parts.append(f"in quarantine: {evidence.quarantine}")
    return "; ".join(parts)


def _joined(*parts: str) -> str:
    return "; ".join(part for part in parts if part)
