"""One metric on a model's page: a small drawing for each case, and the newest numbers as a table."""

from __future__ import annotations

import math
from collections.abc import Mapping

from torchgauge.counted import counted
from torchgauge.dashboard.history import MEDIAN, History
from torchgauge.dashboard.latest_results import Entry
from torchgauge.dashboard.pages import links
from torchgauge.dashboard.pages.case_section import number_parts
from torchgauge.dashboard.pages.html_text import repeated, shown
from torchgauge.dashboard.pages.noise import Movement
from torchgauge.dashboard.pages.number_text import (
    NO_NUMBER,
    change,
    digits,
    half_percent,
    rounded,
    scale_of,
    spread,
)
from torchgauge.dashboard.pages.sparkline import Sparklines
from torchgauge.dashboard.pages.whisker import whisker
from torchgauge.records import Metric, Modifier
from torchgauge.results import units

IN_TABLE = 8
"""Snapshots in the table behind the small multiples: the newest; the series files have all."""


class DrawnMetric:
    """One metric over the recent past, worked out once for all models."""

    def __init__(self, history: History, metric: Metric) -> None:
        """Of all cases of ``history``."""
        self.metric, self.scale = metric, scale_of(metric)
        self.lines = Sparklines(history, metric.name, metric.unit)
        values = history.values.get(metric.name)
        self._medians: list[list[float]] = (
            [[] for _ in history.cases]
            if values is None
            else (values[MEDIAN][:, -IN_TABLE:] / self.scale.factor).tolist()
        )
        self._doubted: list[list[bool]] = (~history.comparable(metric.name)[:, -IN_TABLE:]).tolist()

    def multiple(self, history: History, entry: Entry, moves: Mapping[str, Movement]) -> str:
        """One small drawing with what its newest number is and by how much it moved."""
        head = f'<li><a href="#{links.case_anchor(entry)}">{repeated(entry.column.name)}</a>'
        row, number = history.number_of(entry.newest["case_key"]), entry.numbers.get(self.metric.name)
        drawing = self._drawing(row) if row is not None and self.lines.numbers(row) > 1 else ""
        if number is None or number["median"] is None:
            why = number["absent"] if number else "not measured" if entry.fully_passed else entry.look.code
            return f'{head}{drawing}<p><span class="muted">no number: {repeated(why)}</span></p></li>'
        value, _ = number_parts(number["median"], number["low"], number["high"], number["unit"])
        if doubt := entry.doubt(self.metric.name):
            told = f'<span class="doubt">{shown(entry.told(number))}</span>'
            why = f'<span class="muted">{repeated(doubt)}: excluded from comparisons</span>'
            half = half_percent(number)
            interval = f"{spread(half)}{whisker(half)}" if doubt == Modifier.UNSTEADY else spread(half)
            return f"{head}{drawing}<p>{told} {interval} {why}</p></li>"
        moved = _moved(moves.get(entry.newest["case_key"]), self.metric.unit)
        share = entry.numbers.get("peak_share")
        if share is not None and share["median"] is not None:
            moved = f"{moved}</p><p>{units.quantity(share['median'], share['unit'])} of the peak"
        return f"{head}{drawing}<p><b>{value}</b> {spread(half_percent(number))} {moved}</p></li>"

    def _drawing(self, row: int) -> str:
        if self.lines.drawn(row):
            return str(self.lines.svg(row))
        numbers = counted(self.lines.numbers(row), "number")
        return f'<p class="muted">not drawn: {numbers}, none with an interval</p>'

    def table_row(self, history: History, entry: Entry) -> str:
        """The newest medians of ``entry`` as a row; those in doubt say their modifier."""
        row = history.number_of(entry.newest["case_key"])
        values = self._medians[row] if row is not None else []
        doubted = self._doubted[row] if row is not None else []
        start = len(history.snapshots) - len(doubted)
        cells = [
            _table_cell(value, history.apart(self.metric.name, row or 0, start + place) if doubt else "")
            for place, (value, doubt) in enumerate(zip(values, doubted, strict=False))
        ]
        missing = [_table_cell(math.nan, "")] * (min(IN_TABLE, len(history.snapshots)) - len(values))
        return f'<tr><th scope="row">{repeated(entry.column.name)}</th>{"".join(missing + cells)}</tr>'


def _moved(movement: Movement | None, unit: str) -> str:
    if movement is None:
        return '<span class="muted">no previous number</span>'
    half = movement.half_percent
    text = f"{change(movement.ratio, half, unit)}{f' {spread(half)}' if half is not None else ''}"
    factor = movement.factor
    if factor is None:
        return f'{text} <span class="muted">too little history for a threshold</span>'
    told = "over 100" if not math.isfinite(factor) or factor > 100 else f"{factor:.1f}"
    if factor <= 1:
        return f'{text} <span class="muted">within its noise</span>'
    return f"<b>{text}, {told}x its noise</b>"


def _table_cell(value: float, doubt: str) -> str:
    if not value > 0:
        return f'<td class="num">{NO_NUMBER}</td>'
    if not doubt:
        return f'<td class="num">{digits(value, None)}</td>'
    text = f"about {rounded(value)}" if doubt == Modifier.UNSTEADY else digits(value, None)
    return f'<td class="num doubt">{text} <small>{repeated(doubt)}</small></td>'
