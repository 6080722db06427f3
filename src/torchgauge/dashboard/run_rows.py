"""Reading what published runs say of their cases, as arrays: only the columns that a history needs.

First how the cases of all runs ended, then the numbers of one epoch after another: those of a year at once
would be most of the memory of a build.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from zlib import crc32

import numpy as np
import numpy.typing as npt

from torchgauge.dashboard import arrow_columns
from torchgauge.dashboard.arrow_columns import Bits, Floats, Integers
from torchgauge.dashboard.case_index import CaseIndex
from torchgauge.dashboard.dashboard_error import DashboardError
from torchgauge.dashboard.history import STATUSES
from torchgauge.dashboard.names import Column
from torchgauge.dashboard.plan_check import check_run
from torchgauge.dashboard.snapshots import TorchBuild
from torchgauge.records import UNCOUNTED, DeviceTarget, Status
from torchgauge.results.dataset import read_encoded
from torchgauge.results.row_case import WORKLOAD, workload_of
from torchgauge.results.rows import TORCH_VERSION_KEYS
from torchgauge.results.store import RunInfo, Store

COMMIT_KEYS = ("torch.git_commit", "torch_commit", "torch.commit")
"""Keys of an environment's identity that may hold the commit of torch."""

RUNS_AT_ONCE = 64
"""Runs that are read as one table."""

_EXECUTION = ("configuration", "backend", "device", "device_index")
_STATE = (
    "case_key", "status", "unexpected", "modifiers", "environment_id", "torch_version", "run_created_at",
    "started_at", "realised_hash",
)  # fmt: skip
_NUMBERS = ("case_key", "metric", "unit", "better", "median", "low", "high", "absent")
_PARTS = ("median", "low", "high")
_CODE_OF = {status.value: code for code, status in enumerate(STATUSES)}


@dataclass(frozen=True)
class Rows:
    """Rows of results as arrays of one length.

    ``case`` is an index into the case index, ``run`` the rank of the run in order of creation, ``when`` in
    microseconds since the epoch. ``built`` is a number for each model that a worker built, 0 where it built
    none. ``values`` has six significant digits.
    """

    case: Integers
    run: Integers
    status: npt.NDArray[np.uint8]
    when: Integers
    built: Integers
    marks: Mapping[str, Bits]
    values: Mapping[str, Floats]

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.case)

    def take(self, places: npt.NDArray[Any] | slice) -> Rows:
        """The rows at ``places``; a slice copies nothing."""
        return Rows(
            self.case[places],
            self.run[places],
            self.status[places],
            self.when[places],
            self.built[places],
            {name: bits[places] for name, bits in self.marks.items()},
            {name: array[:, places] for name, array in self.values.items()},
        )


MetricFacts = Mapping[str, str]
"""``unit`` of a metric, and which way is ``better``, as the store says."""


def no_rows() -> Rows:
    """No row at all."""
    none = np.zeros(0, np.int64)
    return Rows(none, none, np.zeros(0, np.uint8), none, none, {}, {})


def concatenated(parts: Sequence[Rows]) -> Rows:
    """All rows of ``parts``, which have no numbers; a mark that a part does not know is false there."""
    if not parts:
        return no_rows()
    marks = sorted({name for part in parts for name in part.marks})
    return Rows(
        np.concatenate([part.case for part in parts]),
        np.concatenate([part.run for part in parts]),
        np.concatenate([part.status for part in parts]),
        np.concatenate([part.when for part in parts]),
        np.concatenate([part.built for part in parts]),
        {n: np.concatenate([p.marks.get(n, np.zeros(len(p), np.bool_)) for p in parts]) for n in marks},
        {},
    )


def read_runs(
    store: Store, infos: Sequence[RunInfo], first_rank: int, case_index: CaseIndex
) -> tuple[Rows, tuple[TorchBuild, ...]]:
    """The rows of the runs ``infos``, in order of creation, without numbers, and the torch build of each.

    New cases are entered in ``case_index``; ``first_rank`` is the rank of the first run. Raises
    :class:`DashboardError` for a status that nobody knows, :class:`DamagedTableError` for a table that cannot
    be read and for one whose rows are not one per planned case.
    """
    runs = [info.run_id for info in infos]
    table, lengths = read_encoded(store, "results", runs, _STATE)
    run = np.repeat(np.arange(len(runs)), lengths)
    key_code, keys = arrow_columns.codes(table.column("case_key"))
    _register(store, list(zip(runs, lengths, strict=True)), key_code, keys, case_index)
    case = np.array([case_index.index(key) for key in keys], np.int64)[key_code] if keys else no_rows().case
    started = arrow_columns.integers(table.column("started_at"))
    built, hashes = arrow_columns.codes(table.column("realised_hash"))
    planned_at = arrow_columns.integers(table.column("run_created_at"))
    rows = Rows(
        case=case,
        run=run + first_rank,
        status=_statuses(table, runs, run, case, case_index),
        when=np.where(started == arrow_columns.NO_TIME, planned_at, started),
        built=np.array([*(1 + crc32((text or "").encode()) for text in hashes), 0], np.int64)[built],
        marks={
            **arrow_columns.list_words(table.column("modifiers")),
            "unexpected": arrow_columns.booleans(table.column("unexpected")),
        },
        values={},
    )
    place = np.full((len(runs), len(case_index)), -1, np.int64)
    place[run, case] = np.arange(len(rows))
    for info, found, rows_of_run in zip(infos, (place >= 0).sum(axis=1).tolist(), lengths, strict=True):
        check_run(store, info, rows_of_run, found)
    return rows, _builds(store, runs, run, table)


def partial_passes(rows: Rows, runs: Sequence[str]) -> dict[str, int]:
    """How many passes of each run, by rank, count as none, by the rule of :func:`counts_as_pass`."""
    apart = np.zeros(len(rows), np.bool_)
    for modifier in UNCOUNTED:
        apart |= rows.marks.get(modifier.value, apart)
    apart &= rows.status == _CODE_OF[Status.PASS.value]
    counts = np.bincount(rows.run[apart], minlength=len(runs)).tolist()
    return dict(zip(runs, counts, strict=True))


def with_numbers(
    store: Store, rows: Rows, runs: Mapping[int, str], case_index: CaseIndex
) -> tuple[Rows, dict[str, MetricFacts]]:
    """``rows`` of the ``runs``, by rank, with their numbers, and the metrics that were seen.

    The rows are in order of their runs. Of each metric the last unit counts. Raises
    :class:`DamagedJournalError` for a table that cannot be read.
    """
    values: dict[str, Floats] = {}
    metrics: dict[str, MetricFacts] = {}
    ranks = np.array(sorted(runs), np.int64)
    for start in range(0, len(ranks), RUNS_AT_ONCE):
        batch = ranks[start : start + RUNS_AT_ONCE]
        here = slice(*np.searchsorted(rows.run, [batch[0], batch[-1] + 1]).tolist())
        place = np.full((len(batch), len(case_index)), -1, np.int64)
        place[np.searchsorted(batch, rows.run[here]), rows.case[here]] = np.arange(here.start, here.stop)
        names = [runs[rank] for rank in batch.tolist()]
        for metric, said, places, numbers in _numbers(store, names, place, case_index):
            found = values.setdefault(metric, np.full((len(_PARTS), len(rows)), np.nan))
            found[:, places] = numbers
            metrics[metric] = said
    return replace(rows, values=values), metrics


def _register(
    store: Store,
    runs: Sequence[tuple[str, int]],
    key_code: npt.NDArray[np.int32],
    keys: Sequence[str | None],
    case_index: CaseIndex,
) -> None:
    """Enter cases that were never seen, in order of their first row; ``runs`` with their number of rows."""
    present, first = np.unique(key_code, return_index=True)
    new = [
        (int(place), key)
        for code, place in zip(present.tolist(), first.tolist(), strict=True)
        if code >= 0 and case_index.index(key := keys[code] or "") < 0
    ]
    if not new:
        return
    starts = np.concatenate([[0], np.cumsum([length for _, length in runs])])
    for number in sorted({int(np.searchsorted(starts, place, "right")) - 1 for place, _ in new}):
        start, end = int(starts[number]), int(starts[number + 1])
        here = sorted((place, key) for place, key in new if start <= place < end)
        table, _ = read_encoded(store, "results", [runs[number][0]], (*WORKLOAD, *_EXECUTION))
        columns = {name: table.column(name).to_pylist() for name in table.column_names}
        for place, key in here:
            row = {name: values[place - start] for name, values in columns.items()}
            device = str(DeviceTarget(row["device"], row["device_index"]))
            column = Column(device, row["configuration"], row["backend"] != "eager")
            case_index.add(key, workload_of(row), column)


def _statuses(
    table: Any, runs: Sequence[str], run: Integers, case: Integers, case_index: CaseIndex
) -> npt.NDArray[np.uint8]:
    code, words = arrow_columns.codes(table.column("status"))
    known = np.array([_CODE_OF.get(word or "", 255) for word in words], np.uint8)
    found = known[code] if words else np.zeros(0, np.uint8)
    if (found == 255).any():
        place = int(np.argmax(found == 255))
        named = case_index[int(case[place])]
        raise DashboardError(
            f"{named.workload.name} on {named.column.name} of run {runs[int(run[place])]} has the unknown "
            f"status {words[int(code[place])]!r}",
            hint="build the site with the torchgauge that published the run, or a newer one",
        )
    return found


def _numbers(
    store: Store, runs: Sequence[str], place: Integers, case_index: CaseIndex
) -> Iterator[tuple[str, MetricFacts, Integers, Floats]]:
    """Every metric with the rows that have it and their numbers; ``place`` is of a row by run and case."""
    table, lengths = read_encoded(store, "summaries", runs, _NUMBERS)
    run = np.repeat(np.arange(len(runs)), lengths)
    key_code, keys = arrow_columns.codes(table.column("case_key"))
    case = np.array([case_index.index(key) for key in keys], np.int64)[key_code] if keys else no_rows().case
    row = place[run, case]
    row[case < 0] = -1
    absent, _ = arrow_columns.codes(table.column("absent"))
    usable = (row >= 0) & (absent < 0)
    three = [arrow_columns.floats(table.column(name)) for name in _PARTS]
    metric, names = arrow_columns.codes(table.column("metric"))
    units, better = (arrow_columns.codes(table.column(name)) for name in ("unit", "better"))
    for code, name in enumerate(names):
        which = np.flatnonzero((metric == code) & usable)
        if name is None or not len(which):
            continue
        numbers = arrow_columns.rounded(np.stack([part[which] for part in three]))
        numbers[1:, np.isnan(numbers[0])] = np.nan
        last = which[-1]
        said = {"unit": units[1][units[0][last]] or "", "better": better[1][better[0][last]] or ""}
        yield name, said, row[which], numbers


def _builds(store: Store, runs: Sequence[str], run: Integers, table: Any) -> tuple[TorchBuild, ...]:
    """The torch build of every run: that of the environment in which most of its cases ran."""
    code, ids = arrow_columns.codes(table.column("environment_id"))
    version_code, versions = arrow_columns.codes(table.column("torch_version"))
    seen = code >= 0
    cells, first, counts = np.unique(
        run[seen] * max(len(ids), 1) + code[seen], return_index=True, return_counts=True
    )
    best: dict[int, tuple[int, str, str]] = {}
    version_of = version_code[seen][first]
    for cell, count, version in zip(cells.tolist(), counts.tolist(), version_of.tolist(), strict=True):
        number, environment = cell // len(ids), ids[cell % len(ids)] or ""
        candidate = -count, environment, (versions[version] or "") if version >= 0 else ""
        best[number] = min(best.get(number, candidate), candidate)
    homes = {environment: runs[number] for number, (_, environment, _) in reversed(best.items())}
    silent = [runs[number] for number in range(len(runs)) if number not in best]
    commits, told = _told_builds(store, homes, silent)
    return tuple(
        TorchBuild(best[number][2], commits.get(best[number][1], ""))
        if number in best
        else told.get(run_id, TorchBuild())
        for number, run_id in enumerate(runs)
    )


def _told_builds(
    store: Store, homes: Mapping[str, str], silent: Sequence[str]
) -> tuple[dict[str, str], dict[str, TorchBuild]]:
    """The commit of torch by environment, and the builds of ``silent`` runs, in which no case began.

    ``homes`` says in which run an environment is described.
    """
    runs = sorted({*homes.values(), *silent})
    names = ("run_id", "environment_id", "key", "value", "kind")
    table, _ = read_encoded(store, "environments", runs, names)
    commits: dict[str, str] = {}
    of_run: dict[str, dict[str, str]] = {}
    for row in _matching(table, (*COMMIT_KEYS, *TORCH_VERSION_KEYS)):
        if row["kind"] == "identity" and isinstance(value := _json(row["value"]), str) and value:
            if row["key"] in COMMIT_KEYS:
                commits.setdefault(row["environment_id"], value)
            said = of_run.setdefault(row["run_id"], {})
            said.setdefault("commit" if row["key"] in COMMIT_KEYS else "version", value)
    return commits, {run: TorchBuild(**of_run.get(run, {})) for run in silent}


def _matching(table: Any, wanted: Sequence[str]) -> Iterable[dict[str, Any]]:
    """The rows whose ``key`` is one of ``wanted``, the first of these first."""
    code, words = arrow_columns.codes(table.column("key"))
    for name in wanted:
        if name in words:
            for place in np.flatnonzero(code == words.index(name)).tolist():
                yield from table.slice(place, 1).to_pylist()


def _json(text: str) -> object:
    try:
        found: object = json.loads(text)
    except ValueError:
        return text
    return found
