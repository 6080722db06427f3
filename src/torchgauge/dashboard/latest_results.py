"""The latest results: the newest row of every planned case of a store, by workload and column.

Why the newest row of each case and not the newest run: nightly plans are sharded over several runs, and a
run of three models by hand must not empty the page. The status that is counted is always the newest row's;
where that row says nothing of the case (``infra``, ``not_run``), the last known result stands beside it with
its age. Where a run says nothing of any case of a device its runner died: that is one event, which
:mod:`~torchgauge.dashboard.lost_nights` tells, and what was known before stands, as ``stale``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from torchgauge.dashboard import arrow_columns
from torchgauge.dashboard.case_index import CaseIndex
from torchgauge.dashboard.column_ages import set_apart, stale_days
from torchgauge.dashboard.dashboard_error import DashboardError
from torchgauge.dashboard.names import CaseName, Column
from torchgauge.dashboard.newest_rows import NONE, NewestRows
from torchgauge.dashboard.plain_rows import Row, plain_rows
from torchgauge.dashboard.statuses import Look, look_of
from torchgauge.records import Modifier, Status, Subject, Workload, counts_as_pass, doubt, inexact, why_marked
from torchgauge.results import units
from torchgauge.results.dataset import read_table
from torchgauge.results.latest import STALE_AFTER_S
from torchgauge.results.origin import IMPORTED_FROM, Origin, origin_of
from torchgauge.results.row_case import json_object
from torchgauge.results.store import Store

__all__ = ["LatestResults", "Column", "Entry", "latest_of"]

NOT_FINITE = "no finite number is stored"


_NUMBER = (
    "run_id", "case_key", "metric", "unit", "n", "median", "low", "high", "confidence", "method",
    "provenance", "stopped", "absent",
)  # fmt: skip


@dataclass(frozen=True)
class Entry:
    """One planned case: its newest row, and the last row that says something of it.

    ``age_s`` is the age of ``newest`` and ``known_age_s`` that of ``known``, in seconds, 0 where the clock of
    the machine was ahead. ``known`` is None where no attempt is on record. ``numbers`` are rows of
    ``summaries`` by metric: each has a median, or the reason ``absent`` why there is none. ``lost`` says that
    the newest attempt was lost with its device's whole run. ``counted`` is the row whose status is counted: a
    lost night changes no count of the night before.
    """

    workload: Workload
    column: Column
    status: Status
    marks: tuple[str, ...]
    newest: Row
    age_s: float
    known: Row | None
    known_age_s: float
    numbers: Mapping[str, Row]
    counted: Row
    lost: bool = False

    @property
    def known_at(self) -> float:
        """When the case whose details are shown started, or was planned, in seconds since the epoch."""
        moment: float = self.shown["when"].timestamp()
        return moment

    @property
    def stands_in(self) -> bool:
        """Whether what is known is older than the newest attempt."""
        return self.known is not None and self.known["run_id"] != self.newest["run_id"]

    @property
    def shown(self) -> Row:
        """The row whose details are shown."""
        return self.known or self.newest

    @cached_property
    def facts(self) -> Mapping[str, Any]:
        """Further facts of the row whose details are shown."""
        return json_object(self.shown["facts"] or "{}")

    @property
    def degraded(self) -> str:
        """By what other path than the requested one the case ran; empty where it is not degraded."""
        return self._why(Modifier.DEGRADED)

    @property
    def unsteady(self) -> str:
        """Why the step times are in doubt; empty where they are not."""
        return self._why(Modifier.UNSTEADY)

    @property
    def unchecked(self) -> str:
        """Why nothing was compared with a reference; empty where something was."""
        return self._why(Modifier.UNCHECKED)

    def doubt(self, metric: str) -> str:
        """The modifier that keeps its number of ``metric`` out of what is compared; empty where none does."""
        return doubt(metric, self.shown["modifiers"] or ())

    def told(self, number: Row) -> str:
        """A number in doubt, in its unit; rough where that is all that may be said."""
        rough = inexact(number["metric"], self.shown["modifiers"] or ())
        return units.told(number["median"] or 0.0, number["unit"], rough)

    def _why(self, modifier: Modifier) -> str:
        return why_marked(modifier, self.shown["modifiers"] or (), self.facts)

    @property
    def origin(self) -> Origin:
        """Where the row came from whose details are shown."""
        found: Origin = self.shown["origin"]
        return found

    @property
    def look(self) -> Look:
        """How it is shown wherever its status is: in cells, on badges and in counts."""
        return look_of(self.status, self.marks)

    @property
    def fully_passed(self) -> bool:
        """Whether the named model passed by the path that was asked for; what the headline counts."""
        return counts_as_pass(self.status, self.marks)


@dataclass(frozen=True)
class LatestResults:
    """All cases of a store; ``superseded`` counts those whose configuration was redefined since.

    ``retired`` are those that nobody plans any more, which are none of ``entries``, with the day since which.
    """

    entries: Mapping[tuple[Workload, Column], Entry]
    planned: int
    superseded: int
    retired: tuple[tuple[Entry, str], ...] = ()

    @cached_property
    def workloads(self) -> tuple[Workload, ...]:
        """The rows, in order."""
        return tuple(sorted({workload for workload, _ in self.entries}))

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """The columns, in order."""
        return tuple(sorted({column for _, column in self.entries}, key=lambda column: column.order))

    @cached_property
    def devices(self) -> tuple[str, ...]:
        """The devices, in order."""
        return tuple(dict.fromkeys(column.device for column in self.columns))

    @cached_property
    def apart(self) -> Mapping[Column, str]:
        """What sets a column apart from the rest, in words; those that nothing does are left out."""
        return set_apart(self.entries.values())

    @cached_property
    def stale_days(self) -> Mapping[Column, str]:
        """The day that stands above each column whose newest result is stale."""
        return stale_days(self.entries.values())

    @cached_property
    def silent(self) -> Mapping[str, str]:
        """The devices whose newest result is too old for a headline, with its day; none where all are."""
        newest: dict[str, Entry] = {}
        for entry in self.entries.values():
            if entry.known and entry.known_age_s <= newest.get(entry.column.device, entry).known_age_s:
                newest[entry.column.device] = entry
        old = {name: units.day(e.known_at) for name, e in newest.items() if e.known_age_s > STALE_AFTER_S}
        return old if len(old) < len(newest) else {}

    @cached_property
    def current(self) -> LatestResults:
        """Return the results of devices that are not silent: headlines count only these."""
        kept = {key: entry for key, entry in self.entries.items() if key[1].device not in self.silent}
        return replace(self, entries=kept) if self.silent else self

    def dated(self, device: str) -> str:
        """``device``, with the day of its newest result where that stands in for a lost night."""
        days = [self.stale_days.get(column, "") for column in self.columns if column.device == device]
        return f"{device} of {max(days)}" if days and all(days) else device

    @cached_property
    def grid(self) -> tuple[tuple[Entry | None, ...], ...]:
        """The entries by row and column; None where no such case was ever planned."""
        places = {column: place for place, column in enumerate(self.columns)}
        rows: dict[Workload, list[Entry | None]] = {w: [None] * len(places) for w in self.workloads}
        for (workload, column), entry in self.entries.items():
            rows[workload][places[column]] = entry
        return tuple(tuple(row) for row in rows.values())

    @cached_property
    def built_differently(self) -> frozenset[str]:
        """Names of workloads whose cases do not agree on what was built: their numbers are not comparable."""
        hashes: dict[str, set[str]] = {}
        for entry in self.entries.values():
            if entry.shown["realised_hash"]:
                hashes.setdefault(entry.workload.name, set()).add(entry.shown["realised_hash"])
        return frozenset(name for name, found in hashes.items() if len(found) > 1)

    def of_models(self) -> LatestResults:
        """The latest results without checks and operators; the same object where it has none."""
        kept = {key: entry for key, entry in self.entries.items() if key[0].subject is Subject.MODELS}
        if len(kept) == len(self.entries):
            return self
        retired = tuple(each for each in self.retired if each[0].workload.subject is Subject.MODELS)
        planned = len(kept) + self.superseded + len(retired)
        return replace(self, entries=kept, planned=planned, retired=retired)

    def marked(self, keys: Collection[str], mark: str) -> LatestResults:
        """The same results, with ``mark`` first among the marks of the cases whose keys are ``keys``."""
        entries = {
            key: replace(entry, marks=(mark, *entry.marks)) if entry.newest["case_key"] in keys else entry
            for key, entry in self.entries.items()
        }
        return replace(self, entries=entries)

    def without(self, since: Mapping[str, str]) -> LatestResults:
        """The same results with the cases retired whose keys ``since`` maps to a day."""
        kept = {key: entry for key, entry in self.entries.items() if entry.newest["case_key"] not in since}
        gone = [entry for key, entry in self.entries.items() if key not in kept]
        retired = tuple((entry, since[entry.newest["case_key"]]) for entry in gone)
        return replace(self, entries=kept, retired=retired) if gone else self

    def of_device(self, device: str) -> tuple[Entry, ...]:
        """The entries of one device."""
        return tuple(entry for entry in self.entries.values() if entry.column.device == device)


def latest_of(
    store: Store, now: float, case_index: CaseIndex, newest: NewestRows, runs: Sequence[str]
) -> LatestResults:
    """The latest results as of ``now``; ``runs`` are ids by rank, which is what ``newest`` speaks of.

    Raises :class:`DashboardError` for two cases of one name in one run and :class:`DamagedJournalError` for
    a table that cannot be read.
    """
    chosen = _chosen(case_index, newest, runs)
    newest_run, known_run, lost = newest.run.tolist(), newest.known_run.tolist(), newest.lost.tolist()
    heard_run = newest.heard_run.tolist()
    wanted: dict[str, set[str]] = {}
    for index in chosen.values():
        for rank in {newest_run[index], known_run[index], heard_run[index]} - {NONE}:
            wanted.setdefault(runs[rank], set()).add(case_index[index].key)
    rows = _rows(store, wanted)
    numbers = _numbers(store, wanted)
    entries = {}
    for key, index in chosen.items():
        case, rank = case_index[index], known_run[index]
        last = rows[runs[newest_run[index]], case.key]
        known = rows[runs[rank], case.key] if rank != NONE else None
        heard = rows[runs[heard_run[index]], case.key] if heard_run[index] != NONE else None
        entries[key] = _entry(case, _LastRows(last, known, heard, lost[index]), numbers, now)
    return LatestResults(entries, len(case_index), len(case_index) - len(entries))


def _chosen(
    case_index: CaseIndex, newest: NewestRows, runs: Sequence[str]
) -> dict[tuple[Workload, Column], int]:
    """The case that stands for each workload and column: the last one, of those that share a name."""
    order, newest_run = np.lexsort((newest.run, newest.when)).tolist(), newest.run.tolist()
    found: dict[tuple[Workload, Column], int] = {}
    for index in order:
        case = case_index[index]
        earlier = found.get((case.workload, case.column))
        if earlier is not None and newest_run[earlier] == newest_run[index]:
            raise DashboardError(
                f"run {runs[newest_run[index]]} holds two cases called {case.workload.name} on "
                f"{case.column.name}",
                hint="give the configurations different names, and publish the run again",
            )
        found[case.workload, case.column] = index
    return found


def _rows(store: Store, wanted: Mapping[str, Collection[str]]) -> dict[tuple[str, str], Row]:
    """The whole rows of the cases ``wanted`` by run.

    Beside the columns of the store each has ``when``, the moment that counts, and its ``origin``.
    """
    found: dict[tuple[str, str], Row] = {}
    origins = {run: origin_of(store, run) for run in wanted}
    for row in plain_rows(_of_cases(read_table(store, "results", sorted(wanted)), wanted)):
        row["when"] = row["started_at"] or row["run_created_at"]
        brought = IMPORTED_FROM in (row["facts"] or "")
        origin = origins[row["run_id"]]
        row["origin"] = origin.of(json_object(row["facts"])) if brought else origin
        found[row["run_id"], row["case_key"]] = row
    return found


def _of_cases(table: Any, wanted: Mapping[str, Collection[str]]) -> Any:
    """The rows of ``table`` that are of a case wanted of their run."""
    runs, keys = (arrow_columns.codes(table.column(name)) for name in ("run_id", "case_key"))
    pairs = runs[0].astype(np.int64) * max(len(keys[1]), 1) + keys[0]
    places = {key: code for code, key in enumerate(keys[1])}
    take = [
        number * len(keys[1]) + places[key]
        for number, run in enumerate(runs[1])
        for key in wanted.get(run or "", ())
        if key in places
    ]
    rows = np.flatnonzero(np.isin(pairs, np.array(take, np.int64)))
    return table.take(arrow_columns.of_integers(rows))


class _LastRows(NamedTuple):
    """The newest row of a case, the last that says something of it, and the newest of no lost night."""

    newest: Row
    known: Row | None
    heard: Row | None
    lost: bool


def _entry(
    case: CaseName, rows: _LastRows, numbers: Mapping[tuple[str, str], dict[str, Row]], now: float
) -> Entry:
    newest, known, heard, lost = rows
    shown = known or newest
    counted = (heard or shown) if lost else newest
    known_age_s = max(0.0, now - shown["when"].timestamp())
    marks = [mark for mark in counted["modifiers"] or () if mark != "stale"]
    if counted["unexpected"]:
        marks.insert(0, "unexpected")
    marks += counted["origin"].kind.marks
    if shown["run_id"] != newest["run_id"] or known_age_s > STALE_AFTER_S:
        marks.append("stale")
    return Entry(
        workload=case.workload,
        column=case.column,
        status=_status(counted),
        marks=tuple(dict.fromkeys(marks)),
        newest=newest,
        age_s=max(0.0, now - newest["when"].timestamp()),
        known=known,
        known_age_s=known_age_s,
        numbers=numbers.get((shown["run_id"], shown["case_key"]), {}),
        counted=counted,
        lost=lost,
    )


def _status(row: Row) -> Status:
    try:
        return Status(row["status"])
    except ValueError:
        raise DashboardError(
            f"{row['case_id']} of run {row['run_id']} has the unknown status {row['status']!r}",
            hint="build the site with the torchgauge that published the run, or a newer one",
        ) from None


def _numbers(store: Store, wanted: Mapping[str, Collection[str]]) -> dict[tuple[str, str], dict[str, Row]]:
    found: dict[tuple[str, str], dict[str, Row]] = {}
    for row in plain_rows(_of_cases(read_table(store, "summaries", sorted(wanted), _NUMBER), wanted)):
        if row["absent"]:
            row["median"] = None
        elif row["median"] is None:
            row["absent"] = NOT_FINITE
        found.setdefault((row["run_id"], row["case_key"]), {})[row["metric"]] = row
    return found
