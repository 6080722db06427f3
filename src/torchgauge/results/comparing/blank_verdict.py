"""A verdict before anything is said: names, rule and action of a metric of one pair, or of a whole suite."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from torchgauge.records.comparison import MetricVerdict, Pair, Verdict
from torchgauge.results.comparing.policy import Rule

RuleOf = Callable[[str], Rule]
SUITE = "suite"
"""The metric of the one verdict that is on no pair: the geometric mean."""


def blank_verdict(
    pair: Pair, metric: str, rule: Rule, *, quarantined: bool = False, **more: Any
) -> MetricVerdict:
    """Undecided so far; a control never gates. ``more`` are fields of the verdict."""
    blank = MetricVerdict(
        pair_key=pair.key,
        pair_id=pair.id,
        base_case=pair.base.id,
        head_case=pair.head.id,
        metric=metric,
        unit="",
        estimator="exact",
        verdict=Verdict.UNDECIDED,
        tolerance=rule.tolerated(quarantined=quarantined),
        quarantined=quarantined,
        control=pair.control,
        action=rule.action.softened if pair.control else rule.action,
    )
    return replace(blank, **more)


def blank_suite(rule: Rule, **more: Any) -> MetricVerdict:
    """The same of a whole suite, which belongs to no pair."""
    blank = MetricVerdict(
        "", "the whole suite", "", "", SUITE, "ratio", "geometric mean", Verdict.UNDECIDED,
        tolerance=rule.tolerance, action=rule.action,
    )  # fmt: skip
    return replace(blank, **more)
