"""The compatibility matrix: what works where, every planned case in one cell."""

from __future__ import annotations

from dataclasses import dataclass

from torchgauge.dashboard.board import Board, Column
from torchgauge.dashboard.pages.cells import (
    DeviceHead,
    RowHead,
    StatusCell,
    device_heads,
    row_cells,
    row_head,
)
from torchgauge.dashboard.tally import Tally, tally


@dataclass(frozen=True)
class MatrixRow:
    """A workload and its cells."""

    head: RowHead
    cells: tuple[StatusCell | None, ...]


@dataclass(frozen=True)
class CompatibilityPage:
    """The matrix with its headings and the counts under each column."""

    total: Tally
    devices: tuple[DeviceHead, ...]
    columns: tuple[Column, ...]
    rows: tuple[MatrixRow, ...]
    tallies: tuple[Tally, ...]
    superseded: int


def compatibility_page(board: Board) -> CompatibilityPage:
    """The matrix of ``board``."""
    rows = [MatrixRow(row_head(w), row_cells(board, w, board.columns)) for w in board.workloads]
    tallies = [tally(e for e in board.entries.values() if e.column == column) for column in board.columns]
    return CompatibilityPage(
        total=tally(board.entries.values()),
        devices=device_heads(board.columns),
        columns=board.columns,
        rows=tuple(rows),
        tallies=tuple(tallies),
        superseded=board.superseded,
    )
