"""The compatibility matrix: what works where, every planned case in one cell.

A page of 4,800 cells has to arrive in 60 KB, so a cell is written out by :func:`cells.matrix_cell` and not by
a template.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from markupsafe import Markup

from torchgauge.dashboard.latest_results import LatestResults
from torchgauge.dashboard.pages.cells import matrix_row, row_head
from torchgauge.dashboard.pages.column_heads import ColumnHead, column_heads
from torchgauge.dashboard.pages.latest import cell_shards, history_shards
from torchgauge.dashboard.pages.views import LATENCY, metric_units
from torchgauge.dashboard.retired import retired_text
from torchgauge.dashboard.tally import Tally, tally, tally_by_column
from torchgauge.records import Metric

if TYPE_CHECKING:
    from torchgauge.dashboard.context import SiteContext


@dataclass(frozen=True)
class MatrixRow:
    """A workload and its cells."""

    head: Markup
    cells: Markup


@dataclass(frozen=True)
class CompatibilityPage:
    """The matrix with its headings and the counts under each column."""

    total: Tally
    silent: Mapping[str, str]
    columns: tuple[ColumnHead, ...]
    rows: tuple[MatrixRow, ...]
    tallies: tuple[Tally, ...]
    superseded: int
    retired: str
    not_planned: int
    never_on_silent: int
    metrics: Mapping[str, str]


def build(context: SiteContext) -> Iterator[tuple[str, bytes]]:
    """The page of the models' matrix, with the histories and facts that a reader may ask it for."""
    latest = context.latest.of_models()
    page = compatibility_page(latest, context.primaries)
    yield (
        "compatibility.html",
        context.renderer.page("compatibility", "compatibility.html", page=page).encode(),
    )
    yield from history_shards(latest, context.recent)
    yield from cell_shards(latest)


def compatibility_page(latest: LatestResults, primaries: Sequence[Metric] = (LATENCY,)) -> CompatibilityPage:
    """The matrix of ``latest``; ``primaries`` are the metrics that a query may name first."""
    tallies = tally_by_column(latest)
    blank, heard = (len(latest.workloads) * len(x.columns) - len(x.entries) for x in (latest, latest.current))
    above = [latest.stale_days.get(column, "") for column in latest.columns]
    return CompatibilityPage(
        total=tally(latest.current.entries.values()),
        silent=latest.silent,
        columns=column_heads(latest.columns, latest.apart),
        rows=tuple(
            MatrixRow(row_head(workload), matrix_row(entries, above))
            for workload, entries in zip(latest.workloads, latest.grid, strict=True)
        ),
        tallies=tuple(tallies[column] for column in latest.columns),
        superseded=latest.superseded,
        retired=retired_text(latest),
        not_planned=heard,
        never_on_silent=blank - heard,
        metrics=metric_units(latest, primaries) if latest.entries else {},
    )
