"""What was measured before and is not tonight: a night is no better for what it left out.

A case is measured where its row is counted as a pass. One that was, in any earlier night of its pool, and is
skipped, unsupported, degraded or unchecked tonight is a finding until it is measured again, a data file
declares it, or the policy says otherwise. One that the campaign no longer plans is a finding of one night,
and so is every case of a pool that torchgauge.yml no longer has. One that no night measured and that is
skipped or unsupported by its pool's own word, since the campaign does not say so, is not confirmed: no fault,
and not green.

A pool that compared step times before and has only unsteady ones tonight compared nothing: nobody would see a
slow-down. One unsteady row of several is no finding, since every busy night has some; its page says so. One
whose case has been so for :data:`UNSEEN_NIGHTS` nights in a row is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from torchgauge.clock import utc
from torchgauge.counted import counted
from torchgauge.harness.scenarios.scenario import final_metric
from torchgauge.records import GRAVEST, INCOMPLETE, Modifier, Result, Status
from torchgauge.records.codec import digest
from torchgauge.records.metrics import is_of_a_step
from torchgauge.records.status import UNCOUNTED, counts_as_pass, times_count
from torchgauge.results.dataset import read_run
from torchgauge.results.hostile_text import first_line
from torchgauge.results.origin import read_provenance
from torchgauge.results.store import Store
from torchgauge.workflows.night_clusters import FailedCase, FailureCluster, failed_case, largest_first
from torchgauge.workflows.planned_nights import planned_nights

NOT_PLANNED = "not planned"
UNSEEN_NIGHTS = 5
"""Nights in a row without a step time that counts, tonight among them, after which a case is a finding: where
a busy machine marks one row of five, chance does that to one case in 3,000.
"""
_COLUMNS = ("case_key", "case_id", "device", "status", "modifiers", "reproduce")


@dataclass(frozen=True)
class _Earlier:
    """One case in the newest earlier night that measured it; ``at`` is in seconds since the epoch."""

    case_id: str
    case_key: str
    device: str
    run_id: str
    reproduce: str
    at: float


@dataclass
class _History:
    """What earlier nights of one pool measured, by case key; ``newest`` is what the last of them did.

    ``timed`` are the keys of cases whose step times counted in any of them, ``unsteady`` the dates since
    then in which those of a case were in doubt.
    """

    night: str = ""
    timed: set[str] = field(default_factory=set)
    unsteady: dict[str, set[str]] = field(default_factory=dict)
    measured: dict[str, _Earlier] = field(default_factory=dict)
    newest: dict[str, _Earlier] = field(default_factory=dict)


def is_fine(row: Result) -> bool:
    """Whether ``row`` says what it should: measured, or not and expected so.

    What is expected is the campaign's word: a cause is the row's own, and excuses nothing.
    """
    expected = row.expected is not None and not row.unexpected and row.status is not Status.PASS
    return row.counted or expected


@dataclass(frozen=True)
class Absences:
    """What a night lacks: clusters that earlier nights measured, those that none did, and words on pools."""

    lost: tuple[FailureCluster, ...]
    unconfirmed: tuple[FailureCluster, ...]
    empty: tuple[str, ...]


@dataclass(frozen=True)
class _Run:
    """An earlier run, at seconds since the epoch: without a pool, and its own night, if of no campaign."""

    at: float
    run_id: str
    pool: str
    night: str


def absences(
    store: Store,
    rows: Iterable[Result],
    runs: Sequence[str],
    planned: Mapping[str, frozenset[str]],
    left_out: Collection[str] = (),
) -> Absences:
    """What ``rows`` of tonight's ``runs`` lack of earlier nights, and what pools left out altogether.

    ``planned`` maps pools to the ids of the cases that the campaign plans; a pool that is not in it is held
    against its rows. ``left_out`` are pools that somebody asked this night to do without.
    """
    of_pool: dict[str, list[Result]] = {pool: [] for pool in planned}
    pools = {run: _place(store, run)[0] for run in runs}
    for row in rows:
        of_pool.setdefault(pools[row.run_id], []).append(row)
    before = _earlier(store, runs)
    if planned:
        of_pool |= {
            pool: [] for pool in _newest_pools(store, before) if pool not in of_pool and pool not in left_out
        }
    history = _histories(store, before, of_pool)
    lost = [
        each
        for pool, held in of_pool.items()
        for each in _lost(pool, held, history[pool], planned.get(pool) or {row.case_id for row in held})
    ]
    excused = [each for pool in planned for each in _excused(pool, of_pool[pool], history[pool])]
    empty = (_nothing(pool, held) or _untimed(pool, held, history[pool]) for pool, held in of_pool.items())
    return Absences(largest_first(lost), largest_first(excused), tuple(filter(None, empty)))


def _nothing(pool: str, rows: Sequence[Result]) -> str:
    """That no case of ``pool`` was measured, and how they ended; empty where one was, or none has a row."""
    if not rows or any(row.counted for row in rows):
        return ""
    counts = ", ".join(f"{count} {how}" for how, count in Counter(map(_ended, rows)).most_common())
    return f"{_of(pool)}none of {counted(len(rows), 'case')} was measured ({counts})"


def _untimed(pool: str, rows: Sequence[Result], history: _History) -> str:
    """That every step time of ``pool`` is unsteady, where earlier nights had some of them that were not."""
    timed = [row for row in rows if row.counted and _is_timed(row)]
    before = history.timed & {row.case.key for row in timed}
    if not before or any(times_count(row.status.value, row.modifiers) for row in timed):
        return ""
    told = f"all {len(timed)} are `unsteady`, {len(before)} were steady before"
    return f"{_of(pool)}no step time was compared: {told}"


def _is_timed(row: Result) -> bool:
    """Whether ``row`` has what its scenario is measured for, and that is made of how long a step takes."""
    metric = final_metric(row.case.workload.mode)
    return is_of_a_step(metric) and has_number(row, metric)


def has_number(row: Result, metric: str) -> bool:
    """Whether ``row`` has a value of ``metric``."""
    return any(each.metric == metric and each.median is not None for each in row.summaries)


def _of(pool: str) -> str:
    return f"pool {pool}: " if pool else ""


def _lost(
    pool: str, rows: Sequence[Result], history: _History, planned: Iterable[str]
) -> Iterable[FailureCluster]:
    """The clusters of one pool; failures and rows that say nothing are findings of their own."""
    grouped: dict[tuple[str, str], list[FailedCase]] = {}
    by_id = {each.case_id: each for each in history.measured.values()}
    for row in rows:
        nights = len(history.unsteady.get(row.case.key, ())) + 1
        if row.unsteady and row.counted and nights >= UNSEEN_NIGHTS and row.case.key in history.timed:
            why = f"its step times were in doubt in at least the last {UNSEEN_NIGHTS} nightly runs"
            grouped.setdefault((Modifier.UNSTEADY.value, why), []).append(failed_case(row, row.unsteady))
    for row in rows:  # a suite that changed its data gives the case another key, and the same id
        before = history.measured.get(row.case.key) or by_id.get(row.case_id)
        if before is None or is_fine(row) or row.unexpected or row.status in INCOMPLETE:
            continue
        why = _why(row) or f"last measured on {utc(before.at):%Y-%m-%d}"
        grouped.setdefault((_ended(row), first_line(why)), []).append(failed_case(row, why))
    there = set(planned)
    gone = [each for each in history.newest.values() if each.case_id not in there]
    for each in gone:
        told = f"measured on {utc(each.at):%Y-%m-%d}, and no longer planned"
        case = FailedCase(each.case_id, each.case_key, each.device, each.run_id, told, each.reproduce)
        grouped.setdefault((NOT_PLANNED, "the campaign does not plan it any more"), []).append(case)
    for (ended, why), cases in grouped.items():
        yield _cluster(pool, ended, f"measured before, {ended} now: {why}", cases)


def _excused(pool: str, rows: Sequence[Result], history: _History) -> Iterable[FailureCluster]:
    """The cases of ``pool`` that nobody but their rows excuses, and that no night measured."""
    grouped: dict[tuple[str, str], list[FailedCase]] = {}
    by_id = {each.case_id for each in history.measured.values()}
    for row in rows:
        own = row.status in (Status.SKIPPED, Status.UNSUPPORTED) and row.expected is not row.status
        if own and row.case.key not in history.measured and row.case_id not in by_id:
            grouped.setdefault((row.status.value, first_line(_why(row))), []).append(failed_case(row))
    for (ended, why), cases in grouped.items():
        yield _cluster(
            pool, ended, f"reported as {ended} by the pool itself, and never measured: {why}", cases
        )


def _cluster(pool: str, ended: str, title: str, cases: Iterable[FailedCase]) -> FailureCluster:
    members = tuple(sorted(cases, key=lambda each: each.case_id))
    return FailureCluster(digest([pool, title]), ended, Status.PASS, title, "", "", members)


def _earlier(store: Store, runs: Sequence[str]) -> list[_Run]:
    """The runs that are older than ``runs``, and of other campaigns, the oldest first."""
    begin = min((store.info(run).created_at for run in runs), default=0.0)
    ours = {_place(store, run)[1] for run in runs}
    every = sorted((store.info(run).created_at, run) for run in store.published())
    found = [_Run(at, run, *_place(store, run)) for at, run in every if at < begin]
    return [each for each in found if each.night not in ours]


def _newest_pools(store: Store, before: Sequence[_Run]) -> set[str]:
    """The pools of the newest campaign before tonight's, also those of which it had no run: its plan says."""
    nights = [each for each in before if each.pool]
    if not nights:
        return set()
    newest = nights[-1].night
    told = [plan.told_of for plan in planned_nights(store) if plan.campaign_id == newest]
    known = frozenset().union(*told)
    return {each.pool for each in nights if each.night == newest or each.pool in known}


def _histories(store: Store, before: Iterable[_Run], pools: Iterable[str]) -> dict[str, _History]:
    """What each of ``pools`` measured in the runs ``before``."""
    found = {pool: _History() for pool in pools}
    for run in before:
        pool = found.get(run.pool)
        if pool is None:
            continue
        if run.night != pool.night:
            pool.night, pool.newest = run.night, {}
        for row in read_run(store, "results", run.run_id, _COLUMNS).to_pylist():
            key, status, modifiers = row["case_key"], row["status"], row["modifiers"] or ()
            if counts_as_pass(status, modifiers):
                pool.newest[key] = _Earlier(
                    row["case_id"], key, row["device"], run.run_id, row["reproduce"] or "", run.at
                )
            if times_count(status, modifiers):
                pool.timed.add(key)
                pool.unsteady.pop(key, None)
            elif Modifier.UNSTEADY in modifiers:
                pool.unsteady.setdefault(key, set()).add(f"{utc(run.at):%Y-%m-%d}")
        pool.measured |= pool.newest
    return found


def _ended(row: Result) -> str:
    """The modifier that keeps the row out of the passes, else its status; degraded first: that is red."""
    order = (Modifier.DEGRADED, *GRAVEST)
    apart = [each.value for each in order if each in UNCOUNTED and each in row.modifiers]
    return apart[0] if apart and row.status is Status.PASS else row.status.value


def _why(row: Result) -> str:
    return row.reason or row.degraded or row.unchecked or row.other_model


def _place(store: Store, run: str) -> tuple[str, str]:
    """Pool and campaign of ``run``; no pool, and the run itself, where no campaign brought it."""
    said = read_provenance(store, run)
    return str(said.get("pool", "")), str(said.get("campaign_id", run))
