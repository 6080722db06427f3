"""The cell of a matrix: what is counted, in text, with its marks and what is known from before."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby

from torchgauge.dashboard.board import Board, Column, Entry, Workload
from torchgauge.dashboard.pages import links
from torchgauge.dashboard.statuses import BADNESS, LOOKS, Look
from torchgauge.results import units


@dataclass(frozen=True)
class StatusCell:
    """One case in a matrix; ``note`` tells the age of what stands in for it."""

    look: Look
    href: str
    marks: tuple[str, ...]
    note: str
    sort: int


@dataclass(frozen=True)
class DeviceHead:
    """A heading over the columns of one device."""

    device: str
    span: int


@dataclass(frozen=True)
class RowHead:
    """The heading of a row: a workload."""

    suite: str
    model: str
    variant: str
    href: str


def status_cell(entry: Entry) -> StatusCell:
    """The cell of ``entry``."""
    look = LOOKS[entry.status]
    note = known_note(entry)
    return StatusCell(look, links.case_link(entry), entry.marks, note, BADNESS[entry.status])


def known_note(entry: Entry) -> str:
    """What stands in for a row that says nothing, or how old a stale row is; else empty."""
    if entry.stands_in and entry.known is not None:
        code = LOOKS[type(entry.status)(entry.known["status"])].code
        return f"last {code}, {units.age(entry.known_age_s)} ago"
    return f"{units.age(entry.age_s)} old" if "stale" in entry.marks else ""


def row_head(workload: Workload) -> RowHead:
    """The heading of the row of ``workload``."""
    href = f"{links.model_page(workload.group)}#{links.workload_anchor(workload)}"
    return RowHead(workload.suite, workload.model, workload.variant, href)


def device_heads(columns: tuple[Column, ...]) -> tuple[DeviceHead, ...]:
    """Headings over ``columns``, which are sorted by device."""
    spans = groupby(columns, key=lambda column: column.device)
    return tuple(DeviceHead(device, len(list(members))) for device, members in spans)


def row_cells(board: Board, workload: Workload, columns: tuple[Column, ...]) -> tuple[StatusCell | None, ...]:
    """One status cell per column; None where no such case was ever planned."""
    found = (board.entries.get((workload, column)) for column in columns)
    return tuple(status_cell(entry) if entry else None for entry in found)
