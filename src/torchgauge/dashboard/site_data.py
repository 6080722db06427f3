"""What the pages and shards are made from, read from a store."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from torchgauge.clock import SYSTEM_CLOCK
from torchgauge.dashboard.arrow_columns import Integers
from torchgauge.dashboard.case_index import CaseIndex
from torchgauge.dashboard.epoch import Epoch, planned_bits, planned_cases, rebuilt, standing, window
from torchgauge.dashboard.history import History, joined
from torchgauge.dashboard.latest_results import LatestResults, latest_of
from torchgauge.dashboard.new_failures import MARK, NewFailure, standing_failures
from torchgauge.dashboard.newest_rows import NONE, NewestRows
from torchgauge.dashboard.plain_rows import Row, plain_rows
from torchgauge.dashboard.plan_check import check_history
from torchgauge.dashboard.primary_metric import primary_metrics
from torchgauge.dashboard.retired import MARK as RETIRED
from torchgauge.dashboard.retired import retired_cases
from torchgauge.dashboard.run_rows import (
    RUNS_AT_ONCE,
    MetricFacts,
    Rows,
    concatenated,
    partial_passes,
    read_runs,
    with_numbers,
)
from torchgauge.dashboard.snapshots import EPOCH_LENGTH, DatedRun, Snapshot, by_epoch, dated_run, snapshots_of
from torchgauge.records import View, in_view
from torchgauge.results import units
from torchgauge.results.dataset import read_run, read_table
from torchgauge.results.store import RunInfo, Store

COMPARED = in_view(View.HISTORY)
"""The metrics of which pages look at the recent past, beside those that scenarios measure for."""

NEWEST_DESCRIBED = 40
"""Runs that the page of runs describes though no row of theirs is in the latest results."""


@dataclass(frozen=True)
class SiteData:
    """What was read of ``store``.

    ``now`` is what ages are counted from, in seconds since the epoch. ``recent`` covers the open epoch and
    the one before it, with the numbers of primary metrics and the medians of :data:`COMPARED` only;
    ``snapshots`` are all of the store, ``runs`` all runs newest first, ``dated`` the published ones in order
    of creation. ``metrics`` are all that the store has, ``case_index`` its cases with their numbers.
    ``new_failures`` are those that stand, whose cases have the mark ``new`` in ``latest``. ``partial`` maps a
    run to how many of its passes count as none. ``everything`` are the latest results with those that are
    retired; ``dropped`` are keys of those that the newest night retired. ``environments`` and
    ``calibrations`` map a run to its rows of these tables, for the runs in ``described``: those that
    hold a row of the latest results, the newest ones and the unfinished ones. ``primary`` is the metric of
    each mode.
    """

    store: Store
    now: float
    latest: LatestResults
    everything: LatestResults
    dropped: frozenset[str]
    recent: History
    new_failures: tuple[NewFailure, ...]
    partial: Mapping[str, int]
    snapshots: tuple[Snapshot, ...]
    runs: tuple[RunInfo, ...]
    dated: tuple[DatedRun, ...]
    case_index: CaseIndex
    metrics: Mapping[str, MetricFacts]
    described: frozenset[str]
    environments: Mapping[str, tuple[Row, ...]]
    calibrations: Mapping[str, tuple[Row, ...]]
    primary: Mapping[str, str]


def read_site_data(
    store: Store, now: float | None = None, each: Callable[[Epoch], None] | None = None
) -> SiteData:
    """All of ``store`` as of ``now``, or of this moment; ``each`` is shown every epoch once, in order.

    Raises :class:`DashboardError` for a status that nobody knows, for rows that do not sum to the plan and
    for two cases of one name in one run, :class:`DamagedTableError` for a table that cannot be read.
    """
    runs = _runs(store)
    published = [info for info in runs if info.published]
    case_index = CaseIndex()
    rows, dated = _read_runs(store, published, case_index)
    newest = NewestRows.of(rows, case_index)
    at = SYSTEM_CLOCK.now() if now is None else now
    latest = latest_of(store, at, case_index, newest, [run.run_id for run in dated])
    snapshots, primary = snapshots_of(dated), primary_metrics(latest)
    numbers = {run: snapshot.number for snapshot in snapshots for run in snapshot.runs}
    snapshot_of_run = np.array([numbers[run.run_id] for run in dated], np.int64)
    windows: list[History] = []
    metrics: dict[str, MetricFacts] = {}
    for found, seen in _epochs(store, rows, dated, (snapshots, snapshot_of_run), case_index):
        epoch = replace(found, primaries=tuple(sorted(set(primary.values()))))
        metrics |= seen
        windows = [*windows[-1:], _compared(epoch.window, set(primary.values()))]
        if each is not None:
            each(epoch)
        del epoch, found
    recent = joined(tuple(windows))
    planned = planned_bits(snapshot_of_run[rows.run], rows.case, len(snapshots))
    retired = retired_cases(case_index, planned.T, snapshots)
    today = max((each.date for each in snapshots if each.date <= units.day(at)), default="")
    before = max(1, sum(each.date < today for each in snapshots))
    dropped = retired.keys() - retired_cases(case_index, planned.T[:, :before], snapshots)
    current = latest.without(retired)
    failures = standing_failures(recent, current)
    described = _described(runs, newest, dated)
    there = sorted(described & {info.run_id for info in published})
    return SiteData(
        store=store,
        now=at,
        latest=current.marked({failure.case.key for failure in failures}, MARK),
        everything=latest.marked(retired.keys(), RETIRED),
        dropped=frozenset(dropped),
        recent=recent,
        new_failures=failures,
        partial=partial_passes(rows, [run.run_id for run in dated]),
        snapshots=snapshots,
        runs=tuple(reversed(runs)),
        dated=tuple(dated),
        case_index=case_index,
        metrics=dict(sorted(metrics.items())),
        described=described,
        environments=_by_run(read_table(store, "environments", there)),
        calibrations=_by_run(read_table(store, "calibrations", there)),
        primary=primary,
    )


def _read_runs(
    store: Store, published: Sequence[RunInfo], case_index: CaseIndex
) -> tuple[Rows, list[DatedRun]]:
    """The rows of all runs without numbers, and the runs on the time axis; ``case_index`` gets the cases."""
    parts: list[Rows] = []
    dated: list[DatedRun] = []
    for start in range(0, len(published), RUNS_AT_ONCE):
        batch = published[start : start + RUNS_AT_ONCE]
        rows, builds = read_runs(store, batch, start, case_index)
        parts.append(rows)
        for info, build in zip(batch, builds, strict=True):
            dated.append(dated_run(info.run_id, info.created_at, build, dated))
    return concatenated(parts), dated


def in_order(infos: Collection[RunInfo]) -> list[RunInfo]:
    """Runs in order of creation."""
    return sorted(infos, key=lambda info: (info.created_at, info.run_id))


def _runs(store: Store) -> list[RunInfo]:
    """All runs in order of creation; tables whose run's folder is gone are runs too."""
    infos = {info.run_id: info for info in store.runs()}
    for run_id in set(store.published()) - infos.keys():
        infos[run_id] = store.info(run_id)
    return in_order([_with_date(store, info) for info in infos.values()])


def _with_date(store: Store, info: RunInfo) -> RunInfo:
    """``info`` with the date and counts that the run's table holds, where its folder does not say."""
    if info.created_at or not info.published:
        return info
    rows = read_run(store, "results", info.run_id, ("run_created_at", "status")).to_pylist()
    created_at = rows[0]["run_created_at"].timestamp() if rows else 0.0
    return replace(info, created_at=created_at, counts=dict(Counter(row["status"] for row in rows)))


def _epochs(
    store: Store,
    rows: Rows,
    runs: Sequence[DatedRun],
    axis: tuple[Sequence[Snapshot], Integers],
    case_index: CaseIndex,
) -> Iterator[tuple[Epoch, dict[str, MetricFacts]]]:
    """Every epoch with the metrics seen in it; ``axis`` is the snapshots, and that of each run by rank."""
    snapshots, snapshot_of_run = axis
    epoch_of = snapshot_of_run // EPOCH_LENGTH
    rows = rebuilt(rows, snapshot_of_run)
    for number, members in by_epoch(snapshots).items():
        own = {rank: runs[rank].run_id for rank in np.flatnonzero(epoch_of == number).tolist()}
        here = rows.take(np.flatnonzero(epoch_of[rows.run] == number))
        here, metrics = with_numbers(store, here, own, case_index)
        planned = planned_cases(here, snapshot_of_run, members)
        here = standing(here, snapshot_of_run)
        view = window(here, snapshot_of_run, members, case_index)
        check_history(view, planned)
        yield Epoch(number, store, here, view, runs, case_index), metrics
        del here, view  # or the next one is read beside them


def _compared(window: History, primary: Collection[str]) -> History:
    """``window`` with the numbers of ``primary`` metrics and the medians of :data:`COMPARED`."""
    values = {
        name: array[: 3 if name in primary else 1].copy()
        for name, array in window.values.items()
        if name in primary or name in COMPARED
    }
    return replace(window, values=values)


def _described(runs: Sequence[RunInfo], newest: NewestRows, dated: Sequence[DatedRun]) -> frozenset[str]:
    ranks = set(newest.run.tolist()) | set(newest.known_run.tolist()) - {NONE}
    latest = [info.run_id for info in runs[-NEWEST_DESCRIBED:]]
    unfinished = [info.run_id for info in runs if not info.published]
    return frozenset({dated[rank].run_id for rank in ranks if rank != NONE} | {*latest, *unfinished})


def _by_run(table: Any) -> dict[str, tuple[Row, ...]]:
    found: dict[str, list[Row]] = {}
    for row in plain_rows(table):
        found.setdefault(row["run_id"], []).append(row)
    return {run: tuple(rows) for run, rows in found.items()}
