"""The ratio of two launches: its interval from samples and history, its p-value and its verdict."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from scipy import stats

from torchgauge.records.comparison import MetricVerdict, Verdict
from torchgauge.results.comparing.noise import Prior
from torchgauge.results.comparing.policy import Policy
from torchgauge.results.log_ratio import change_of, ratio_of
from torchgauge.results.stored_change import Change, stored_change

CONFIDENCE = 0.95


def decided(blank: MetricVerdict, log: float, within: float, prior: Prior, source: str) -> MetricVerdict:
    """Interval and p of one log ratio; degrees of freedom after Welch and Satterthwaite.

    The samples' part has many, and counts as known.
    """
    variance = within + prior.spread**2
    df = prior.df * (variance / prior.spread**2) ** 2
    error = math.sqrt(variance)
    reach = float(stats.t.isf((1 - CONFIDENCE) / 2, df)) * error
    from_where = f"interval from {source} ({prior.df:g} degrees of freedom)" if source else ""
    certain = float(stats.t.isf((1 - CONFIDENCE) / 2, df) + stats.t.isf(0.2, df))
    return replace(
        blank,
        low=ratio_of(log - reach),
        high=ratio_of(log + reach),
        p=float(2 * stats.t.sf(abs(log) / error, df)),
        detectable=change_of(certain * error),
        reason=from_where,
    )


def adjusted(verdicts: Sequence[MetricVerdict], policy: Policy) -> list[MetricVerdict]:
    """Verdicts of the step times, with p-values of Benjamini and Hochberg over all of them."""
    ps = [each.p for each in verdicts if each.p is not None]
    if not ps:
        return list(verdicts)
    shares = iter(stats.false_discovery_control(ps).tolist())
    found = []
    for each in verdicts:
        if each.p is None:
            found.append(each)
            continue
        suite = each.head_case.partition("/")[0]
        rule = policy.rule_of(suite, each.head_case, "latency")
        found.append(judged(replace(each, p_adjusted=float(next(shares))), rule.alpha, rule.floor))
    return found


def judged(each: MetricVerdict, alpha: float, floor: float) -> MetricVerdict:
    """The verdict that ratio, interval and adjusted p of ``each`` allow."""
    assert each.p_adjusted is not None
    small = abs((each.head or 0.0) - (each.base or 0.0)) < floor
    sure = each.p_adjusted <= alpha and not small
    more, less, same = change_in(each, each.tolerance)
    verdict = Change(more and sure, less and sure, same).verdict
    if verdict is not Verdict.UNDECIDED:
        return replace(each, verdict=verdict)
    return replace(
        each, reason="; ".join(part for part in (_why_undecided(each, sure, small), each.reason) if part)
    )


def change_in(each: MetricVerdict, tolerance: float) -> Change:
    """What ratio and interval of ``each`` say under ``tolerance``; half of it is as large as matters."""
    logs = (math.nan if value is None else math.log(value) for value in (each.ratio, each.low, each.high))
    return stored_change(*logs, least=math.log1p(tolerance / 2), margin=math.log1p(tolerance))


def _why_undecided(each: MetricVerdict, sure: bool, small: bool) -> str:
    assert each.low is not None
    assert each.high is not None
    if each.low <= 1 <= each.high:
        return f"the interval contains 1 and is wider than the tolerance of {each.tolerance:.0%}"
    if small:
        return "the change is below the floor of the policy"
    if not sure:
        return f"the interval excludes 1, but p adjusted for all comparisons is {each.p_adjusted:.2g}"
    return (
        f"the estimate is below half of the tolerance of {each.tolerance:.0%}, "
        "but its interval extends beyond the tolerance"
    )
