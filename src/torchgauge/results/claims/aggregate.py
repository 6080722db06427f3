"""From the models of a claim to one number with its interval.

* A share has the interval of Wilson (Journal of the American Statistical Association 22, 1927). Models that
  are undecided count against the share at its low end and for it at its high end, so that the interval also
  covers what is not known of them; the estimate goes by medians.
* A geometric mean, and a ratio of two sides, has the percentile bootstrap over models of
  :func:`stats.geometric_mean`, over the common set: models with a number on every side.
* A mean has the percentile bootstrap over models, with the same fixed seed.
* A median has the interval of order statistics.

None of these covers what differs between launches or machines.
"""

from __future__ import annotations

from collections.abc import Sequence

from torchgauge.results import stats
from torchgauge.results.claims.claim import Aggregation, Over, Question
from torchgauge.results.claims.member import COUNTED, Member, MemberState
from torchgauge.results.stats import Estimate

WILSON = "wilson"


def aggregate(members: Sequence[Member], question: Question) -> Estimate:
    """The number of ``question`` over ``members``; its estimate is None where nothing counts."""
    confidence = question.confidence
    counted = [each for each in members if each.state in COUNTED]
    if question.aggregation is Aggregation.PASS_RATE:
        total = len(members) if question.over is Over.PLANNED else len(counted)
        passed = sum(each.state is MemberState.YES for each in counted)
        return share(passed, passed, passed, total if counted else 0, confidence)
    if question.aggregation is Aggregation.SHARE:
        return _share_of(counted, question)
    values = {each.name: each.value for each in counted}
    if not values:
        return Estimate(None, None, None, 0, confidence, stats.ABSENT)
    if question.aggregation is Aggregation.MEDIAN:
        return stats.median_interval([value for value in values.values() if value is not None], confidence)
    if question.aggregation is Aggregation.MEAN:
        return stats.mean(sorted(value for value in values.values() if value is not None), confidence)
    return stats.geometric_mean(values, confidence=confidence)


def share(sure: int, likely: int, possible: int, total: int, confidence: float) -> Estimate:
    """The share of ``likely`` in ``total``, between what is ``sure`` and what is ``possible``."""
    if not total:
        return Estimate(None, None, None, 0, confidence, stats.ABSENT)
    low, high = stats.wilson(sure, total, confidence)[0], stats.wilson(possible, total, confidence)[1]
    return Estimate(likely / total, low, high, total, confidence, WILSON)


def _share_of(counted: Sequence[Member], question: Question) -> Estimate:
    assert question.condition is not None
    sure = sum(each.state is MemberState.YES for each in counted)
    open_ = sum(each.state is MemberState.UNDECIDED for each in counted)
    likely = sum(each.value is not None and question.condition.holds(each.value) for each in counted)
    return share(sure, likely, sure + open_, len(counted), question.confidence)
