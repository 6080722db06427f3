"""The performance matrix: one table per metric, with intervals, and a mean over the common set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torchgauge.dashboard.board import Board, Column, Entry
from torchgauge.dashboard.pages import geomean, links
from torchgauge.dashboard.pages.cells import DeviceHead, RowHead, device_heads, known_note, row_head
from torchgauge.dashboard.statuses import LOOKS, Look
from torchgauge.harness.metrics import METRICS
from torchgauge.records import Status
from torchgauge.results import units
from torchgauge.results.hostile_text import first_line
from torchgauge.results.stats import common_set


@dataclass(frozen=True)
class Shown:
    """How one metric is shown: its title, and whether eager columns and a mean take part."""

    metric: str
    title: str
    eager: bool = True
    mean: bool = False
    provenance: bool = False


SHOWN = (
    Shown("latency", "Latency", mean=True),
    Shown("speedup", "Speed-up over eager", eager=False, mean=True),
    Shown("compile_cold", "Compile time, cold cache", eager=False),
    Shown("compile_warm", "Compile time, warm cache", eager=False),
    Shown("peak_memory", "Peak memory", provenance=True),
)
"""The tables of the page, in order."""


@dataclass(frozen=True)
class NumberCell:
    """One number in a table; ``look`` is set where the case did not pass, ``absent`` where there is none."""

    href: str
    value: str
    interval: str
    detail: str
    absent: str
    look: Look | None
    marks: tuple[str, ...]
    note: str
    sort: float | None


@dataclass(frozen=True)
class NumberRow:
    """A workload and its numbers."""

    head: RowHead
    cells: tuple[NumberCell | None, ...]
    comparable: bool


@dataclass(frozen=True)
class MetricTable:
    """One metric over all workloads; ``means`` is empty where no mean is meaningful."""

    metric: str
    title: str
    doc: str
    better: str
    devices: tuple[DeviceHead, ...]
    columns: tuple[Column, ...]
    rows: tuple[NumberRow, ...]
    means: tuple[geomean.Mean, ...]
    own_means: tuple[geomean.Mean, ...]
    common: int
    excluded: tuple[geomean.Exclusion, ...]


def performance_page(board: Board) -> tuple[MetricTable, ...]:
    """The tables for which the store holds any case."""
    tables = [_table(board, shown) for shown in SHOWN]
    return tuple(table for table in tables if table.columns)


def _table(board: Board, shown: Shown) -> MetricTable:
    metric = METRICS[shown.metric]
    columns = tuple(column for column in board.columns if shown.eager or column.compiled)
    rows = [
        NumberRow(
            row_head(w),
            tuple(_cell(board.entries.get((w, column)), shown) for column in columns),
            w.name not in board.built_differently,
        )
        for w in board.workloads
    ]
    means, own, common, excluded = _means(board, shown, columns, metric.unit)
    return MetricTable(
        metric=shown.metric,
        title=shown.title,
        doc=metric.doc,
        better=metric.better.value,
        devices=device_heads(columns),
        columns=columns,
        rows=tuple(row for row in rows if any(row.cells)),
        means=means,
        own_means=own,
        common=common,
        excluded=excluded,
    )


_Means = tuple[tuple[geomean.Mean, ...], tuple[geomean.Mean, ...], int, tuple[geomean.Exclusion, ...]]


def _means(board: Board, shown: Shown, columns: Sequence[Column], unit: str) -> _Means:
    if not shown.mean:
        return (), (), 0, ()
    by_column = {c: [e for e in board.entries.values() if e.column == c] for c in columns}
    numbers = {column: geomean.values(entries, shown.metric) for column, entries in by_column.items()}
    with_numbers = {c: by_column[c] for c in columns if any(v is not None for v in numbers[c].values())}
    common = common_set(*(numbers[column] for column in with_numbers)) - board.built_differently
    means = tuple(geomean.mean(numbers[column], unit, common) for column in columns)
    own = tuple(geomean.mean(numbers[column], unit) for column in columns)
    return (
        means,
        own,
        len(common),
        geomean.exclusions(with_numbers, shown.metric, common, board.built_differently),
    )


def _cell(entry: Entry | None, shown: Shown) -> NumberCell | None:
    if entry is None:
        return None
    number = entry.numbers.get(shown.metric)
    median = number.median if number else None
    value, bracket = ("", "")
    if number is not None and median is not None:
        value, bracket = units.interval_parts(median, number.low, number.high, number.unit)
    missing = number.absent if number else "not measured"
    return NumberCell(
        href=links.case_link(entry),
        value=value,
        interval=bracket,
        detail=number.provenance.replace("_", " ")
        if number and median is not None and shown.provenance
        else "",
        absent="" if value else first_line(missing, 48),
        look=None if entry.status is Status.PASS else LOOKS[entry.status],
        marks=tuple(mark for mark in entry.marks if mark in ("degraded", "flaky", "stale")),
        note=known_note(entry),
        sort=median,
    )
