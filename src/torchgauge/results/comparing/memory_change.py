"""The verdict on peak memory: it has a noise of its own, and judges nothing before that is known.

Resident memory takes one of a few values by chance, so that three launches of equal code may agree on a
change. The rule in prose is ``docs/comparison.md``.
"""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass, replace

import numpy as np

from torchgauge.records.comparison import MetricVerdict, Verdict
from torchgauge.results.comparing.launch_samples import LaunchSamples
from torchgauge.results.comparing.noise import Prior
from torchgauge.results.comparing.sequential import HARM, moderate

METRIC = "peak_memory"

LAUNCHES = 6
"""Launches that show a change without history: the fewest of which the range covers a median at 95 %."""

KNOWN_LAUNCHES, KNOWN_DF = 3, 5.0
"""Launches that show a change where the spread is known from A/A measurements worth so many degrees."""


@dataclass(frozen=True)
class MemoryRule:
    """What counts as a change of one pair: beyond ``tolerance`` (relative) and ``floor`` (bytes).

    ``prior`` is how memory differed between launches of equal code; None where nobody knows.
    """

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
        return LAUNCHES if self.known is None else KNOWN_LAUNCHES

    def is_far(self, base: float, head: float) -> bool:
        """Whether ``head`` differs from ``base`` by as much as matters, up or down."""
        low, high = sorted((base, head))
        return high - low > self.floor and high > low * (1 + self.tolerance)

    def owes(self, samples: LaunchSamples) -> bool:
        """Whether a launch differs by as much as matters, and there are too few of them to judge by."""
        return len(samples.base) < self.least and any(map(self.is_far, samples.base, samples.head))


def judge_memory(blank: MetricVerdict, samples: LaunchSamples, rule: MemoryRule) -> MetricVerdict:
    """The verdict over ``samples``, one launch of them at least."""
    base, head = statistics.median(samples.base), statistics.median(samples.head)
    ratio = head / base if min(base, head) > 0 else None
    blank = replace(blank, base=base, head=head, ratio=ratio)
    far = sum(map(rule.is_far, samples.base, samples.head))
    if not far:
        return replace(blank, verdict=Verdict.UNCHANGED)
    if ratio is None:
        reason = f"a median of {base:g} and one of {head:g} have no ratio"
        return replace(blank, verdict=Verdict.NOT_COMPARABLE, reason=reason)
    count = len(samples.base)
    if count < rule.least:
        reason = (
            f"the change is large enough in {far} of {count} launches, and it takes {rule.least} to judge"
        )
        return replace(blank, reason=reason, needed=rule.least)
    blank = _with_interval(blank, samples, rule)
    if not rule.is_far(base, head):
        return replace(blank, verdict=Verdict.UNCHANGED, reason=f"{far} of {count} launches differ by more")
    if blank.low is None or blank.high is None or blank.low <= 1 <= blank.high:
        return replace(blank, reason="the change is large enough, but launches disagree on it")
    return replace(blank, verdict=Verdict.REGRESSION if head > base else Verdict.IMPROVEMENT)


def _with_interval(blank: MetricVerdict, samples: LaunchSamples, rule: MemoryRule) -> MetricVerdict:
    """``blank`` with the interval of the ratio; without one where a launch has no ratio."""
    if min(*samples.base, *samples.head) <= 0:
        return blank
    prior = rule.known
    if prior is None:
        from torchgauge.results.stats import paired_ratio

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
