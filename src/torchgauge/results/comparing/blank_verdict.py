"""A verdict before anything is said: names, rule and action of one metric of one pair."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torchgauge.records.comparison import Action, MetricVerdict, Pair, Verdict
from torchgauge.results.comparing.policy import Rule

RuleOf = Callable[[str], Rule]
QUARANTINE_FACTOR = 3.0
"""What is in quarantine gates at so many times its tolerance."""


@dataclass(frozen=True)
class BlankVerdicts:
    """Blank verdicts of one pair under the rules of its metrics."""

    pair: Pair
    rule_of: RuleOf
    quarantined: bool

    def blank(self, metric: str, unit: str, launches: int, estimator: str = "exact") -> MetricVerdict:
        """Undecided so far; a control never gates."""
        rule = self.rule_of(metric)
        return MetricVerdict(
            pair_key=self.pair.key,
            pair_id=self.pair.id,
            base_case=self.pair.base.id,
            head_case=self.pair.head.id,
            metric=metric,
            unit=unit,
            estimator=estimator,
            verdict=Verdict.UNDECIDED,
            tolerance=rule.tolerance * (QUARANTINE_FACTOR if self.quarantined else 1.0),
            launches=launches,
            quarantined=self.quarantined,
            control=self.pair.control,
            action=Action.REPORT if self.pair.control and rule.action is Action.GATE else rule.action,
        )
