"""The compatibility matrix: what works where, every planned case in one cell.

A page of 4,800 cells has to arrive in 60 KB, so a cell is written out by :func:`cells.matrix_cell` and not by
a template.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from markupsafe import Markup

from torchgauge.dashboard.board import Board
from torchgauge.dashboard.pages.cells import matrix_row, row_head
from torchgauge.dashboard.pages.column_heads import ColumnHead, column_heads
from torchgauge.dashboard.pages.latest import history_shards
from torchgauge.dashboard.pages.views import metric_units
from torchgauge.dashboard.tally import Tally, tally_by_column

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
    columns: tuple[ColumnHead, ...]
    rows: tuple[MatrixRow, ...]
    tallies: tuple[Tally, ...]
    superseded: int
    not_planned: int
    metrics: Mapping[str, str]


def build(context: SiteContext) -> Iterator[tuple[str, bytes]]:
    """The page of the models' matrix, and the histories that its query box may ask for."""
    board = context.board.of_models()
    page = compatibility_page(board)
    yield (
        "compatibility.html",
        context.renderer.page("compatibility", "compatibility.html", page=page).encode(),
    )
    yield from history_shards(board, context.recent)


def compatibility_page(board: Board) -> CompatibilityPage:
    """The matrix of ``board``."""
    tallies = tally_by_column(board)
    return CompatibilityPage(
        total=Tally.sum(tallies.values()),
        columns=column_heads(board.columns),
        rows=tuple(
            MatrixRow(row_head(workload), matrix_row(entries))
            for workload, entries in zip(board.workloads, board.grid, strict=True)
        ),
        tallies=tuple(tallies[column] for column in board.columns),
        superseded=board.superseded,
        not_planned=len(board.workloads) * len(board.columns) - len(board.entries),
        metrics=metric_units(board) if board.entries else {},
    )
