"""Changes of level for the worse that stand: suspected, confirmed, or not confirmable, and not taken back.

What a confirmation closed (it was not reproduced, or it was the environment) stands no more. Neither does
what later changes have brought back to within half the tolerance; everything else stands every night.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from torchgauge.harness.scenarios.scenario import final_metric
from torchgauge.records.codec import digest
from torchgauge.records.comparison import Action
from torchgauge.results.comparing.policy import Policy, Rule
from torchgauge.results.dataset import read_table
from torchgauge.results.store import Store
from torchgauge.results.trends.trend import Series, SeriesTrend, Suspicion, Trend
from torchgauge.results.trends.trend_findings import TrendFilter
from torchgauge.results.trends.trend_outcomes import TrendState


@dataclass(frozen=True)
class ChangedCase:
    """One series that became worse; ``size`` is relative, above 0 is slower or more.

    ``gates`` is false where the policy only reports it. ``confirmed_now`` and ``noticed_now`` say that it is
    of this night.
    """

    case_id: str
    series: str
    size: float
    before: float
    after: float
    unit: str
    state: TrendState
    reason: str
    gates: bool
    confirmed_now: bool
    noticed_now: bool


@dataclass(frozen=True)
class NightlyChange:
    """Series of one machine and metric whose level changed for the worse with the same night."""

    key: str
    metric: str
    device: str
    date: str
    good_run: str
    suspect_run: str
    good_torch: str
    suspect_torch: str
    cases: tuple[ChangedCase, ...]

    @property
    def members(self) -> tuple[str, ...]:
        """Keys of the series."""
        return tuple(each.series for each in self.cases)

    @property
    def confirmed(self) -> bool:
        """Whether any of it was measured again and is real."""
        return any(each.state is TrendState.CONFIRMED for each in self.cases)


def night_filters(store: Store) -> list[TrendFilter]:
    """The series of ``store`` that a night looks at: of each scenario what it is measured for."""
    modes: dict[str, list[str]] = {}
    for mode in sorted(set(read_table(store, "results", columns=("mode",))["mode"].to_pylist())):
        modes.setdefault(final_metric(mode), []).append(mode)
    return [TrendFilter(metric, modes=tuple(of)) for metric, of in modes.items()]


def standing(found: SeriesTrend, policy: Policy) -> list[Suspicion]:
    """The changes of one series that stand and that ``policy`` does not ignore, oldest first."""
    rule = rule_of(found.series, policy)
    if rule.action is Action.IGNORE:
        return []
    held = sorted(
        (each for each in found.suspicions if not each.state.closed), key=lambda each: each.change.index
    )
    return [
        each
        for place, each in enumerate(held)
        if each.worse
        and matters(each, rule)
        and _still_worse(each.series, [later.change.size for later in held[place:]], rule)
    ]


def rule_of(series: Series, policy: Policy) -> Rule:
    """What ``policy`` says of ``series``."""
    return policy.rule_of(series.suite, series.case_id, series.metric)


def matters(each: Suspicion, rule: Rule) -> bool:
    """Whether ``each`` is at least half of what the policy tolerates, as in an A/B run."""
    return rule.action is not Action.IGNORE and abs(each.change.size) >= rule.tolerance / 2


def changes_of(found: Trend, runs: set[str], since: float, policy: Policy) -> list[NightlyChange]:
    """What stands in ``found``, by machine, metric and suspect run; tonight is ``runs`` and ``since``."""
    grouped: dict[tuple[str, str, str], list[Suspicion]] = {}
    for series in found.series:
        for each in standing(series, policy):
            group = (each.series.machine, each.series.metric, each.suspect.run_id)
            grouped.setdefault(group, []).append(each)
    return [_change(members, runs, since, policy) for members in grouped.values()]


def measured_series(found: Trend, runs: set[str]) -> set[str]:
    """Keys of series that have a number of ``runs``."""
    return {
        series_key(each.series)
        for each in found.series
        if any(night.run_id in runs and night.value is not None for night in each.series.nights)
    }


def series_key(series: Series) -> str:
    """Sixteen hex digits that name ``series``."""
    return digest([series.case_key, series.metric, series.machine])


def _still_worse(series: Series, sizes: Iterable[float], rule: Rule) -> bool:
    """Whether changes of ``sizes``, one after the other, leave the level worse by half the tolerance."""
    now = math.expm1(sum(math.log1p(size) for size in sizes))
    return abs(now) >= rule.tolerance / 2 and bool(series.worse(now))


def _change(members: Sequence[Suspicion], runs: set[str], since: float, policy: Policy) -> NightlyChange:
    first = members[0]
    ordered = sorted(members, key=lambda each: (-abs(each.change.size), each.series.case_id))
    return NightlyChange(
        key=digest([first.series.machine, first.series.metric, first.suspect.run_id]),
        metric=first.series.metric,
        device=first.series.device,
        date=first.suspect.date,
        good_run=first.good.run_id,
        suspect_run=first.suspect.run_id,
        good_torch=first.good.torch_version,
        suspect_torch=first.suspect.torch_version,
        cases=tuple(_case(each, runs, since, policy) for each in ordered),
    )


def _case(each: Suspicion, runs: set[str], since: float, policy: Policy) -> ChangedCase:
    outcome = each.outcome
    return ChangedCase(
        case_id=each.series.case_id,
        series=series_key(each.series),
        size=each.change.size,
        before=each.change.before,
        after=each.change.after,
        unit=each.series.unit,
        state=each.state,
        reason=outcome.reason if outcome else "",
        gates=rule_of(each.series, policy).action is Action.GATE,
        confirmed_now=each.state is TrendState.CONFIRMED
        and outcome is not None
        and outcome.decided_at >= since,
        noticed_now=each.series.nights[each.change.noticed].run_id in runs,
    )
