"""The rows that a claim may ask: of every case and environment the newest, with its numbers.

Why by environment: one case on two systems, or with two builds of torch, has one key, and a claim may compare
just these.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from torchgauge.records import (
    GRAVEST,
    RANDOM_WEIGHTS,
    Cause,
    Environment,
    Modifier,
    Status,
    counts_as_pass,
    why_marked,
)
from torchgauge.results.claims.claim import Select
from torchgauge.results.latest import Reading, Row, StoredRows, StoredRun, read_rows, says_something
from torchgauge.results.row_case import WORKLOAD, workload_of
from torchgauge.results.rows import torch_version

EAGER = "eager"
"""The configuration that others are set against."""

_KEYS = ("suite", "model", "mode", "dtype", "configuration", "environment_id", "torch_version")
_COLUMNS = (
    *_KEYS, "case_id", *WORKLOAD, "declared_hash", "realised_hash", "cause", "reason", "modifiers",
    "parameters", "facts", "error_type", "error_message",
)  # fmt: skip


@dataclass(frozen=True)
class Number:
    """The summary of one metric, in its base unit; ``absent`` says why there is no median."""

    median: float | None
    low: float | None
    high: float | None
    absent: str = ""


@dataclass(frozen=True)
class StoredCase:
    """One row with its numbers by metric; ``at`` is in seconds since the epoch.

    ``environment`` is empty where none was recorded and the run does not tell it either.
    """

    run_id: str
    store: str
    case_key: str
    case_id: str
    suite: str
    model: str
    workload: str
    batch: int
    size: str
    extras: str
    configuration: str
    device: str
    status: Status
    cause: Cause | None
    reason: str
    degraded: str
    environment: str
    torch: str
    realised: str
    parameters: int | None
    at: float
    numbers: Mapping[str, Number] = field(default_factory=dict)
    other_model: str = ""
    unchecked: str = ""
    unsteady: str = ""
    faster_than_peak: str = ""

    @property
    def key(self) -> tuple[str, str]:
        """Suite and model."""
        return self.suite, self.model

    @property
    def passed(self) -> bool:
        """Whether the named model passed by the path that was asked for, and with a right result."""
        return counts_as_pass(self.status, self.modifiers)

    @property
    def modifiers(self) -> tuple[str, ...]:
        """Those of its modifiers that have a reason."""
        return tuple(modifier.value for modifier in Modifier if getattr(self, modifier.value, ""))


@dataclass(frozen=True)
class Stored:
    """Rows of stores, oldest first, environments by id, and sentences on what was left out.

    ``versions`` are those of torch by device and configuration, the one that was measured last first; rows of
    those that were not asked for are not read.
    """

    cases: tuple[StoredCase, ...]
    environments: Mapping[str, Environment]
    versions: Mapping[tuple[str, str], tuple[str, ...]]


@dataclass(frozen=True)
class StoredKeys:
    """The first reading: which rows there are, without what they say.

    ``models`` are by suite, of which all are there. ``notes`` grow while more is read.
    """

    models: Mapping[str, frozenset[str]]
    rows: StoredRows

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences on what was left out."""
        return (*self.rows.reading.gaps, *self.rows.reading.notes)

    def cases(self, models: Collection[tuple[str, str]], keep: Keep, metrics: Collection[str]) -> Stored:
        """The newest row of each case and environment of ``models``, in versions of torch to ``keep``."""
        reading = self.rows.reading
        rows = self.rows.of("name", [f"{suite}/{model}" for suite, model in models])
        versions = _versions(rows.table)
        kept = {column: keep(*column, found) for column, found in versions.items()}
        rows = rows.filter(_kept(rows.table, kept))
        cases: list[StoredCase] = []
        environments: dict[str, Environment] = {}
        for run, found in rows.standing_and_newest("case_key", "where").whole(_COLUMNS):
            known = reading.environments(run) or {}
            environments.update(known)
            only = _only(known)
            numbers = _numbers(reading, run, metrics)
            for row in found:
                row["environment_id"] = where = row["environment_id"] or only.get(row["device"], "")
                if where in known:
                    row["torch_version"] = row["torch_version"] or torch_version(known[where])
                cases.append(_case(row, numbers.get(row["case_key"], {})))
        cases.sort(key=lambda case: (case.at, case.run_id, case.case_id))
        return Stored(tuple(cases), environments, versions)


Keep = Callable[[str, str, Sequence[str]], Collection[str]]
"""From device, configuration and their versions of torch, newest first, to those that are read."""


def read_keys(paths: Sequence[str], select: Select, configurations: Collection[str]) -> StoredKeys:
    """Which rows of ``select``'s mode and dtype the stores at ``paths`` have.

    ``configurations`` are the names that are read, empty for all. A run in several stores counts once. A run
    that cannot be read is named in a note. Raises :class:`UsageError` where there is no store.
    """
    models: dict[str, set[str]] = {}

    def wanted(table: Any) -> Any:
        for suite in table["suite"].unique().to_pylist():
            models.setdefault(suite, set())
        return _wanted(table, select, configurations)

    stored = read_rows(paths, _KEYS, wanted)
    for row in stored.table.group_by(["suite", "model"]).aggregate([]).to_pylist():
        models[row["suite"]].add(row["model"])
    rows = replace(stored, table=_keyed(stored))
    return StoredKeys({suite: frozenset(found) for suite, found in models.items()}, rows)


def _only(environments: Mapping[str, Environment]) -> dict[str, str]:
    """The ids of environments by device, where a device has one only."""
    found: dict[str, list[str]] = {}
    for key, environment in environments.items():
        found.setdefault(environment.device, []).append(key)
    return {device: keys[0] for device, keys in found.items() if len(keys) == 1}


def _numbers(reading: Reading, run: StoredRun, metrics: Collection[str]) -> dict[str, dict[str, Number]]:
    """The summaries of ``metrics`` by case key."""
    found: dict[str, dict[str, Number]] = {}
    columns = ("case_key", "metric", "median", "low", "high", "absent")
    table = reading.table(run, "summaries", columns) if metrics else None
    if table is None:
        return found
    names = pa.array(sorted(metrics), pa.string())
    for row in table.filter(pc.is_in(table["metric"], value_set=names)).to_pylist():
        number = Number(row["median"], row["low"], row["high"], row["absent"] or "")
        found.setdefault(row["case_key"], {})[row["metric"]] = number
    return found


def _wanted(table: Any, select: Select, configurations: Collection[str]) -> Any:
    """The rows of mode, dtype, time and configurations."""
    mask = pc.and_(pc.equal(table["mode"], select.mode), pc.equal(table["dtype"], select.dtype))
    if configurations:
        names = pa.array(sorted(configurations), pa.string())
        mask = pc.and_(mask, pc.is_in(table["configuration"], value_set=names))
    if select.since:
        since = pa.scalar(int(select.since * 1e6), pa.int64()).cast(pa.timestamp("us", tz="UTC"))
        mask = pc.and_(mask, pc.greater_equal(table["run_created_at"], since))
    return table.filter(mask)


def _keyed(stored: StoredRows) -> Any:
    """The table with ``where``, ``torch`` and ``name``: environment, version and ``suite/model``.

    A row without an environment has the run's only one of its device.
    """
    table = stored.table
    where, torch = table["environment_id"], table["torch_version"]
    if where.null_count:
        lacking = pc.is_null(where)
        guessed: dict[tuple[int, str], tuple[str, str]] = {}
        for number in table.filter(lacking)["run"].unique().to_pylist():
            known = stored.reading.environments(stored.reading.runs[number]) or {}
            for device, key in _only(known).items():
                guessed[number, device] = key, torch_version(known[key]) or ""
        pairs = zip(table["run"].to_pylist(), table["device"].to_pylist(), strict=True)
        guess = [guessed.get(pair, ("", "")) for pair in pairs]
        where, torch = (
            pc.if_else(lacking, pa.array([each[part] for each in guess], pa.string()), column)
            for part, column in enumerate((where, torch))
        )
    table = table.append_column("where", where).append_column("torch", pc.fill_null(torch, ""))
    return table.append_column("name", pc.binary_join_element_wise(table["suite"], table["model"], "/"))


def _versions(table: Any) -> dict[tuple[str, str], tuple[str, ...]]:
    """Versions of torch by device and configuration, the one that was measured last first.

    Those of which every row says nothing, such as after a night without the device, come last.
    """
    table = table.append_column("said", pc.cast(says_something(table), pa.int64()))
    columns = ["target", "configuration", "torch", "said"]
    rows = table.group_by(columns).aggregate([("when", "max")]).to_pylist()
    found: dict[tuple[str, str], list[str]] = {}
    for row in sorted(rows, key=lambda row: (row["said"], row["when_max"]), reverse=True):
        versions = found.setdefault((row["target"], row["configuration"]), [])
        versions += [row["torch"]] if row["torch"] and row["torch"] not in versions else []
    return {column: tuple(versions) for column, versions in found.items()}


def _kept(table: Any, kept: Mapping[tuple[str, str], Collection[str]]) -> Any:
    """Which rows are of a version that is read, or of none that is known."""
    words = [
        f"{device}\0{configuration}\0{version}"
        for (device, configuration), versions in kept.items()
        for version in ("", *versions)
    ]
    found = pc.binary_join_element_wise(table["target"], table["configuration"], table["torch"], "\0")
    return pc.is_in(found, value_set=pa.array(words, pa.string()))


def _case(row: Row, numbers: Mapping[str, Number]) -> StoredCase:
    workload = workload_of(row)
    extras = [f"{key} {value}" for key, value in workload.shape]
    extras += [workload.weights] if workload.weights != RANDOM_WEIGHTS else []
    facts = json.loads(row["facts"]) if row["facts"] else {}
    why = {each: why_marked(each, row["modifiers"] or (), facts) for each in GRAVEST}
    error = ": ".join(part for part in (row["error_type"], row["error_message"]) if part)
    return StoredCase(
        run_id=row["run_id"],
        store=row["store"],
        case_key=row["case_key"],
        case_id=row["case_id"],
        suite=row["suite"],
        model=row["model"],
        workload=row["declared_hash"],
        batch=row["batch"],
        size=row["size"],
        extras=", ".join(extras),
        configuration=row["configuration"],
        device=row["target"],
        status=Status(row["status"]),
        cause=Cause(row["cause"]) if row["cause"] else None,
        reason=row["reason"] or error,
        degraded=why[Modifier.DEGRADED],
        environment=row["environment_id"],
        torch=row["torch_version"] or "",
        realised=row["realised_hash"] or "",
        parameters=row["parameters"],
        at=row["at"],
        numbers=numbers,
        other_model=why[Modifier.OTHER_MODEL],
        unchecked=why[Modifier.UNCHECKED],
        unsteady=why[Modifier.UNSTEADY],
        faster_than_peak=why[Modifier.FASTER_THAN_PEAK],
    )
