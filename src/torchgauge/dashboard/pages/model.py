"""The page of one model: how it does everywhere, every number with its interval, and how to run it again."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from torchgauge.dashboard.board import Board, Column, Entry, Number, Workload
from torchgauge.dashboard.pages import links
from torchgauge.dashboard.pages.cells import (
    DeviceHead,
    StatusCell,
    device_heads,
    known_note,
    row_cells,
    status_cell,
)
from torchgauge.dashboard.pages.runs import fact
from torchgauge.dashboard.plain_rows import Row
from torchgauge.dashboard.statuses import LOOKS
from torchgauge.harness.metrics import METRICS
from torchgauge.records import Status
from torchgauge.results import units
from torchgauge.results.hostile_text import tail

Facts = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class MetricRow:
    """One metric of a case; ``absent`` is the reason where there is no number."""

    metric: str
    doc: str
    value: str
    interval: str
    n: int
    confidence: str
    method: str
    provenance: str
    stopped: str
    absent: str


@dataclass(frozen=True)
class CaseSection:
    """Everything about one case; ``stand_in`` says where its details come from an older run."""

    anchor: str
    column: Column
    case_id: str
    cell: StatusCell
    facts: Facts
    why: Facts
    stand_in: str
    run_anchor: str
    run_id: str
    environment_id: str
    environment_anchor: str
    metrics: tuple[MetricRow, ...]
    accuracy: Facts
    reproduce: str
    traceback: str
    log: str


@dataclass(frozen=True)
class WorkloadSection:
    """One workload of the model and its cases."""

    anchor: str
    variant: str
    facts: Facts
    cells: tuple[StatusCell | None, ...]
    cases: tuple[CaseSection, ...]


@dataclass(frozen=True)
class ModelPage:
    """All workloads of one suite and model."""

    file: str
    title: str
    devices: tuple[DeviceHead, ...]
    columns: tuple[Column, ...]
    workloads: tuple[WorkloadSection, ...]


def model_pages(board: Board, environments: frozenset[str]) -> Iterator[ModelPage]:
    """One page per suite and model; ``environments`` are the ids that the page of runs describes."""
    groups: dict[tuple[str, str], list[Workload]] = {}
    for workload in board.workloads:
        groups.setdefault(workload.group, []).append(workload)
    for group, workloads in groups.items():
        planned = {column for workload, column in board.entries if workload.group == group}
        columns = tuple(column for column in board.columns if column in planned)
        yield ModelPage(
            file=links.model_page(group),
            title="/".join(group),
            devices=device_heads(columns),
            columns=columns,
            workloads=tuple(_workload(board, w, columns, environments) for w in workloads),
        )


def _workload(
    board: Board, workload: Workload, columns: tuple[Column, ...], environments: frozenset[str]
) -> WorkloadSection:
    found = (board.entries.get((workload, column)) for column in columns)
    entries = [entry for entry in found if entry]
    return WorkloadSection(
        anchor=links.workload_anchor(workload),
        variant=workload.variant,
        facts=_built(entries),
        cells=row_cells(board, workload, columns),
        cases=tuple(_case(entry, environments) for entry in entries),
    )


def _built(entries: list[Entry]) -> Facts:
    """What the workers really built; several values where they do not agree."""

    def said(name: str) -> str:
        values = (entry.shown[name] for entry in entries)
        return ", ".join(dict.fromkeys(_text(value) for value in values if value is not None))

    names = {
        "parameters": "parameters",
        "buffers": "buffers",
        "inputs": "inputs",
        "declared_hash": "declared hash",
        "realised_hash": "realised hash",
    }
    return tuple((title, said(name) or "not known: never built") for name, title in names.items())


def _case(entry: Entry, environments: frozenset[str]) -> CaseSection:
    row = entry.shown
    environment = row["environment_id"] or ""
    return CaseSection(
        anchor=links.case_anchor(entry),
        column=entry.column,
        case_id=entry.newest["case_id"],
        cell=status_cell(entry),
        facts=_facts(entry),
        why=_why(entry.newest),
        stand_in=_stand_in(entry),
        run_anchor=links.run_anchor(row["run_id"]),
        run_id=row["run_id"],
        environment_id=environment,
        environment_anchor=links.environment_anchor(environment) if environment in environments else "",
        metrics=_metrics(entry.numbers),
        accuracy=_accuracy(row),
        reproduce=entry.newest["reproduce"] or row["reproduce"] or "",
        traceback=tail(row["traceback"] or ""),
        log=tail(row["log_excerpt"] or entry.newest["log_excerpt"] or ""),
    )


def _stand_in(entry: Entry) -> str:
    if entry.stands_in and entry.known is not None:
        code = LOOKS[Status(entry.known["status"])].code
        return (
            f"The newest attempt says nothing of this case. What follows is the last known result: {code}, "
            f"{units.age(entry.known_age_s)} ago."
        )
    note = known_note(entry)
    return f"This result is stale: {note}." if note else ""


def _facts(entry: Entry) -> Facts:
    row = entry.shown
    began = row["started_at"]
    pairs = [
        ("started", units.moment(began.timestamp()) if began else "never"),
        ("age", units.age(entry.known_age_s)),
        ("took", units.duration(row["duration_s"]) if row["duration_s"] else ""),
        ("torch", row["torch_version"]),
        ("threads", row["threads"]),
        ("options", row["configuration_options"]),
        ("variables", row["configuration_env"]),
        ("facts", "; ".join(f"{name}: {value}" for name, value in _pairs(row["facts"]))),
    ]
    return _kept(pairs)


def _why(row: Row) -> Facts:
    quiet = row["status"] == Status.PASS.value
    pairs = [
        ("last phase", "" if quiet else row["phase"]),
        ("cause", row["cause"]),
        ("reason", row["reason"]),
        ("expected", row["expected"]),
        ("error", row["error_type"]),
        ("message", tail(row["error_message"] or "", 4096)),
        ("frame", row["error_frame"]),
        ("missing op", row["missing_op"]),
        ("fingerprint", row["fingerprint"]),
        ("process", "" if quiet else row["exit"]),
        ("after the case", row["teardown"]),
        ("log file", row["log"]),
    ]
    return _kept(pairs)


def _accuracy(row: Row) -> Facts:
    numbers = {
        "max_abs_error": "largest absolute error",
        "rmse": "RMSE",
        "rmse_eager": "RMSE of eager",
        "rmse_ratio": "RMSE ratio",
        "eager_spread": "eager spread",
        "cosine": "cosine similarity",
    }
    pairs: list[tuple[str, object]] = [("reference", row["accuracy_reference"])]
    pairs += [
        (title, units.small_number(row[name])) for name, title in numbers.items() if row[name] is not None
    ]
    return _kept([*pairs, ("detail", row["accuracy_detail"])])


def _metrics(numbers: Mapping[str, Number]) -> tuple[MetricRow, ...]:
    order = [*METRICS, *sorted(numbers.keys() - METRICS.keys())]
    return tuple(_metric(numbers[name]) for name in order if name in numbers)


def _metric(number: Number) -> MetricRow:
    value, bracket = "", ""
    if number.median is not None:
        value, bracket = units.interval_parts(number.median, number.low, number.high, number.unit)
    return MetricRow(
        metric=number.metric.replace("_", " "),
        doc=METRICS[number.metric].doc if number.metric in METRICS else "",
        value=value,
        interval=bracket,
        n=number.n,
        confidence=f"{number.confidence:.0%}" if bracket else "",
        method=number.method if value else "",
        provenance=number.provenance,
        stopped=number.stopped,
        absent=number.absent,
    )


def _pairs(text: str | None) -> Facts:
    try:
        value = json.loads(text or "{}")
    except ValueError:
        return (("facts", text or ""),)
    if not isinstance(value, dict):
        return (("facts", fact(text or "")),)
    return tuple((name, fact(json.dumps(item))) for name, item in sorted(value.items()))


def _kept(pairs: list[tuple[str, object]]) -> Facts:
    return tuple((name, _text(value)) for name, value in pairs if value not in (None, ""))


def _text(value: object) -> str:
    return units.integer(value) if isinstance(value, int) else str(value)
