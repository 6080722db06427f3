"""What a store and a static census hold about one device: rows of operators, rows of models, kinds.

Only the newest row of a case counts. Its age is that of its run, in seconds before the newest run on the
device, so that old evidence can be seen for what it is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from torchgauge.errors import UnknownNameError
from torchgauge.records import Modifier, Status
from torchgauge.results.hostile_text import first_line
from torchgauge.results.latest import read_rows
from torchgauge.results.store import Store
from torchgauge.suites.calibration import NAME as CALIBRATION
from torchgauge.suites.census.record import COMPILED, EAGER, base_name
from torchgauge.suites.conformance.suite import NAME as CONFORMANCE
from torchgauge.suites.ops.suite import SUITE as OPERATORS

_COLUMNS = (
    "case_id", "suite", "model", "mode", "dtype", "backend", "reason", "cause", "modifiers", "missing_op",
    "error_type", "error_message", "fingerprint",
)  # fmt: skip
NO_MODELS = frozenset({OPERATORS.name, CONFORMANCE, CALIBRATION})
"""Suites whose rows are of operators, of checks and of the device itself."""
_OTHER_TENSORS = re.compile(r"from the '(?:Sparse|Quantized|Nested|Mkldnn|Batched)\w*' backend")
"""A complaint about tensors of another kind says nothing of dense ones, which models are made of."""


@dataclass(frozen=True)
class OperatorRow:
    """The verdict of the matrix on one entry of PyTorch's operator database.

    ``missing`` is the base name of the operator that the failure names; ``at`` is when the run was planned,
    seconds since the epoch, and ``age_s`` how much older it is than the device's newest run.
    """

    entry: str
    variant: str
    dtype: str
    status: Status
    missing: str = ""
    error: str = ""
    at: float = 0.0
    age_s: float = 0.0


@dataclass(frozen=True)
class ModelRow:
    """How one model did on the device; fields as in :class:`OperatorRow`."""

    suite: str
    model: str
    mode: str
    dtype: str
    path: str
    status: Status
    missing: str = ""
    error: str = ""
    reason: str = ""
    fingerprint: str = ""
    case_id: str = ""
    at: float = 0.0
    age_s: float = 0.0


@dataclass(frozen=True)
class Evidence:
    """The rows of ``device`` and of models on it.

    ``static`` maps an aten overload to its kind in the dispatcher. ``gaps`` are sentences on runs that cannot
    be read.
    """

    device: str
    operators: tuple[OperatorRow, ...] = ()
    models: tuple[ModelRow, ...] = ()
    static: Mapping[str, str] | None = None
    gaps: tuple[str, ...] = ()


def evidence_of(store: Store, device: str) -> Evidence:
    """The evidence that ``store`` holds of the device called ``device``, such as ``D`` or ``D.1``.

    Raises :class:`UnknownNameError` where no published row is of that device.
    """
    stored = read_rows([str(store.path)])
    names = stored.table["target"].unique().to_pylist()
    if device not in names:
        raise UnknownNameError("device of the store", device, sorted(names))
    rows = [
        row
        for _, found in stored.of("target", [device]).standing("case_key").whole(_COLUMNS)
        for row in found
    ]
    for row in rows:
        row["at"] = row["run_created_at"].timestamp()
    last = max(row["at"] for row in rows)
    found = ({**row, "older": last - row["at"]} for row in rows)
    evidence = evidence_from(device, found, static_kinds(store, device.partition(".")[0]))
    return replace(evidence, gaps=tuple(stored.reading.gaps))


def evidence_from(
    device: str, records: Iterable[dict[Any, Any]], static: Mapping[str, str] | None
) -> Evidence:
    """The evidence in newest rows of ``device`` with ``at`` and ``older``, in seconds.

    A row of another model than its name is none: a census is of the named model.
    """
    rows = [{name: "" if value is None else value for name, value in row.items()} for row in records]
    models = [
        _model(row)
        for row in rows
        if row["suite"] not in NO_MODELS and Modifier.OTHER_MODEL.value not in (row.get("modifiers") or ())
    ]
    return Evidence(
        device,
        _newest([_operator(row) for row in rows if row["suite"] == OPERATORS.name]),
        _newest(models),
        static,
    )


def static_kinds(store: Store, device: str) -> dict[str, str] | None:
    """Kinds by aten overload from the newest static census that is kept for ``device``; None without one."""
    found = []
    for path in sorted((store.path / "census").glob("static-*.json")):
        try:
            data = json.loads(path.read_bytes())
            if data["device"] == device:
                found.append((float(data["at"]), dict(data["operators"])))
        except (OSError, ValueError, KeyError, TypeError, OverflowError):  # no census is no evidence
            continue
    return max(found, key=lambda each: each[0])[1] if found else None


def _newest(rows: Iterable[Any]) -> tuple[Any, ...]:
    """One row for each thing that was judged: other numbers of samples or items judge the same thing."""
    found: dict[tuple[str, ...], Any] = {}
    for row in sorted(rows, key=lambda row: row.at):
        found[_subject(row)] = row
    return tuple(found[key] for key in sorted(found))


def _subject(row: OperatorRow | ModelRow) -> tuple[str, ...]:
    if isinstance(row, OperatorRow):
        return (row.entry, row.variant, row.dtype)
    return (row.suite, row.model, row.mode, row.dtype, row.path)


def _operator(row: dict[str, Any]) -> OperatorRow:
    return OperatorRow(
        row["model"],
        row["mode"],
        row["dtype"],
        Status(row["status"]),
        _missing(row),
        _error(row),
        row["at"],
        row["older"],
    )


def _model(row: dict[str, Any]) -> ModelRow:
    return ModelRow(
        suite=row["suite"],
        model=row["model"],
        mode=row["mode"],
        dtype=row["dtype"],
        path=EAGER if row["backend"] == "eager" else COMPILED,
        status=Status(row["status"]),
        missing=_missing(row),
        error=_error(row),
        reason=first_line(row["reason"] or row["error_message"] or row["cause"], 240),
        fingerprint=row["fingerprint"],
        case_id=row["case_id"],
        at=row["at"],
        age_s=row["older"],
    )


def _missing(row: dict[str, Any]) -> str:
    if not row["missing_op"] or _OTHER_TENSORS.search(row["error_message"]):
        return ""
    return base_name(row["missing_op"])


def _error(row: dict[str, Any]) -> str:
    """Type and first line of the exception without its numbers: equal for equal causes."""
    if not row["error_type"]:
        return ""
    return re.sub(r"\d+", "N", f"{row['error_type']}: {first_line(row['error_message'], 200)}")
