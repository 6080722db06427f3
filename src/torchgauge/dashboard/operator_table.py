"""The operator matrix: one verdict per operator, device and dtype, worst over the variants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torchgauge.dashboard.pages.number_text import NO_NUMBER
from torchgauge.dashboard.statuses import LOOKS, Look
from torchgauge.records import Status
from torchgauge.results.compat.table import Cell, Entry, Feature, Section, Table, cell_of

_ORDER = ("float32", "bfloat16", "float16", "float64", "complex64", "complex128", "int64", "int32", "int16",
          "int8", "uint8", "bool")  # fmt: skip
_SHORT = {"float": "f", "bfloat": "bf", "complex": "c", "int": "i", "uint": "u"}


@dataclass(frozen=True)
class DtypeColumn:
    """One dtype on one device: of ``said`` operators that say something of it ``passed`` pass."""

    device: str
    dtype: str
    first: bool
    passed: int
    said: int

    @property
    def short(self) -> str:
        """The dtype in the space of a cell, such as ``bf16``."""
        name = self.dtype.rstrip("0123456789")
        return f"{_SHORT[name]}{self.dtype[len(name) :]}" if name in _SHORT else self.dtype

    @property
    def percent(self) -> str:
        """The share of operators that pass; a dash where none says anything."""
        if not self.said:
            return NO_NUMBER
        return "100%" if self.passed == self.said else f"{min(99.9, 100 * self.passed / self.said):.1f}%"


@dataclass(frozen=True)
class OperatorCell:
    """A verdict: the letter of its status, and its code with a star where more is known of it."""

    letter: str
    code: str


@dataclass(frozen=True)
class OperatorRow:
    """One operator."""

    name: str
    cells: tuple[OperatorCell, ...]

    @property
    def fails(self) -> bool:
        """Whether anything but a pass, or nothing, stands in its cells."""
        return any(cell.letter not in _QUIET or cell.code.endswith("*") for cell in self.cells)


@dataclass(frozen=True)
class OperatorMatrix:
    """All operators by device and dtype, those that fail anywhere first."""

    columns: tuple[DtypeColumn, ...]
    rows: tuple[OperatorRow, ...]

    @property
    def failing(self) -> int:
        """How many fail anywhere."""
        return sum(row.fails for row in self.rows)

    @property
    def looks(self) -> list[Look]:
        """The statuses that occur."""
        letters = {cell.letter for row in self.rows for cell in row.cells}
        return [look for look in LOOKS.values() if look.letter in letters]

    @property
    def devices(self) -> list[tuple[str, list[DtypeColumn]]]:
        """The columns of each device."""
        found: dict[str, list[DtypeColumn]] = {}
        for column in self.columns:
            found.setdefault(column.device, []).append(column)
        return list(found.items())


_BLANK = OperatorCell("z", "")
_QUIET = frozenset({"p", "z", *(LOOKS[status].letter for status in (Status.SKIPPED, Status.NOT_RUN))})
"""Letters that say nothing against the device."""


def matrix_of(table: Table, section: Section) -> OperatorMatrix:
    """The matrix of ``section``, whose parts are named by variant and dtype."""
    places = _places(section)
    counts = {place: [0, 0] for place in places}
    rows = []
    for feature in section.features:
        cells = []
        members = _members(feature)
        for place in places:
            entries = members.get(place, ())
            if not entries:
                cells.append(_BLANK)
                continue
            cell = cell_of(entries)
            counts[place][0] += cell.complete
            counts[place][1] += cell.said > 0
            cells.append(_cell(cell))
        rows.append(OperatorRow(feature.name, tuple(cells)))
    columns = tuple(
        DtypeColumn(
            table.columns[index].name,
            dtype,
            not number or places[number - 1][0] != index,
            *counts[index, dtype],
        )
        for number, (index, dtype) in enumerate(places)
    )
    return OperatorMatrix(columns, tuple(sorted(rows, key=lambda row: not row.fails)))


def _places(section: Section) -> list[tuple[int, str]]:
    """Every pair of a device's index and a dtype that anything was measured in."""
    found = {
        (index, _dtype(part.name))
        for feature in section.features
        for part in feature.parts
        for index, entry in enumerate(part.entries)
        if entry is not None
    }
    order = {name: place for place, name in enumerate(_ORDER)}
    return sorted(found, key=lambda each: (each[0], order.get(each[1], len(order)), each[1]))


def _members(feature: Feature) -> dict[tuple[int, str], Sequence[Entry]]:
    found: dict[tuple[int, str], list[Entry]] = {}
    for part in feature.parts:
        dtype = _dtype(part.name)
        for index, entry in enumerate(part.entries):
            if entry is not None:
                found.setdefault((index, dtype), []).append(entry)
    return {place: tuple(entries) for place, entries in found.items()}


def _dtype(part: str) -> str:
    return part.partition(" ")[2]


def _cell(cell: Cell) -> OperatorCell:
    if cell.worst is None:
        return _BLANK
    if not cell.said and cell.others and cell.others[0][0] not in {status.value for status in LOOKS}:
        return OperatorCell("z", NO_NUMBER)  # does not apply
    look = LOOKS[cell.worst]
    marked = bool(cell.marks) or 0 < cell.passed < cell.said
    return OperatorCell(look.letter, f"{look.code}*" if marked else look.code)
