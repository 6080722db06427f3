"""One comparison of two builds as its users need it: an answer, a ratio with its interval, and the evidence.

Why beside the verdict: a confirmation and a bisection ask one question about one metric of one case, and both
can be tested with a comparison that is simulated.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum

from torchgauge.records.codec import LATER
from torchgauge.records.comparison import MetricVerdict, Verdict
from torchgauge.results.comparing.status_verdict import BOTH_FAIL
from torchgauge.results.gain import named_gain


class Answer(str, Enum):
    """What a comparison said of the second build against the first."""

    CHANGED = "changed"
    SAME = "same"
    UNCLEAR = "unclear"
    UNUSABLE = "unusable"


STATUS = "status"
_ANSWERS = {
    Verdict.BROKEN: Answer.CHANGED,
    Verdict.OUTPUTS_DIFFER: Answer.CHANGED,
    Verdict.FIXED: Answer.CHANGED,
    Verdict.REGRESSION: Answer.CHANGED,
    Verdict.IMPROVEMENT: Answer.CHANGED,
    Verdict.UNCHANGED: Answer.SAME,
    Verdict.UNDECIDED: Answer.UNCLEAR,
}


@dataclass(frozen=True)
class Reading:
    """One comparison: ratio of the second build to the first with its interval, or the reason of none.

    ``base`` and ``head`` are medians in the metric's base unit. ``comparison`` names the A/B run that holds
    the launches. ``UNUSABLE`` is the answer for a build that cannot be made or does not run.
    """

    answer: Answer
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    base: float | None = None
    head: float | None = None
    reason: str = ""
    comparison: str = ""
    time_s: float = 0.0
    metric: str = field(default="latency", metadata={LATER: True})

    @property
    def text(self) -> str:
        """The reading as a person reads it."""
        if self.ratio is None:
            return self.reason or self.answer.value
        return named_gain(self.metric, self.ratio, self.low, self.high)


def reading_of(verdicts: Iterable[MetricVerdict], metric: str, comparison: str = "") -> Reading:
    """The reading of ``metric`` among the verdicts on one case; the status decides where it changed."""
    found = {verdict.metric: verdict for verdict in verdicts if verdict.pair_key and not verdict.control}
    status = found.get("status")
    if status is not None and metric == STATUS:
        alike = status.reason.startswith(BOTH_FAIL)
        answer = Answer.SAME if alike else _ANSWERS.get(status.verdict, Answer.UNUSABLE)
        return Reading(answer, reason=status.reason or status.verdict.value, comparison=comparison)
    if status is not None and status.verdict in (Verdict.BROKEN, Verdict.OUTPUTS_DIFFER, Verdict.FIXED):
        return Reading(Answer.UNUSABLE, reason=status.reason or status.verdict.value, comparison=comparison)
    verdict = found.get(metric)
    if verdict is None:
        known = ", ".join(sorted(found)) or "none"
        return Reading(
            Answer.UNUSABLE,
            reason=f"{metric} has no verdict; metrics with a verdict: {known}",
            comparison=comparison,
        )
    return Reading(
        answer=_ANSWERS.get(verdict.verdict, Answer.UNUSABLE),
        ratio=verdict.ratio,
        low=verdict.low,
        high=verdict.high,
        base=verdict.base,
        head=verdict.head,
        reason=verdict.reason,
        comparison=comparison,
        time_s=verdict.time_s,
        metric=metric,
    )
