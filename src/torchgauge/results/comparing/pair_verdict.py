"""From what is known of a pair to its verdict in words and numbers: step times only."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import median

from torchgauge.counted import counted
from torchgauge.records.comparison import Action, MetricVerdict, Verdict
from torchgauge.results.comparing.blank_verdict import blank_verdict
from torchgauge.results.comparing.estimators import Estimator
from torchgauge.results.comparing.pair_evidence import (
    LATENCY,
    MIN_LAUNCHES,
    TAIL,
    WALL,
    WATCHED,
    PairEvidence,
    Timing,
)
from torchgauge.results.comparing.policy import Rule
from torchgauge.results.comparing.sequential import (
    Levels,
    Moderated,
    detectable,
    live_change,
    needed,
)
from torchgauge.results.comparing.tails import SUSPECT
from torchgauge.results.stored_change import Change

CONFIRMING = 0.05
"""One-sided error of the fresh launches of a suspicion, which are looked at once."""

HINTED = 0.001
"""One-sided error of the fresh launches of all hints of a run together: they alone have to show the harm."""

HINT_LAUNCHES = 6
"""Fresh launches that a hint asks for."""


@dataclass(frozen=True)
class Repetition:
    """What has to show harm again: so many fresh launches, at this one-sided error."""

    launches: int
    error: float


@dataclass(frozen=True)
class Finding:
    """One step time of one pair at one look; ``p`` holds over all looks, ``p_adjusted`` over the run."""

    metric: str
    rule: Rule
    levels: Levels
    moderated: Moderated
    p: float
    p_adjusted: float

    @cached_property
    def change(self) -> Change:
        """What the launches say by themselves."""
        return live_change(self.moderated, self.levels)

    @property
    def survives(self) -> bool:
        """Whether it is left after Benjamini and Hochberg."""
        return self.p_adjusted <= self.rule.alpha

    def is_suspicion(self, evidence: PairEvidence) -> bool:
        """Whether harm is shown, survives, and is above the floor of the rule."""
        return self.survives and self.shows_harm(evidence)

    def is_hint(self, evidence: PairEvidence) -> bool:
        """Whether harm above the floor is shown by the pair itself, and does not survive among all."""
        return not self.survives and self.shows_harm(evidence)

    @property
    def shows_gain(self) -> bool:
        """Return whether an improvement is shown, and survives."""
        return bool(self.change.less) and self.survives

    def shows_harm(self, evidence: PairEvidence) -> bool:
        """Whether harm is shown by the pair itself, above the floor of the rule."""
        base, head = _medians(evidence.first.timings, self.metric)
        if self.metric == TAIL:  # in steps: the floor is in seconds
            step_s, _ = _medians(evidence.first.timings, LATENCY)
            base, head = base * step_s, head * step_s
        return bool(self.change.more) and head - base >= self.rule.floor

    @property
    def looks_heavier(self) -> bool:
        """Whether slow steps seem to cost the head as much as matters, on too little to tell."""
        large = float(self.moderated.mean) >= math.log1p(self.levels.tolerance / 2)
        unclear = not self.change.same
        return self.metric == TAIL and large and unclear and float(self.moderated.p_value()) / 2 <= SUSPECT


def timing_verdict(
    evidence: PairEvidence, finding: Finding, repetition: Repetition | None = None
) -> MetricVerdict:
    """The verdict on one step time; with a ``repetition`` only fresh launches can make it a regression."""
    metric = finding.metric
    fresh = None if repetition is None else evidence.fresh_evidence(metric, repetition.launches)
    confirmed = None if repetition is None or fresh is None else _repeats(fresh, finding, repetition.error)
    verdict, reason = _decide(evidence, finding, repetition, confirmed)
    if finding.is_hint(evidence) and not confirmed:
        confirmed = None  # it was never a suspicion, so nothing of the kind was contradicted
    together = finding.moderated if fresh is None else evidence.together(metric)
    level = finding.levels.harmless_now if verdict is Verdict.UNCHANGED else finding.levels.harm_now
    error = finding.levels.harmless if verdict is Verdict.UNCHANGED else finding.levels.harm
    low, high = together.interval(level)
    base, head = _medians(evidence.first.timings + evidence.fresh.timings, metric)
    return replace(
        _blank(evidence, metric, finding.rule),
        estimator=_estimator(evidence, metric),
        verdict=verdict,
        reason="; ".join(
            filter(None, (reason, _slow_steps(evidence) if metric == TAIL else "", _left_out(evidence)))
        ),
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
    why = evidence.unusable[-1] if evidence.unusable else "the run ended before a verdict"
    if evidence.failed and not timings:
        return replace(blank, estimator=estimator, verdict=Verdict.NOT_COMPARABLE, reason=why)
    launches = "launch" if len(timings) == 1 else "launches"
    reason = f"{len(timings)} usable {launches}, and at least {MIN_LAUNCHES} are needed: {why}"
    base, head = _medians(timings, LATENCY) if timings else (None, None)
    return replace(blank, estimator=estimator, reason=reason, base=base, head=head, launches=len(timings))


def _decide(
    evidence: PairEvidence, finding: Finding, repetition: Repetition | None, confirmed: bool | None
) -> tuple[Verdict, str]:
    if confirmed and finding.shows_harm(evidence):
        return Verdict.REGRESSION, f"repeated in {counted(len(evidence.fresh.timings), 'fresh launch')}"
    if confirmed and finding.shows_gain:
        return Verdict.IMPROVEMENT, f"repeated in {counted(len(evidence.fresh.timings), 'fresh launch')}"
    if finding.is_suspicion(evidence) or finding.shows_gain:
        if repetition is None:
            return Verdict.IMPROVEMENT if finding.shows_gain else Verdict.REGRESSION, ""
        if confirmed is None:
            return Verdict.UNDECIDED, "suspected, but too few fresh launches were measured to confirm"
        return (
            Verdict.UNDECIDED,
            f"suspected, but {counted(len(evidence.fresh.timings), 'fresh launch')} did not agree",
        )
    if finding.change.same:
        return Verdict.UNCHANGED, ""
    return Verdict.UNDECIDED, _why_undecided(evidence, finding)


def _why_undecided(evidence: PairEvidence, finding: Finding) -> str:
    moderated = finding.moderated
    changed = finding.change.more or finding.change.less
    if changed and not finding.survives:
        fresh = len(evidence.fresh.timings)
        again = f", and {counted(fresh, 'fresh launch')} did not show it" if fresh else ""
        return (
            f"the interval excludes 1, but p adjusted for all comparisons is {finding.p_adjusted:.2g}{again}"
        )
    if changed:
        return f"slower, but by less than the policy's floor of {finding.rule.floor:g} s"
    if finding.looks_heavier:
        return (
            "slow steps seem to cost head more, but "
            f"{counted(moderated.n, 'launch was', 'launches were')} not enough for a verdict"
        )
    if finding.metric in WATCHED:
        what = "wall time is" if finding.metric == WALL else "slow steps are"
        return f"{what} only checked for slowdowns; no launches are added to reach another verdict"
    if len(evidence.first.launches) >= evidence.max_launches:
        return f"{counted(moderated.n, 'launch was', 'launches were')} not enough for a verdict"
    if evidence.exhausted:
        return f"the time limit of {evidence.rule.max_time_s:g} s was reached"
    return "the run ended before a verdict"


def _repeats(fresh: Moderated, finding: Finding, error: float) -> bool:
    change = live_change(fresh, replace(finding.levels, planned=(fresh.n,), harm=error))
    return bool(change.less if finding.shows_gain else change.more)


def _estimator(evidence: PairEvidence, metric: str) -> str:
    """How launches became numbers, in the words of the docs."""
    if metric == TAIL:
        return "tail"
    estimator = Estimator.WALL if metric == WALL else evidence.estimator
    return estimator.value if estimator else ""


def _slow_steps(evidence: PairEvidence) -> str:
    """How many steps were slow on either side; empty where none was."""
    found = [each.tail for each in evidence.first.timings + evidence.fresh.timings if each.tail is not None]

    def share(index: int) -> str:
        return f"{sum(each.slow[index] for each in found)} of {sum(each.steps[index] for each in found)}"

    if not any(any(each.slow) for each in found):
        return ""
    return f"steps of at least twice the median: base {share(0)}, head {share(1)}"


def _medians(timings: list[Timing], metric: str) -> tuple[float, float]:
    """Medians over launches of either side's median step, seconds; for slow steps of their stretch."""
    known = [each for each in (timing.of(metric) for timing in timings) if each is not None]
    return median(estimate.base for estimate in known), median(estimate.head for estimate in known)


def _blank(evidence: PairEvidence, metric: str, rule: Rule) -> MetricVerdict:
    prior = evidence.prior(metric)
    return blank_verdict(
        evidence.pair,
        metric,
        rule,
        quarantined=bool(evidence.quarantine),
        unit="ratio" if metric == TAIL else "s",
        estimator="",
        prior_spread=prior.spread if prior else None,
        prior_df=prior.df if prior else 0.0,
        time_s=evidence.first.spent_s + evidence.fresh.spent_s,
    )


def _action(finding: Finding, verdict: Verdict, evidence: PairEvidence) -> Action:
    """Controls never gate; what is watched for harm gates by harm alone, or where slow steps look heavier."""
    watched = finding.metric in WATCHED and verdict is not Verdict.REGRESSION and not finding.looks_heavier
    return finding.rule.action.softened if evidence.pair.control or watched else finding.rule.action


def _left_out(evidence: PairEvidence) -> str:
    timings = evidence.first.timings + evidence.fresh.timings
    bad = sum(timing.latency.bad_steps for timing in timings)
    parts = [f"{bad} steps with impossible times left out"] if bad else []
    if evidence.models:
        parts.append(evidence.models)
    if evidence.waited:
        parts.append(evidence.waited)
    if evidence.unusable:
        parts.append(
            f"{counted(len(evidence.unusable), 'launch')} unusable, the last: {evidence.unusable[-1]}"
        )
    if evidence.quarantine:
        parts.append(f"in quarantine: {evidence.quarantine}")
    return "; ".join(parts)
