"""The board: the newest row of every planned case of a store, arranged by workload and column.

Why the newest row of each case and not the newest run: nightly plans are sharded over several runs, and a
run of three models by hand must not empty the page. The status that is counted is always the newest row's;
where that row says nothing of the case (``infra``, ``not_run``), the last known result stands beside it with
its age.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pandas as pd

from torchgauge.dashboard.dashboard_error import DashboardError
from torchgauge.dashboard.plain_rows import Row, plain_rows
from torchgauge.records import DeviceTarget, Status
from torchgauge.results import frames
from torchgauge.results.store import Store

NOT_FINITE = "the store holds a number that is not finite"


@dataclass(frozen=True)
class FixedClock:
    """A clock that stands at ``at``, seconds since the epoch, so that a site can be built again."""

    at: float

    def now(self) -> float:
        """The time at which the clock stands."""
        return self.at

    def steady(self) -> float:
        """The same."""
        return self.at


@dataclass(frozen=True, order=True)
class Workload:
    """A row of every matrix: the mathematics, as it is planned."""

    suite: str
    model: str
    mode: str
    dtype: str
    batch: int
    size: str
    shape: str
    seed: int

    @property
    def group(self) -> tuple[str, str]:
        """Suite and model: what one page is about."""
        return self.suite, self.model

    @property
    def name(self) -> str:
        """One line that names the workload."""
        return f"{self.suite}/{self.model} {self.variant}"

    @property
    def variant(self) -> str:
        """What tells the workloads of one model apart."""
        extras = [f"{name} {value}" for name, value in sorted(_object(self.shape).items())]
        if self.size != "small":
            extras.insert(0, self.size)
        if self.seed != 1234:
            extras.append(f"seed {self.seed}")
        return " · ".join([self.mode, self.dtype, f"b{self.batch}", *extras])


@dataclass(frozen=True)
class Column:
    """A column of every matrix: a device with its index, and a configuration."""

    device: str
    configuration: str
    compiled: bool = field(compare=False)

    @property
    def name(self) -> str:
        """One line that names the column."""
        return f"{self.device} · {self.configuration}"

    @property
    def order(self) -> tuple[str, bool, str]:
        """By device, the plain configuration first."""
        return self.device, self.compiled, self.configuration


@dataclass(frozen=True)
class Number:
    """One metric of one case: a median with its interval, or the reason why there is none."""

    metric: str
    unit: str
    n: int
    median: float | None
    low: float | None
    high: float | None
    confidence: float
    method: str
    provenance: str
    stopped: str
    absent: str


@dataclass(frozen=True)
class Entry:
    """One planned case: its newest row, and the last row that says something of it.

    ``age_s`` is the age of ``newest`` and ``known_age_s`` that of ``known``, in seconds. ``known`` is None
    where no attempt is on record.
    """

    workload: Workload
    column: Column
    status: Status
    marks: tuple[str, ...]
    newest: Row
    age_s: float
    known: Row | None
    known_age_s: float
    numbers: Mapping[str, Number]

    @property
    def stands_in(self) -> bool:
        """Whether what is known is older than the newest attempt."""
        return self.known is not None and self.known["run_id"] != self.newest["run_id"]

    @property
    def shown(self) -> Row:
        """The row whose details are shown."""
        return self.known or self.newest

    @property
    def fully_passed(self) -> bool:
        """Whether the case passed by the path that was asked for; what the headline counts."""
        return self.status is Status.PASS and "degraded" not in self.marks


@dataclass(frozen=True)
class Board:
    """All cases of a store; ``superseded`` counts those whose configuration was redefined since."""

    entries: Mapping[tuple[Workload, Column], Entry]
    planned: int
    superseded: int

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
    def built_differently(self) -> frozenset[str]:
        """Names of workloads whose cases do not agree on what was built: their numbers are not comparable."""
        hashes: dict[str, set[str]] = {}
        for entry in self.entries.values():
            if entry.shown["realised_hash"]:
                hashes.setdefault(entry.workload.name, set()).add(entry.shown["realised_hash"])
        return frozenset(name for name, found in hashes.items() if len(found) > 1)

    def of_device(self, device: str) -> tuple[Entry, ...]:
        """The entries of one device."""
        return tuple(entry for entry in self.entries.values() if entry.column.device == device)


def read_board(store: Store, now: float) -> Board:
    """The board of all published runs as of ``now``.

    Raises :class:`DashboardError` for a status that nobody knows and for two cases of one name in one run.
    """
    results = frames.results(store)
    newest = plain_rows(_newest(results))
    known = {row["case_key"]: row for row in plain_rows(frames.latest(store, clock=FixedClock(now)))}
    numbers = _numbers(store)
    entries: dict[tuple[Workload, Column], Entry] = {}
    for row in newest:
        entry = _entry(row, known[row["case_key"]], numbers, now)
        key = entry.workload, entry.column
        earlier = entries.get(key)
        if earlier is not None and earlier.newest["run_id"] == row["run_id"]:
            raise DashboardError(
                f"run {row['run_id']} holds two cases called {row['case_id']}",
                hint="give the configurations different names, and publish the run again",
            )
        entries[key] = entry
    planned = int(results["case_key"].nunique())
    names = int(results.groupby([*frames.WORKLOAD, "configuration", "device", "device_index"]).ngroups)
    return Board(entries, planned, planned - names)


def _newest(results: pd.DataFrame) -> pd.DataFrame:
    """The newest row of every case, oldest first: the order in which later rows replace earlier ones."""
    when = results["started_at"].fillna(results["run_created_at"])
    order = results.assign(when=when).sort_values(["when", "run_created_at", "run_id"], kind="stable")
    return order.drop_duplicates("case_key", keep="last")


def _entry(
    newest: Row, latest: Row, numbers: Mapping[tuple[str, str], dict[str, Number]], now: float
) -> Entry:
    status = _status(newest)
    known = latest if latest["status"] not in (Status.INFRA.value, Status.NOT_RUN.value) else None
    shown = known or newest
    marks = [mark for mark in newest["modifiers"] or () if mark != "stale"]
    if newest["unexpected"]:
        marks.insert(0, "unexpected")
    if latest["stale"]:
        marks.append("stale")
    return Entry(
        workload=Workload(*(newest[name] for name in frames.WORKLOAD)),
        column=_column(newest),
        status=status,
        marks=tuple(dict.fromkeys(marks)),
        newest=newest,
        age_s=now - newest["when"].timestamp(),
        known=known,
        known_age_s=now - _when(shown),
        numbers=numbers.get((shown["run_id"], shown["case_key"]), {}),
    )


def _when(row: Row) -> float:
    return float((row["started_at"] or row["run_created_at"]).timestamp())


def _column(row: Row) -> Column:
    device = str(DeviceTarget(row["device"], row["device_index"]))
    return Column(device, row["configuration"], row["backend"] != "eager")


def _status(row: Row) -> Status:
    try:
        return Status(row["status"])
    except ValueError:
        raise DashboardError(
            f"{row['case_id']} of run {row['run_id']} has the unknown status {row['status']!r}",
            hint="build the site with the torchgauge that published the run, or a newer one",
        ) from None


def _numbers(store: Store) -> dict[tuple[str, str], dict[str, Number]]:
    found: dict[tuple[str, str], dict[str, Number]] = {}
    for row in plain_rows(frames.summaries(store)):
        found.setdefault((row["run_id"], row["case_key"]), {})[row["metric"]] = _number(row)
    return found


def _number(row: Row) -> Number:
    absent = row["absent"] or ("" if row["median"] is not None else NOT_FINITE)
    return Number(
        metric=row["metric"],
        unit=row["unit"],
        n=row["n"],
        median=None if absent else row["median"],
        low=row["low"],
        high=row["high"],
        confidence=row["confidence"],
        method=row["method"],
        provenance=row["provenance"] or "",
        stopped=row["stopped"] or "",
        absent=absent,
    )


def _object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError:
        return {"shape": text}
    return value if isinstance(value, dict) else {"shape": text}
