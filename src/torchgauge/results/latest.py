"""Which row stands for a case, over one store or several: the newest that says something, else the newest.

The one place that decides it. ``infra`` and ``not_run`` say nothing of a case. Rows are in order of time:
when the case started or, where it never did, when its run was planned; then by the run. Keys are read before
rows, since a store of nightly runs holds millions, of which a few thousand stand.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from torchgauge.clock import DAY_S
from torchgauge.counted import counted
from torchgauge.errors import DamagedJournalError, UsageError
from torchgauge.records import ATTEMPTED, INCOMPLETE, DeviceTarget, Environment, Status
from torchgauge.results.dataset import read_run
from torchgauge.results.environments import environments_in
from torchgauge.results.store import Store

STALE_AFTER_S = 8 * DAY_S
"""Age after which a result enters no mean, comparison or headline: a week, and a day in which to be late.

Up to it the last known result stands in for a night that its device lost, with its date."""

KEYS = ("run_id", "case_key", "device", "device_index", "status", "started_at", "run_created_at")
"""Columns that are always read."""

Row = dict[str, Any]
Places = npt.NDArray[np.int64]
_ORDER = [("when", "ascending"), ("run_created_at", "ascending"), ("run_id", "ascending")]


def last_of(keys: Sequence[npt.NDArray[Any]], order: Sequence[npt.NDArray[Any]] = ()) -> Places:
    """The place of the last row of each combination of ``keys``, in order of the last key.

    The last of ``order`` counts first; among equal rows the one that stands last in the arrays is the last.
    """
    places: Places = np.lexsort((*order, *keys)).astype(np.int64)
    differs = np.ones(len(places), np.bool_)
    if len(places):
        differs[:-1] = np.any([np.diff(key[places]) != 0 for key in keys], axis=0)
    return places[differs]


def in_time(table: Any) -> Any:
    """``table`` in order of time, with the moment as ``when``."""
    when = pc.coalesce(table["started_at"], table["run_created_at"])
    return table.append_column("when", when).sort_by(_ORDER)


def says_something(table: Any) -> Any:
    """Which rows say something of their case."""
    silent = pa.array([status.value for status in INCOMPLETE], pa.string())
    return pc.invert(pc.is_in(table["status"], value_set=silent))


def standing(table: Any, *by: str) -> tuple[Places, Places]:
    """Of ``table``, in order of time: by ``by``, the place of the row that stands and that of the newest."""
    keys = [_codes(table[name]) for name in by]
    said = np.asarray(says_something(table).to_numpy())
    return last_of(keys, [said]), last_of(keys)


def _codes(column: Any) -> npt.NDArray[Any]:
    """One number for each word of a column, null being one of them."""
    encoded = column.combine_chunks().dictionary_encode(null_encoding="encode")
    parts = encoded.chunks if isinstance(encoded, pa.ChunkedArray) else [encoded]
    codes: npt.NDArray[Any] = np.concatenate([part.indices.to_numpy() for part in parts] or [np.zeros(0)])
    return codes


@dataclass(frozen=True)
class StoredRun:
    """A published run of the store at ``path``."""

    store: Store
    path: str
    run_id: str


@dataclass
class Reading:
    """Published runs, each once, and sentences on what is not read: ``notes``, and ``gaps`` for damage."""

    runs: list[StoredRun] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    gaps: list[str] = field(default_factory=list)

    def table(self, run: StoredRun, name: str, columns: Sequence[str] | None = None) -> Any | None:
        """A table of ``run``; None, and a gap, where it cannot be read."""
        try:
            return read_run(run.store, name, run.run_id, columns)
        except (DamagedJournalError, UsageError) as error:
            gap = f"run {run.run_id} of {run.path} is left out: {error.message}"
            if gap not in self.gaps:
                self.gaps.append(gap)
            return None

    def environments(self, run: StoredRun) -> dict[str, Environment] | None:
        """The environments of ``run`` by id; None, and a gap, where they cannot be read."""
        table = self.table(run, "environments")
        return None if table is None else environments_in(table)


@dataclass(frozen=True)
class StoredRows:
    """Rows of ``results`` in order of time.

    ``table`` has the columns that were asked for, ``target`` (the device as a case names it), ``when``, and
    ``run`` and ``index``: where the whole row is.
    """

    table: Any
    reading: Reading

    def filter(self, mask: Any) -> StoredRows:
        """Those of ``mask``."""
        return replace(self, table=self.table.filter(mask))

    def of(self, column: str, values: Collection[str]) -> StoredRows:
        """Those with one of ``values`` in ``column``."""
        return self.filter(pc.is_in(self.table[column], value_set=pa.array(sorted(values), pa.string())))

    @property
    def saying(self) -> StoredRows:
        """Those that say something of their case."""
        return self.filter(says_something(self.table))

    def standing(self, *by: str) -> StoredRows:
        """The row that stands for each combination of ``by``."""
        return self._at(standing(self.table, *by)[0])

    def newest(self, *by: str) -> StoredRows:
        """The newest row of each combination of ``by``, whatever it says."""
        return self._at(standing(self.table, *by)[1])

    def standing_and_newest(self, *by: str) -> StoredRows:
        """Both of them."""
        return self._at(np.union1d(*standing(self.table, *by)))

    @property
    def last_passed(self) -> frozenset[str]:
        """Return the keys of the cases that passed when last attempted: a skip is not an attempt."""
        attempted = self.saying.of("status", [status.value for status in ATTEMPTED]).newest("case_key")
        return frozenset(attempted.of("status", [Status.PASS.value]).table["case_key"].to_pylist())

    def _at(self, places: Places) -> StoredRows:
        return replace(self, table=self.table.take(pa.array(np.sort(places))))

    def whole(self, columns: Sequence[str]) -> Iterator[tuple[StoredRun, list[Row]]]:
        """The rows with ``columns`` and :data:`KEYS`, run by run; each has ``target``, ``store`` and ``at``.

        ``at`` is in seconds since the epoch. A run that cannot be read is a gap.
        """
        wanted: dict[int, list[int]] = {}
        for number, index in zip(*(self.table[name].to_pylist() for name in ("run", "index")), strict=True):
            wanted.setdefault(number, []).append(index)
        for number, indices in sorted(wanted.items()):
            run = self.reading.runs[number]
            table = self.reading.table(run, "results", tuple(dict.fromkeys((*KEYS, *columns))))
            if table is None:
                continue
            rows: list[Row] = table.take(pa.array(sorted(indices))).to_pylist()
            for row in rows:
                row["target"] = str(DeviceTarget(row["device"], row["device_index"]))
                row["at"] = (row["started_at"] or row["run_created_at"]).timestamp()
                row["store"] = run.path
            yield run, rows


def read_rows(
    paths: Sequence[str], columns: Sequence[str] = (), wanted: Callable[[Any], Any] = lambda table: table
) -> StoredRows:
    """The published rows of the stores at ``paths``: :data:`KEYS` and ``columns`` of those ``wanted`` keeps.

    A run that is in several stores counts once. Raises :class:`UsageError` where there is no store, or none
    is named.
    """
    if not paths:
        raise UsageError("no store is given", hint="pass --store DIR, once for each store")
    names = tuple(dict.fromkeys((*KEYS, *columns)))
    reading, parts = Reading(), []
    where: dict[str, str] = {}
    for path in dict.fromkeys(str(Path(path)) for path in paths):
        store = Store.open(path)
        published = store.published()
        for run_id in published:
            if run_id in where:
                reading.notes.append(f"run {run_id} is in {where[run_id]} and in {path}: it counts once")
                continue
            run = StoredRun(store, path, run_id)
            table = reading.table(run, "results", names)
            if table is None:
                continue
            where[run_id] = path
            parts.append(wanted(_placed(table, len(reading.runs))))
            reading.runs.append(run)
        if waiting := len(set(store.run_ids()).difference(published)):
            runs = counted(waiting, "run is", "runs are")
            reading.notes.append(f"{path}: {runs} not finished or not published, and so not read")
    whole = pa.concat_tables(parts) if parts else _placed(_nothing(names), 0)
    return StoredRows(in_time(whole), reading)


def _placed(table: Any, number: int) -> Any:
    """``table`` with ``target``, and with where its rows are."""
    suffix = pc.if_else(
        pc.equal(table["device_index"], 0),
        "",
        pc.binary_join_element_wise("", pc.cast(table["device_index"], pa.string()), "."),
    )
    table = table.append_column("target", pc.binary_join_element_wise(table["device"], suffix, ""))
    table = table.append_column("run", pa.array(np.full(len(table), number, np.int64)))
    return table.append_column("index", pa.array(np.arange(len(table))))


def _nothing(names: Sequence[str]) -> Any:
    from torchgauge.results.tables import RESULTS

    return pa.schema([RESULTS.schema.field(name) for name in names]).empty_table()
