"""What one night found: gaps, failures in clusters, and changes of level, from a store and a collection.

The gate and the issues are both made of this record, so that an issue is never about something that the gate
did not see. What fails alike is one cluster: 200 models without one operator are one finding.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from torchgauge.records import INCOMPLETE, Result, Status
from torchgauge.records.codec import digest
from torchgauge.records.comparison import Action
from torchgauge.results.comparing.policy import Policy
from torchgauge.results.journal import results
from torchgauge.results.store import Store
from torchgauge.results.trends.trend import Suspicion, Trend, TrendFilter, trend
from torchgauge.results.trends.trend_outcomes import TrendState


@dataclass(frozen=True)
class FailedCase:
    """One case that ended other than expected."""

    case_id: str
    case_key: str
    device: str
    run_id: str
    reason: str
    reproduce: str


@dataclass(frozen=True)
class FailureCluster:
    """Cases that end alike: one fingerprint, or one status of one model where there is none."""

    key: str
    status: Status
    expected: Status
    title: str
    missing_op: str
    fingerprint: str
    cases: tuple[FailedCase, ...]

    @property
    def members(self) -> tuple[str, ...]:
        """Keys of the cases."""
        return tuple(each.case_key for each in self.cases)


@dataclass(frozen=True)
class ChangedCase:
    """One series that became worse; ``size`` is relative, above 0 is slower or more."""

    case_id: str
    series: str
    size: float
    before: float
    after: float
    unit: str
    state: TrendState
    reason: str
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


@dataclass(frozen=True)
class NightFindings:
    """One night; ``gaps`` says what is missing, in words.

    ``passed`` holds keys of cases that ended as expected tonight, ``calm`` keys of series that were measured
    tonight and have no open change for the worse: only those let an issue be closed.
    """

    campaign_id: str
    night: str
    gaps: tuple[str, ...]
    runs: tuple[str, ...]
    cases: int
    failures: tuple[FailureCluster, ...]
    changes: tuple[NightlyChange, ...]
    passed: frozenset[str]
    calm: frozenset[str]


def night_findings(
    store: Store,
    runs: Sequence[str],
    *,
    campaign_id: str,
    night: str,
    since: float,
    gaps: Iterable[str] = (),
    policy: Policy | None = None,
    metrics: Sequence[str] = ("latency",),
) -> NightFindings:
    """What the published ``runs`` of one campaign found; it began at ``since``, in seconds since the epoch.

    ``gaps`` are those that :mod:`torchgauge.workflows.collect` has found. Raises :class:`UnknownNameError`
    for a run that is not there, and :class:`DamagedJournalError`.
    """
    rules = policy or Policy.default()
    rows = [row for run_id in runs for row in _rows(store, run_id)]
    missing = [row for row in rows if row.status in INCOMPLETE]
    found = list(gaps)
    if missing and not found:
        found.append(f"{len(missing)} of {len(rows)} planned cases were not measured")
    if not rows:
        found.append("no case has a result")
    changes: list[NightlyChange] = []
    calm: set[str] = set()
    for metric in metrics:
        seen = trend(store, TrendFilter(metric=metric))
        changes += _changes(seen, set(runs), since, rules)
        calm |= _measured(seen, set(runs))
    worse = {member for change in changes for member in change.members}
    return NightFindings(
        campaign_id=campaign_id,
        night=night,
        gaps=tuple(found),
        runs=tuple(runs),
        cases=len(rows),
        failures=clusters(rows),
        changes=tuple(changes),
        passed=frozenset(
            row.case.key
            for row in rows
            if not (row.unexpected or row.other_model) and row.status not in INCOMPLETE
        ),
        calm=frozenset(calm - worse),
    )


def clusters(rows: Iterable[Result]) -> tuple[FailureCluster, ...]:
    """The unexpected ones of ``rows`` that were attempted, in clusters, the largest first."""
    found: dict[str, list[Result]] = {}
    for row in rows:
        if row.unexpected and row.status not in INCOMPLETE:
            found.setdefault(_key(row), []).append(row)
    made = [_cluster(key, members) for key, members in found.items()]
    return tuple(sorted(made, key=lambda each: (-len(each.cases), each.key)))


def _key(row: Result) -> str:
    fingerprint = row.failure.fingerprint if row.failure else ""
    model = (row.case.workload.suite, row.case.workload.model)
    return digest([row.status.value, fingerprint or list(model)])


def _cluster(key: str, rows: Sequence[Result]) -> FailureCluster:
    first = rows[0]
    failure = first.failure
    expected = first.expected or Status.PASS
    if failure is not None:
        title = f"{failure.type}: {failure.message}" if failure.type else failure.message
    else:
        title = first.reason or f"{first.status.value} where {expected.value} is expected"
    return FailureCluster(
        key=key,
        status=first.status,
        expected=expected,
        title=title,
        missing_op=failure.missing_op if failure else "",
        fingerprint=failure.fingerprint if failure else "",
        cases=tuple(
            FailedCase(
                row.case_id,
                row.case.key,
                str(row.case.device),
                row.run_id,
                row.reason or (row.failure.message if row.failure else ""),
                row.reproduce,
            )
            for row in sorted(rows, key=lambda each: each.case_id)
        ),
    )


def _rows(store: Store, run_id: str) -> list[Result]:
    folder = store.run(run_id)
    return (
        list(results(folder.journal_path, folder.schema_version())) if folder.journal_path.is_file() else []
    )


def _changes(found: Trend, runs: set[str], since: float, policy: Policy) -> list[NightlyChange]:
    """The changes that still hold: of each series the last one, since a later one may have taken it back."""
    grouped: dict[tuple[str, str, str], list[Suspicion]] = {}
    last = (trend.suspicions[-1] for trend in found.series if trend.suspicions)
    for each in last:
        if each.worse and each.state in (TrendState.CONFIRMED, TrendState.SUSPECTED) and _gates(each, policy):
            group = (each.series.machine, each.series.metric, each.suspect.run_id)
            grouped.setdefault(group, []).append(each)
    return [_change(members, runs, since) for members in grouped.values()]


def _gates(each: Suspicion, policy: Policy) -> bool:
    """Whether the policy cares: not ignored, and at least half its tolerance."""
    rule = policy.rule_of(each.series.suite, each.series.case_id, each.series.metric)
    return rule.action is not Action.IGNORE and abs(each.change.size) >= rule.tolerance / 2


def _change(members: Sequence[Suspicion], runs: set[str], since: float) -> NightlyChange:
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
        cases=tuple(
            ChangedCase(
                case_id=each.series.case_id,
                series=_series_key(each),
                size=each.change.size,
                before=each.change.before,
                after=each.change.after,
                unit=each.series.unit,
                state=each.state,
                reason=each.outcome.reason if each.outcome else "",
                confirmed_now=each.state is TrendState.CONFIRMED
                and each.outcome is not None
                and each.outcome.decided_at >= since,
                noticed_now=each.series.nights[each.change.noticed].run_id in runs,
            )
            for each in ordered
        ),
    )


def _measured(found: Trend, runs: set[str]) -> set[str]:
    """Keys of series that have a number of tonight."""
    return {
        digest([each.series.case_key, each.series.metric, each.series.machine])
        for each in found.series
        if any(night.run_id in runs and night.value is not None for night in each.series.nights)
    }


def _series_key(each: Suspicion) -> str:
    return digest([each.series.case_key, each.series.metric, each.series.machine])
