"""A small line of one series with its interval as a band, on a scale of its own, as inline SVG."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import numpy.typing as npt
from markupsafe import Markup

from torchgauge.counted import counted
from torchgauge.dashboard.arrow_columns import Bits, Floats, Integers
from torchgauge.dashboard.history import HIGH, LOW, MEDIAN, REBUILT, History
from torchgauge.dashboard.pages.status_strip import SHOWN
from torchgauge.results import units

WIDTH, HEIGHT, MARGIN = 189, 36, 2
"""Size of the drawing inside of its margin."""


def _table(length: int) -> npt.NDArray[np.object_]:
    """Points as text, by snapshot and height."""
    places = [MARGIN + WIDTH * i // max(1, length - 1) for i in range(length)]
    points = [[f"{x} {MARGIN + y} " for y in range(HEIGHT + 1)] for x in places]
    return np.array(points, dtype=object).reshape(length, HEIGHT + 1)


class Sparklines:
    """The sparklines of one metric: places are worked out for all series at once, drawings on demand."""

    def __init__(self, history: History, metric: str, unit: str) -> None:
        """Of every case of ``history`` with a number of ``metric`` that counts, over the newest snapshots."""
        self._unit = unit
        values = history.numbers(metric)
        if values is None:
            values = np.full((3, *history.status.shape), np.nan)
        raw = history.values.get(metric, values)[MEDIAN, :, -SHOWN:]
        self._doubted: list[int] = (
            (np.isfinite(raw) & np.isnan(values[MEDIAN, :, -SHOWN:])).sum(axis=1).tolist()
        )
        median = values[MEDIAN][:, -SHOWN:]
        without = np.full_like(median, np.nan)
        low, high = (values[place][:, -SHOWN:] if len(values) > 1 else without for place in (LOW, HIGH))
        ends = low, high
        there = np.isfinite(median) & np.isfinite(low) & np.isfinite(high)
        self._bare: list[int] = (np.isfinite(median) & ~there).sum(axis=1).tolist()
        least, most = np.minimum.reduce((median, *ends)), np.maximum.reduce((median, *ends))
        lowest = np.where(there, least, np.inf).min(axis=1, initial=np.inf)
        highest = np.where(there, most, -np.inf).max(axis=1, initial=-np.inf)
        self._length = median.shape[1]
        self._counts: list[int] = there.sum(axis=1).tolist()
        self._range: list[list[float]] = np.stack([lowest, highest], axis=1).tolist()
        self._rebuilt = history.mark(REBUILT)[:, -SHOWN:]
        self._stretches = _stretches(there, self._rebuilt)
        heights = [_heights(array, there, lowest, highest) for array in (median, *ends)]
        table, snapshots = _table(self._length), np.arange(self._length)
        self._points, self._below, self._above = (table[snapshots, height].tolist() for height in heights)

    def numbers(self, row: int) -> int:
        """How many numbers the series in ``row`` has."""
        return self._counts[row] + self._bare[row]

    def drawn(self, row: int) -> int:
        """How many of them have an interval: without one a number is not drawn."""
        return self._counts[row]

    def svg(self, row: int) -> Markup:
        """The drawing of the series in ``row``, which has a number to draw; a missing one breaks the line."""
        points, above, below = self._points[row], self._above[row], self._below[row]
        line, band, dots = "", "", []
        for start, stop in self._stretches[row]:
            if stop - start == 1:
                dots.append(start)
                line += f"M{above[start]}{below[start]}"
            else:
                line += "M" + "".join(points[start:stop])
                band += "M" + "".join(above[start:stop]) + "".join(below[start:stop][::-1]) + "Z"
        last = self._stretches[row][-1][1] - 1
        if last not in dots:
            dots.append(last)
        centres = [points[i].split() for i in dots]
        circles = "".join([f'<circle cx="{x}" cy="{y}" r="2"/>' for x, y in centres])
        drawn = f'<path class="band" d="{band}"/>' if band else ""
        begins = "".join(
            f"M{MARGIN + WIDTH * i // max(1, self._length - 1)} 0V{HEIGHT + 2 * MARGIN}"
            for i in np.flatnonzero(self._rebuilt[row]).tolist()
        )
        drawn += f'<path class="rebuilt" d="{begins}"/>' if begins else ""
        width, height = WIDTH + 2 * MARGIN, HEIGHT + 2 * MARGIN
        return Markup(  # noqa: S704
            f'<svg class="spark" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" '
            f'aria-label="{self._label(row)}">'
            f'{drawn}<path d="{line}"/>{circles}</svg>'
        )

    def _label(self, row: int) -> str:
        low, high = (units.quantity(end, self._unit) for end in self._range[row])
        count, length = self._counts[row], self._length
        doubted = self._doubted[row]
        bare = self._bare[row]
        missing = length - count - doubted - bare
        gaps = f"; no number in {missing} of {length} snapshots" if missing else ""
        apart = f"; {doubted} in doubt left out" if doubted else ""
        single = f"; {bare} without an interval not drawn" if bare else ""
        rebuilt = int(self._rebuilt[row].sum())
        models = f"; the model changed {counted(rebuilt, 'time')}, at each dashed line" if rebuilt else ""
        return f"{count} numbers between {low} and {high}{gaps}{apart}{single}{models}"


def _heights(array: Floats, there: Bits, lowest: Floats, highest: Floats) -> Integers:
    """Heights from 0 at the highest value to ``HEIGHT`` at the lowest; 0 where there is no number."""
    flat = ~(highest > lowest)
    top = np.where(flat, 0.0, highest)
    with np.errstate(over="ignore", invalid="ignore"):  # a store may hold any double
        span = np.where(flat, 1.0, highest - np.where(flat, 0.0, lowest))
        found = HEIGHT * ((top[:, None] - np.where(there, array, 0.0)) / span[:, None])
    found = np.where(flat[:, None], HEIGHT / 2, found)
    return np.where(there & np.isfinite(found), np.rint(found), 0).astype(np.int64)


def _stretches(there: Bits, begins: Bits) -> list[list[tuple[int, int]]]:
    """Of every row the beginnings and ends of what is true without a break; ``begins`` are breaks, too."""
    closed = np.zeros((there.shape[0], there.shape[1] + 2), np.int8)
    closed[:, 1:-1] = there
    rows, edges = np.nonzero(np.diff(closed, axis=1))
    found: list[list[tuple[int, int]]] = [[] for _ in range(len(there))]
    for row, start, stop in zip(rows[::2].tolist(), edges[::2].tolist(), edges[1::2].tolist(), strict=True):
        cuts = [start, *(start + 1 + np.flatnonzero(begins[row, start + 1 : stop])).tolist(), stop]
        found[row] += pairwise(cuts)
    return found
