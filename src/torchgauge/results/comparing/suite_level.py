"""The one hypothesis on a whole suite: the geometric mean of ratios, with an interval.

A launch has something in common for all pairs that shared it, so pairs are no independent samples: the mean
over pairs is taken launch by launch, and the interval is that of Student's t over launches. The first
launches of every pair enter, as many as all of them have, so that pairs that needed more do not weigh more.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from torchgauge.counted import counted
from torchgauge.records.comparison import MetricVerdict, Verdict
from torchgauge.results.comparing.blank_verdict import blank_suite
from torchgauge.results.comparing.pair_evidence import MIN_LAUNCHES, PairEvidence
from torchgauge.results.comparing.policy import Rule
from torchgauge.results.comparing.sequential import (
    Floats,
    Levels,
    Moderated,
    detectable,
    live_change,
    moderate,
    needed,
)

SUITE_HARM = 0.0025
"""One-sided error of harm for the suite, over its looks: half of one wrongly red run in 200."""

SUITE_LAUNCHES = 6
"""Launches of each pair that a suite which looks slower may ask for: three cannot show 1 %, six often do."""

SUITE_LOOKS = tuple(range(MIN_LAUNCHES, SUITE_LAUNCHES + 1))
"""It is looked at when all pairs are done, and after every launch that it asks for."""


def suite_verdict(evidences: Sequence[PairEvidence], rule: Rule) -> MetricVerdict | None:
    """The verdict on the geometric mean over all pairs that were timed; None for fewer than two of them.

    Pairs without enough launches, and those that are not comparable, drop out and are counted.
    """
    timed = [each for each in evidences if len(each.first.timings) >= MIN_LAUNCHES and not each.mismatch]
    if len(timed) < 2:
        return None
    launches = min(len(each.first.timings) for each in timed)
    logs = np.array([each.first.logs()[:launches] for each in timed])
    found = common_evidence(logs)
    levels = Levels(rule.tolerance, SUITE_LOOKS, harm=SUITE_HARM, harmless=rule.alpha)
    verdict = live_change(found, levels).verdict
    low, high = found.interval(levels.harmless_now if verdict is Verdict.UNCHANGED else levels.harm_now)
    dropped = len(evidences) - len(timed)
    reason = f"geometric mean over {counted(len(timed), 'pair')}" + (
        f"; {counted(dropped, 'other pair')} excluded" if dropped else ""
    )
    p = float(found.p_value())
    return blank_suite(
        rule,
        estimator="geometric_mean",
        verdict=verdict,
        reason=reason,
        ratio=math.exp(float(found.mean)),
        low=math.exp(float(low)),
        high=math.exp(float(high)),
        confidence=1 - 2 * (levels.harmless if verdict is Verdict.UNCHANGED else levels.harm),
        p=p,
        p_adjusted=p,
        launches=launches,
        needed=needed(found, levels) if verdict is Verdict.UNDECIDED else None,
        detectable=detectable(found, levels),
        spread=float(found.spread),
        # a suite that stays undecided blocks nobody: each of its pairs says so for itself
        action=rule.action if verdict is Verdict.REGRESSION else rule.action.softened,
        time_s=sum(each.first.spent_s + each.fresh.spent_s for each in evidences),
    )


def common_evidence(logs: Floats) -> Moderated:
    """The estimate over launches of the mean over pairs; ``logs`` is (..., pairs, launches).

    The degrees of freedom are those of the launches, however many pairs there are.
    """
    return moderate(logs.mean(axis=-2))


def asks_for_more(verdict: MetricVerdict) -> bool:
    """Whether the suite looks slower, by half its tolerance at least, on too few launches to tell."""
    slower = verdict.ratio is not None and verdict.ratio >= 1 + verdict.tolerance / 2
    return verdict.verdict is Verdict.UNDECIDED and slower and verdict.launches < SUITE_LAUNCHES
