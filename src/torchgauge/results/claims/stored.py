"""The rows that a claim may ask: of every case and environment the newest, with its numbers.

Why by environment: one case on two systems, or with two builds of torch, has one key, and a claim may compare
just these.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from torchgauge.errors import DamagedJournalError, UsageError
from torchgauge.records import (
    GRAVEST,
    INCOMPLETE,
    Cause,
    DeviceTarget,
    Environment,
    Modifier,
    Status,
    counts_as_pass,
    why_marked,
)
from torchgauge.results.claims.claim import Select
from torchgauge.results.dataset import read_run
from torchgauge.results.rows import torch_version
from torchgauge.results.store import Store

EAGER = "eager"
"""The configuration that others are set against."""

_KEYS = (
    "run_id", "case_key", "suite", "model", "mode", "dtype", "configuration", "device", "device_index",
    "environment_id", "torch_version", "status", "started_at", "run_created_at",
)  # fmt: skip
_MORE = (
    "case_id", "batch", "size", "shape", "weights", "declared_hash", "realised_hash",
    "cause", "reason", "modifiers", "parameters", "facts", "error_type", "error_message",
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
    notes: list[str]
    table: Any
    runs: tuple[_Run, ...]

    def cases(self, models: Collection[tuple[str, str]], keep: Keep, metrics: Collection[str]) -> Stored:
        """The newest row of each case and environment of ``models``, in versions of torch to ``keep``."""
        names = pa.array(sorted({f"{suite}/{model}" for suite, model in models}), pa.string())
        table = self.table.filter(pc.is_in(self.table["name"], value_set=names))
        versions = _versions(table)
        table = table.filter(
            _kept(table, {column: keep(*column, found) for column, found in versions.items()})
        )
        cases: list[StoredCase] = []
        environments: dict[str, Environment] = {}
        for number, indices in _newest(table).items():
            run = self.runs[number]
            rows = run.read("results", (*_KEYS, *_MORE), self.notes)
            chosen = rows.take(pa.array(indices)).to_pylist() if rows is not None else []
            found, known = run.environments(self.notes)
            environments.update(found)
            numbers = run.numbers(metrics, self.notes)
            for row in chosen:
                row["environment_id"] = where = row["environment_id"] or known.get(row["device"], "")
                if where in found:
                    row["torch_version"] = row["torch_version"] or torch_version(found[where])
                cases.append(_case(row, run.path, numbers.get(row["case_key"], {})))
        cases.sort(key=lambda case: (case.at, case.run_id, case.case_id))
        return Stored(tuple(cases), environments, versions)


Keep = Callable[[str, str, Sequence[str]], Collection[str]]
"""From device, configuration and their versions of torch, newest first, to those that are read."""


def read_keys(paths: Sequence[str], select: Select, configurations: Collection[str]) -> StoredKeys:
    """Which rows of ``select``'s mode and dtype the stores at ``paths`` have.

    ``configurations`` are the names that are read, empty for all. A run in several stores counts once. A run
    that cannot be read is named in a note. Raises :class:`UsageError` where there is no store.
    """
    if not paths:
        raise UsageError("no store is named", hint="--store DIR, as often as there are stores")
    notes: list[str] = []
    seen: set[str] = set()
    runs: list[_Run] = []
    tables: list[Any] = []
    models: dict[str, set[str]] = {}
    for path in dict.fromkeys(str(Path(path)) for path in paths):
        store = Store.open(path)
        published = store.published()
        for run_id in published:
            if run_id in seen:
                continue
            seen.add(run_id)
            run = _Run(store, path, run_id)
            table = run.read("results", _KEYS, notes)
            if table is None:
                continue
            for suite in table["suite"].unique().to_pylist():
                models.setdefault(suite, set())
            table = _wanted(table, select, configurations)
            if len(table):
                tables.append(_keyed(table, len(runs), run, notes))
                runs.append(run)
        waiting = len(set(store.run_ids()) - set(published))
        if waiting:
            notes.append(f"{path}: {waiting} of its runs not finished or not published, and so not counted")
    whole = pa.concat_tables(tables) if tables else _NOTHING
    for row in whole.group_by(["suite", "model"]).aggregate([]).to_pylist():
        models[row["suite"]].add(row["model"])
    return StoredKeys({suite: frozenset(found) for suite, found in models.items()}, notes, whole, tuple(runs))


@dataclass(frozen=True)
class _Run:
    """One published run of one store; what cannot be read becomes a note."""

    store: Store
    path: str
    run_id: str

    def read(self, name: str, columns: Sequence[str] | None, notes: list[str]) -> Any:
        """A table of the run, None where it cannot be read."""
        try:
            return read_run(self.store, name, self.run_id, columns)
        except (DamagedJournalError, UsageError) as error:
            note = f"run {self.run_id} of {self.path} is left out: {error.message}"
            if note not in notes:
                notes.append(note)
            return None

    def environments(self, notes: list[str]) -> tuple[dict[str, Environment], dict[str, str]]:
        """The run's environments by id, and their ids by device where a device has one only."""
        facts: dict[tuple[str, str], dict[str, Any]] = {}
        table = self.read("environments", None, notes)
        for row in table.to_pylist() if table is not None else ():
            if row["kind"] == "identity":
                identity = facts.setdefault((row["environment_id"], row["device"]), {})
                identity[row["key"]] = json.loads(row["value"])
        found = {
            key: Environment(device, tuple(sorted(each.items()))) for (key, device), each in facts.items()
        }
        by_device: dict[str, list[str]] = {}
        for key, device in facts:
            by_device.setdefault(device, []).append(key)
        return found, {device: keys[0] for device, keys in by_device.items() if len(keys) == 1}

    def numbers(self, metrics: Collection[str], notes: list[str]) -> dict[str, dict[str, Number]]:
        """The summaries of ``metrics`` by case key."""
        found: dict[str, dict[str, Number]] = {}
        columns = ("case_key", "metric", "median", "low", "high", "absent")
        table = self.read("summaries", columns, notes) if metrics else None
        if table is None:
            return found
        names = pa.array(sorted(metrics), pa.string())
        for row in table.filter(pc.is_in(table["metric"], value_set=names)).to_pylist():
            number = Number(row["median"], row["low"], row["high"], row["absent"] or "")
            found.setdefault(row["case_key"], {})[row["metric"]] = number
        return found


_COLUMNS = pa.schema(
    [
        *((name, pa.string()) for name in ("case_key", "suite", "model", "configuration", "device")),
        *((name, pa.string()) for name in ("torch", "status", "where", "name")),
        ("when", pa.timestamp("us", tz="UTC")),
        *((name, pa.int64()) for name in ("run", "index")),
    ]
)
_NOTHING = _COLUMNS.empty_table()


def _wanted(table: Any, select: Select, configurations: Collection[str]) -> Any:
    """The rows of mode, dtype, time and configurations, each with its ``index`` in the file."""
    table = table.append_column("index", pa.array(range(len(table)), pa.int64()))
    mask = pc.and_(pc.equal(table["mode"], select.mode), pc.equal(table["dtype"], select.dtype))
    if configurations:
        names = pa.array(sorted(configurations), pa.string())
        mask = pc.and_(mask, pc.is_in(table["configuration"], value_set=names))
    if select.since:
        since = pa.scalar(int(select.since * 1e6), pa.int64()).cast(pa.timestamp("us", tz="UTC"))
        mask = pc.and_(mask, pc.greater_equal(table["run_created_at"], since))
    return table.filter(mask)


def _keyed(table: Any, number: int, run: _Run, notes: list[str]) -> Any:
    """``table`` as keys; a row without an environment has the run's only one of its device."""
    where, torch = table["environment_id"], table["torch_version"]
    if where.null_count:
        environments, known = run.environments(notes)
        versions = {device: torch_version(environments[key]) or "" for device, key in known.items()}
        devices = table["device"].to_pylist()
        lacking = [each is None for each in where.to_pylist()]
        guess = [known.get(device, "") for device in devices]
        where = pc.if_else(pa.array(lacking), pa.array(guess, pa.string()), where)
        guess = [versions.get(device, "") for device in devices]
        torch = pc.if_else(pa.array(lacking), pa.array(guess, pa.string()), torch)
    pairs = zip(table["device"].to_pylist(), table["device_index"].to_pylist(), strict=True)
    columns = {
        **{name: table[name] for name in ("case_key", "suite", "model", "configuration", "status", "index")},
        "device": pa.array([str(DeviceTarget(name, index)) for name, index in pairs], pa.string()),
        "torch": pc.fill_null(torch, ""),
        "where": where,
        "name": pc.binary_join_element_wise(table["suite"], table["model"], "/"),
        "when": pc.coalesce(table["started_at"], table["run_created_at"]),
        "run": pa.array([number] * len(table), pa.int64()),
    }
    return pa.table({name: columns[name] for name in _COLUMNS.names}, schema=_COLUMNS)


def _versions(table: Any) -> dict[tuple[str, str], tuple[str, ...]]:
    """Versions of torch by device and configuration, the one that was measured last first.

    Those of which every row says nothing, such as after a night without the device, come last.
    """
    silent = pc.is_in(table["status"], value_set=pa.array([status.value for status in INCOMPLETE]))
    table = table.append_column("said", pc.cast(pc.invert(silent), pa.int64()))
    columns = ["device", "configuration", "torch", "said"]
    rows = table.group_by(columns).aggregate([("when", "max")]).to_pylist()
    found: dict[tuple[str, str], list[str]] = {}
    for row in sorted(rows, key=lambda row: (row["said"], row["when_max"]), reverse=True):
        versions = found.setdefault((row["device"], row["configuration"]), [])
        versions += [row["torch"]] if row["torch"] and row["torch"] not in versions else []
    return {column: tuple(versions) for column, versions in found.items()}


def _kept(table: Any, kept: Mapping[tuple[str, str], Collection[str]]) -> Any:
    """Which rows are of a version that is read, or of none that is known."""
    words = [
        f"{device}\0{configuration}\0{version}"
        for (device, configuration), versions in kept.items()
        for version in ("", *versions)
    ]
    found = pc.binary_join_element_wise(table["device"], table["configuration"], table["torch"], "\0")
    return pc.is_in(found, value_set=pa.array(words, pa.string()))


def _newest(table: Any) -> dict[int, list[int]]:
    """Rows by run: of each case and environment the newest, and the newest that says something."""
    whole = table.sort_by([("when", "ascending"), ("run", "ascending")])
    whole = whole.append_column("position", pa.array(range(len(whole)), pa.int64()))
    silent = pc.is_in(whole["status"], value_set=pa.array([status.value for status in INCOMPLETE]))
    chosen: set[int] = set()
    for part in (whole, whole.filter(pc.invert(silent))):
        last = part.group_by(["case_key", "where"]).aggregate([("position", "max")])
        chosen.update(last["position_max"].to_pylist())
    kept = whole.take(pa.array(sorted(chosen), pa.int64()))
    found: dict[int, list[int]] = {}
    for run, index in zip(kept["run"].to_pylist(), kept["index"].to_pylist(), strict=True):
        found.setdefault(run, []).append(index)
    return found


def _case(row: dict[str, Any], path: str, numbers: Mapping[str, Number]) -> StoredCase:
    extras = [f"{key} {value}" for key, value in sorted(json.loads(row["shape"] or "{}").items())]
    extras += [row["weights"]] if row["weights"] != "random" else []
    facts = json.loads(row["facts"]) if row["facts"] else {}
    why = {each: why_marked(each, row["modifiers"] or (), facts) for each in GRAVEST}
    error = ": ".join(part for part in (row["error_type"], row["error_message"]) if part)
    return StoredCase(
        run_id=row["run_id"],
        store=path,
        case_key=row["case_key"],
        case_id=row["case_id"],
        suite=row["suite"],
        model=row["model"],
        workload=row["declared_hash"],
        batch=row["batch"],
        size=row["size"],
        extras=", ".join(extras),
        configuration=row["configuration"],
        device=str(DeviceTarget(row["device"], row["device_index"])),
        status=Status(row["status"]),
        cause=Cause(row["cause"]) if row["cause"] else None,
        reason=row["reason"] or error,
        degraded=why[Modifier.DEGRADED],
        environment=row["environment_id"],
        torch=row["torch_version"] or "",
        realised=row["realised_hash"] or "",
        parameters=row["parameters"],
        at=(row["started_at"] or row["run_created_at"]).timestamp(),
        numbers=numbers,
        other_model=why[Modifier.OTHER_MODEL],
        unchecked=why[Modifier.UNCHECKED],
        unsteady=why[Modifier.UNSTEADY],
    )
