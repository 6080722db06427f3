"""The verdict on what has one number a launch and is judged by its size: compile times and peak memory.

The rule in prose is the table of ``docs/comparison.md``. Three launches have no interval that would lie
within a tolerance, so that *unchanged* is a change below it, and launches that disagree decide nothing.
Resident memory takes one of a few values by chance, so that three launches of equal code may agree on a
change: it is judged launch by launch, and by nothing before its noise is known.
"""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass, replace

import numpy as np

from torchgauge.counted import counted
from torchgauge.records import Compared, Metric
from torchgauge.records.comparison import MetricVerdict, Verdict
from torchgauge.results.comparing.launch_samples import LaunchSamples
from torchgauge.results.comparing.noise import Prior
from torchgauge.results.comparing.sequential import HARM, moderate
from torchgauge.results.stats import paired_ratio

MEMORY = "peak_memory"

KNOWN_LAUNCHES, KNOWN_DF = 3, 5.0
"""Launches that show a change where the spread is known from A/A measurements worth so many degrees."""


@dataclass(frozen=True)
class SizedRule:
    """What counts as a change of one pair: beyond ``tolerance`` (relative) and ``floor`` (base unit).

    ``prior`` is how the metric differed between launches of equal code; None where nobody knows.
    """

    metric: Metric
    tolerance: float
    floor: float
    prior: Prior | None = None

    @property
    def known(self) -> Prior | None:
        """The prior where it is worth enough to judge by."""
        return self.prior if self.prior is not None and self.prior.df >= KNOWN_DF else None

    @property
    def least(self) -> int:
        """Launches that it takes to show a change."""
        return self.metric.launches if self.known is None else KNOWN_LAUNCHES

    def is_far(self, base: float, head: float) -> bool:
        """Whether ``head`` differs from ``base`` by as much as matters, up or down."""
        low, high = sorted((base, head))
        return high - low > self.floor and high > low * (1 + self.tolerance)

    def owes(self, samples: LaunchSamples) -> bool:
        """Whether a launch differs by as much as matters, and there are too few of them to judge by."""
        return len(samples.base) < self.least and any(map(self.is_far, samples.base, samples.head))


def judge_sized(blank: MetricVerdict, samples: LaunchSamples, rule: SizedRule) -> MetricVerdict:
    """The verdict over ``samples``, one launch of them at least."""
    base, head = statistics.median(samples.base), statistics.median(samples.head)
    ratio = head / base if min(base, head) > 0 else None
    blank = replace(blank, base=base, head=head, ratio=ratio)
    count, far = len(samples.base), sum(map(rule.is_far, samples.base, samples.head))
    by_launch = rule.metric.compared is Compared.MEMORY
    if by_launch and not far:
        return replace(blank, verdict=Verdict.UNCHANGED)
    if ratio is None:
        reason = f"a median of {base:g} and one of {head:g} have no ratio"
        return replace(blank, verdict=Verdict.NOT_COMPARABLE, reason=reason)
    if count < rule.least:
        return _too_few(blank, rule, far if by_launch else None)
    blank = _with_interval(blank, samples, rule)
    if not rule.is_far(base, head):
        reason = f"{far} of {counted(count, 'launch')} differ by more than the tolerance" if by_launch else ""
        return replace(blank, verdict=Verdict.UNCHANGED, reason=reason)
    low, high = blank.low, blank.high
    if low is None or high is None:  # fewer launches than have one must all point the same way
        low, high = (min(samples.ratios), max(samples.ratios)) if len(samples.ratios) == count else (1.0, 1.0)
    if low <= 1 <= high:
        return replace(blank, reason="the change is large enough, but launches disagree on its direction")
    return replace(blank, verdict=worse_or_better(head - base, rule.metric))


def worse_or_better(change: float, metric: Metric) -> Verdict:
    """What ``change`` is; of a metric without a direction more is worse, since nobody asked for it."""
    worse = metric.better.worse(change)
    return Verdict.REGRESSION if (change > 0 if worse is None else worse) else Verdict.IMPROVEMENT


def _too_few(blank: MetricVerdict, rule: SizedRule, far: int | None) -> MetricVerdict:
    """Undecided; what was measured once is shown and can gate nothing, or every comparison would wait for it.

    An A/B run compiles into an empty cache in its first launch only, and an ordinary run has one launch.
    """
    count, least = blank.launches, rule.least
    if far is not None:
        reason = (
            f"the change is large enough in {far} of "
            f"{counted(count, 'launch')}, but a verdict requires {least}"
        )
        return replace(blank, reason=reason, needed=least)
    action = blank.action.softened if count == 1 else blank.action
    return replace(blank, reason=f"{count} of {least} required launches", needed=least, action=action)


def _with_interval(blank: MetricVerdict, samples: LaunchSamples, rule: SizedRule) -> MetricVerdict:
    """``blank`` with the interval of the ratio; without one where a launch has no ratio."""
    prior = rule.known
    if len(samples.ratios) < len(samples.base):
        return blank
    if prior is None:
        paired = paired_ratio(samples.base, samples.head, blank.confidence)
        return replace(blank, low=paired.low, high=paired.high)
    found = moderate(np.log(samples.ratios), prior.spread, prior.df)
    low, high = found.interval(HARM)
    return replace(
        blank,
        low=math.exp(float(low)),
        high=math.exp(float(high)),
        confidence=1 - 2 * HARM,
        spread=float(found.spread),
        prior_spread=prior.spread,
        prior_df=prior.df,
    )
