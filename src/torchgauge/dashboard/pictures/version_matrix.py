"""A version matrix as a picture: a heat map of cases by versions, and under it the ratios as lines."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from torchgauge.counted import counted
from torchgauge.dashboard.pages.number_text import TIMES
from torchgauge.dashboard.pictures.axis import LogAxis
from torchgauge.dashboard.pictures.svg import WIDE, Drawing, Frame, Svg, number
from torchgauge.records.comparison import Verdict
from torchgauge.results import units
from torchgauge.results.matrix.table import Column, Entry, Row, Table, as_shown, labels_of

_SHADES = ((0.5, "deep"), (0.15, "middle"), (0.0, "faint"))
"""From which change, as a logarithm, a cell has which shade."""
_CHANGED = {Verdict.REGRESSION.value: "w", Verdict.IMPROVEMENT.value: "b"}
_NAMES = 0.34
"""Share of the width that names of cases take."""
_PAD = 8.0
_LINES_HEIGHT = 190.0


@dataclass(frozen=True)
class _Room:
    """Where things stand: the middle of each column, and its width, in pixels."""

    left: float
    width: float
    line: float

    def middle(self, at: int) -> float:
        return self.left + (at + 0.5) * self.width


def draw_matrix(table: Table, frame: Frame = WIDE) -> Drawing:
    """The picture of ``table``; what has no ratio stands there with its status."""
    svg, table = Svg(frame), as_shown(table)
    title = "Version against version"
    y = svg.heading(title, _says(table), _PAD) + frame.line * 1.6
    left = _PAD + _NAMES * frame.width
    room = _Room(left, (frame.width - _PAD - left) / max(1, len(table.columns)), frame.line)
    for at, column in enumerate(table.columns):
        svg.name((room.middle(at), y), column.label, room.width - 4, "t small k m")
    y += frame.line * 0.6
    labels, _ = labels_of(table.rows)
    for row, label in zip(table.rows, labels, strict=True):
        y = _heat_row(svg, room, (table.columns, row, label), y)
    y = _lines(svg, table, room, y + frame.line)
    torch = ", ".join(dict.fromkeys(column.torch for column in table.columns if column.torch))
    svg.footer(
        f"torch {torch}; {table.machine}; {units.day(table.created_at)}, torchgauge", _PAD, y + frame.line
    )
    return svg.document(y + frame.line * 3, title, _described(table, labels))


def _says(table: Table) -> str:
    ratios = sum(entry.ratio is not None for row in table.rows for entry in row.entries)
    return (
        f"Speed-up over {table.baseline}. Changed cells are coloured: blue is faster, red slower. "
        f"{counted(len(table.rows), 'case')}, {counted(ratios, 'ratio')}, "
        f"{counted(len(table.steps), 'change')}."
    )


def _heat_row(svg: Svg, room: _Room, what: tuple[Sequence[Column], Row, str], y: float) -> float:
    columns, row, label = what
    svg.name((_PAD, y + room.line * 0.72), label, room.left - 2 * _PAD, "t small")
    for at, (column, entry) in enumerate(zip(columns, row.entries, strict=True)):
        x = room.left + at * room.width
        text, css = _cell(column, entry)
        if css:
            svg.rect(x + 1, y, room.width - 2, room.line - 2, css)
        svg.name((room.middle(at), y + room.line * 0.72), text, room.width - 4, "t small m")
    return y + room.line


def _cell(column: Column, entry: Entry) -> tuple[str, str]:
    """The text of a cell and the class of its colour: none for what is not shown to have changed."""
    if entry.status != "pass":
        return entry.status, "f-lack"
    if column.baseline:
        return ("1" if entry.median is None else units.quantity(entry.median, "s")), "head"
    if entry.ratio is None:
        return "no ratio", "f-lack"
    text = f"{entry.ratio:#.3g}".rstrip(".") + TIMES
    if column.apart:
        return text, ""
    if entry.verdict == Verdict.UNDECIDED.value:
        return f"{text} ?", ""
    tone = _CHANGED.get(entry.verdict)
    if tone is None:
        return text, "head"
    size = abs(math.log(entry.ratio))
    return text, f"{tone} {next(shade for least, shade in _SHADES if size >= least)}"


def _lines(svg: Svg, table: Table, room: _Room, y: float) -> float:
    """A line of each case over the versions, and the geometric mean with its interval."""
    places = [at for at, column in enumerate(table.columns) if not column.apart]
    courses = [[(at, 1.0 if table.columns[at].baseline and row.entries[at].status == "pass"
                 else row.entries[at].ratio) for at in places] for row in table.rows]  # fmt: skip
    ratios = [ratio for course in courses for _, ratio in course if ratio]
    if not any(ratio != 1.0 for ratio in ratios):
        return y
    means_ends = [end for column in table.columns for end in (column.low, column.high) if end]
    axis = LogAxis.around(map(math.log, [*ratios, *means_ends]), y + _LINES_HEIGHT, y)
    right = room.left + room.width * len(table.columns)
    for tick in axis.ticks(6):
        height = axis.at(math.log(tick))
        svg.path(f"M{number(room.left)} {number(height)}H{number(right)}", "one" if tick == 1 else "grid")
        svg.text(room.left - 4, height + 4, f"{tick:g}{TIMES}", "q small e")
    for course in courses:
        svg.path(_course(course, axis, room), "su thin")
    means: list[tuple[int, float | None]] = []
    for at in places:
        column = table.columns[at]
        mean = 1.0 if column.baseline else column.mean
        means.append((at, mean))
        if column.low and column.high:
            ends = (axis.at(math.log(column.low)), axis.at(math.log(column.high)))
            svg.path(f"M{number(room.middle(at))} {number(ends[0])}V{number(ends[1])}", "axis")
        if mean:
            svg.dot(room.middle(at), axis.at(math.log(mean)), 4, "t")
    svg.path(_course(means, axis, room), "one")
    svg.text(_PAD, y + room.line, "each case (thin),", "q small")
    svg.text(_PAD, y + room.line * 2, "geometric mean (dots)", "q small")
    svg.text(_PAD, y + room.line * 3, "with its interval", "q small")
    return y + _LINES_HEIGHT + room.line * 0.5


def _course(course: Sequence[tuple[int, float | None]], axis: LogAxis, room: _Room) -> str:
    """The path of a line, which is broken where a version has no ratio."""
    parts, on = [], False
    for at, ratio in course:
        if not ratio:
            on = False
            continue
        parts.append(f"{'L' if on else 'M'}{number(room.middle(at))} {number(axis.at(math.log(ratio)))}")
        on = True
    return "".join(parts)


def _described(table: Table, labels: Sequence[str]) -> str:
    """The picture for those who do not see it."""
    parts = [_says(table)]
    for row, label in zip(table.rows, labels, strict=True):
        cells = (
            f"{column.label} {_cell(column, entry)[0]}"
            for column, entry in zip(table.columns, row.entries, strict=True)
        )
        parts.append(f"{label}: {', '.join(cells)}.")
    return " ".join(parts)
