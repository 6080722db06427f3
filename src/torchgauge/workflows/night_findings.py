"""What one night found: gaps, failures, what is missing of earlier nights, and changes of level.

The gate and the issues are both made of this record, so that an issue is never about something that the gate
did not see.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from torchgauge.counted import counted
from torchgauge.records import INCOMPLETE, Result, Status
from torchgauge.results.comparing.policy import Policy
from torchgauge.results.lookup import results_of
from torchgauge.results.store import Store
from torchgauge.results.trends.trend import Trend, trend
from torchgauge.results.trends.trend_findings import keep
from torchgauge.workflows.night_absence import absences, has_number, is_fine
from torchgauge.workflows.night_changes import NightlyChange, changes_of, measured_series, night_filters
from torchgauge.workflows.night_clusters import FailureCluster, clusters


@dataclass(frozen=True)
class AbsentPool:
    """A pool of which result sets did not come; ``told`` says it without a night or a run, for its issue."""

    pool: str
    told: str


@dataclass(frozen=True)
class NightOf:
    """Which night is asked about: its campaign, its date, and when it began in seconds since the epoch.

    ``planned`` maps pools to the ids of the cases that the campaign plans, as far as that is known;
    ``left_out`` are the pools that somebody asked it to do without, ``absent`` those of which something or
    everything did not come, and ``rejected`` says what came and was refused. ``skipped`` are the ids of cases
    that a suite declares not to run, or that a device refuses where the night is planned.
    """

    campaign_id: str
    night: str
    since: float
    planned: Mapping[str, frozenset[str]]
    left_out: tuple[str, ...] = ()
    absent: tuple[AbsentPool, ...] = ()
    rejected: tuple[str, ...] = ()
    skipped: frozenset[str] = frozenset()


@dataclass(frozen=True)
class NightFindings:
    """One night; ``gaps`` says what is missing, in words, and ``lost`` what earlier nights measured.

    ``unconfirmed`` are cases that no night measured and that their pools alone say not to run.

    ``absent`` are the pools of which result sets did not come, ``whole`` those of which all came.

    ``passed`` holds keys of cases that ended as expected tonight, ``calm`` keys of series that were measured
    tonight and have no open change for the worse: only those let an issue be closed.
    """

    campaign_id: str
    night: str
    gaps: tuple[str, ...]
    runs: tuple[str, ...]
    cases: int
    failures: tuple[FailureCluster, ...]
    lost: tuple[FailureCluster, ...]
    changes: tuple[NightlyChange, ...]
    passed: frozenset[str]
    calm: frozenset[str]
    absent: tuple[AbsentPool, ...] = ()
    whole: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    rejected: tuple[str, ...] = ()
    unconfirmed: tuple[FailureCluster, ...] = ()


def night_findings(
    store: Store,
    runs: Sequence[str],
    of: NightOf,
    gaps: Iterable[str] = (),
    policy: Policy | None = None,
) -> NightFindings:
    """What the published ``runs`` of one campaign found.

    ``gaps`` are those that :mod:`torchgauge.workflows.collect` has found. Raises :class:`UnknownNameError`
    for a run that is not there, and :class:`DamagedJournalError`.
    """
    rules = policy or Policy.default()
    rows = [_as_declared(row, of.skipped) for run_id in runs for row in results_of(store, run_id)]
    missing = [row for row in rows if row.status in INCOMPLETE]
    found = list(gaps)
    if missing and not found:
        found.append(f"{len(missing)} of {counted(len(rows), 'planned case')} were not measured")
    if not rows:
        found.append("no case has a result")
    absent = absences(store, rows, runs, of.planned, of.left_out)
    changes: list[NightlyChange] = []
    calm: set[str] = set()
    for wanted in night_filters(store):
        seen = trend(store, wanted)
        changes += changes_of(seen, set(runs), of.since, rules)
        calm |= measured_series(seen, set(runs))
        found += _without(wanted.metric, seen, rows)
    worse = {member for change in changes for member in change.members}
    return NightFindings(
        campaign_id=of.campaign_id,
        night=of.night,
        gaps=(*found, *absent.empty),
        runs=tuple(runs),
        cases=len(rows),
        failures=clusters(rows),
        lost=absent.lost,
        unconfirmed=absent.unconfirmed,
        changes=tuple(changes),
        passed=frozenset(row.case.key for row in rows if is_fine(row)),
        calm=frozenset(calm - worse),
        absent=of.absent,
        whole=tuple(sorted(of.planned.keys() - {each.pool for each in of.absent})),
        left_out=of.left_out,
        rejected=of.rejected,
    )


def keep_changes(store: Store, now: float) -> None:
    """Keep what the history of ``store`` shows at ``now`` for the dashboard, which looks for nothing itself.

    Raises :class:`InfrastructureError` on a failing disk.
    """
    for wanted in night_filters(store):
        keep(store, trend(store, wanted), wanted, now)


def _without(metric: str, seen: Trend, rows: Iterable[Result]) -> list[str]:
    """That cases passed without a number of ``metric``, which ``seen`` has of earlier nights."""
    known = {
        each.series.case_key
        for each in seen.series
        if any(night.value is not None for night in each.series.nights)
    }
    silent = [
        row.case_id for row in rows if row.counted and row.case.key in known and not has_number(row, metric)
    ]
    told = f"{counted(len(silent), 'passing case has', 'passing cases have')} no {metric}, unlike earlier: "
    return [told + ", ".join(silent[:3]) + (", ..." if len(silent) > 3 else "")] if silent else []


def _as_declared(row: Result, skipped: frozenset[str]) -> Result:
    """``row`` with what the campaign knows of it, where that is that it does not run."""
    not_run = row.status in (Status.SKIPPED, Status.UNSUPPORTED)
    known = row.expected is None and not_run and row.case_id in skipped
    return replace(row, expected=row.status) if known else row
