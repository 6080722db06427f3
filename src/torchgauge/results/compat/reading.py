"""Rows of several stores as plain values: each run once, damaged ones named and left out."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from torchgauge.errors import DamagedJournalError, UsageError
from torchgauge.records import INCOMPLETE, DeviceTarget, Environment, Status
from torchgauge.results.dataset import read_table
from torchgauge.results.store import Store

_COLUMNS = (
    "run_id", "case_id", "case_key", "suite", "model", "mode", "dtype", "batch", "size", "shape", "seed",
    "weights", "configuration", "backend", "device", "device_index", "status", "reason", "expected",
    "unexpected", "modifiers", "missing_op", "fingerprint", "environment_id", "torch_version",
    "run_created_at", "started_at", "facts",
)  # fmt: skip

_KEYS = ("run_id", "case_key", "torch_version", "status", "started_at", "run_created_at")
_STATUSES = {status.value for status in Status}

Row = dict[str, Any]


@dataclass(frozen=True)
class Reading:
    """Rows with ``target`` (the device as a case names it), ``store`` and ``at`` added, in order of time.

    ``environments`` are by id. ``notes`` and ``gaps`` are sentences.
    """

    rows: tuple[Row, ...]
    environments: dict[str, Environment]
    notes: tuple[str, ...]
    gaps: tuple[str, ...]


def read_stores(paths: Sequence[str]) -> Reading:
    """The published rows of the stores at ``paths`` that are not superseded in their store.

    A run that is in several stores counts once, and a run whose tables cannot be read is a gap. Raises
    :class:`UsageError` where there is no store, or none is named.
    """
    if not paths:
        raise UsageError("no store is named", hint="--store DIR, as often as there are stores")
    rows: list[Row] = []
    environments: dict[str, Environment] = {}
    where: dict[str, str] = {}
    notes: list[str] = []
    gaps: list[str] = []
    for path in dict.fromkeys(str(Path(path)) for path in paths):
        store = Store.open(path)
        keys: dict[str, Any] = {}
        for run_id in store.published():
            if run_id in where:
                notes.append(f"run {run_id} is in {where[run_id]} and in {path}: it counts once")
                continue
            with _gap(gaps, run_id, path):
                keys[run_id] = read_table(store, "results", run_id, _KEYS)
                where[run_id] = path
        for run_id, indices in _newest(keys).items():
            with _gap(gaps, run_id, path):
                found = _run_rows(store, run_id, path, indices)
                environments.update(_environments(store, run_id))
                strange = sorted({row["status"] for row in found} - _STATUSES)
                if strange:
                    gaps.append(f"run {run_id} of {path}: rows with unknown statuses are left out: {strange}")
                rows += [row for row in found if row["status"] in _STATUSES]
        waiting = [run_id for run_id in store.run_ids() if not store.is_published(run_id)]
        if waiting:
            notes.append(f"{path}: {_runs(len(waiting))} not finished or not published, and so not shown")
    rows.sort(key=lambda row: (row["at"], row["run_created_at"], row["run_id"]))
    return Reading(tuple(rows), environments, tuple(notes), tuple(gaps))


@contextmanager
def _gap(gaps: list[str], run_id: str, path: str) -> Iterator[None]:
    """Add a sentence to ``gaps`` where the run cannot be read, and go on."""
    try:
        yield
    except (DamagedJournalError, UsageError) as error:
        gaps.append(f"run {run_id} of {path} is left out: {error.message}")


def _newest(keys: dict[str, Any]) -> dict[str, list[int]]:
    """Indices of rows by run: of each case and torch the newest row and the newest that says something.

    Why before the rows are read: a store of nightly runs holds millions, and a few thousand are shown.
    """
    parts = [
        table.append_column("run", pa.array([number] * len(table), pa.int64())).append_column(
            "index", pa.array(range(len(table)), pa.int64())
        )
        for number, table in enumerate(keys.values())
    ]
    if not parts:
        return {}
    order = [("when", "ascending"), ("run_created_at", "ascending"), ("run_id", "ascending")]
    whole = pa.concat_tables(parts)
    whole = whole.append_column("when", pc.coalesce(whole["started_at"], whole["run_created_at"]))
    whole = whole.sort_by(order)
    whole = whole.append_column("position", pa.array(range(len(whole)), pa.int64()))
    silent = pc.is_in(whole["status"], value_set=pa.array([status.value for status in INCOMPLETE]))
    chosen: set[int] = set()
    for table in (whole, whole.filter(pc.invert(silent))):
        last = table.group_by(["case_key", "torch_version"]).aggregate([("position", "max")])
        chosen.update(last["position_max"].to_pylist())
    kept = whole.take(sorted(chosen))
    found: dict[int, list[int]] = {}
    for run, index in zip(kept["run"].to_pylist(), kept["index"].to_pylist(), strict=True):
        found.setdefault(run, []).append(index)
    names = list(keys)
    return {names[run]: sorted(indices) for run, indices in sorted(found.items())}


def _runs(number: int) -> str:
    return "1 run is" if number == 1 else f"{number} runs are"


def _run_rows(store: Store, run_id: str, path: str, indices: list[int]) -> list[Row]:
    rows: list[Row] = read_table(store, "results", run_id, _COLUMNS).take(indices).to_pylist()
    for row in rows:
        row["target"] = str(DeviceTarget(row["device"], row["device_index"]))
        row["at"] = (row["started_at"] or row["run_created_at"]).timestamp()
        row["store"] = path
    return rows


def _environments(store: Store, run_id: str) -> dict[str, Environment]:
    facts: dict[tuple[str, str], dict[str, Any]] = {}
    for row in _identities(read_table(store, "environments", run_id).to_pylist()):
        facts.setdefault((row["environment_id"], row["device"]), {})[row["key"]] = json.loads(row["value"])
    return {key: Environment(device, tuple(sorted(found.items()))) for (key, device), found in facts.items()}


def _identities(rows: Iterable[Row]) -> Iterable[Row]:
    return (row for row in rows if row["kind"] == "identity")
