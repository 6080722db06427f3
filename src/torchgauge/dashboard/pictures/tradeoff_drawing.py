"""Speed by bytes on log axes, with the quality beside the names of what nothing else beats."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from torchgauge.dashboard.pages.number_text import TIMES
from torchgauge.dashboard.pictures.axis import LogAxis, series_of
from torchgauge.dashboard.pictures.svg import CARD, NARROW, Drawing, Frame, Svg, number
from torchgauge.results import units

_PAD = {CARD: 36.0, NARROW: 6.0}
_HEIGHTS = {NARROW: 300.0}
_PLOT = 400.0
"""The height of a plot in a frame that has none of its own."""
MARGIN = 0.08
"""Room at both ends of the axis of bytes, as a share of it."""


@dataclass(frozen=True)
class Point:
    """One configuration: bytes of the model, speed over the compiled one, dB; hollow if not ``sure``."""

    name: str
    size: float
    speed: float
    quality: float
    sure: bool

    def beats(self, other: Point) -> bool:
        """Whether it is no worse in any of the three, and better in one."""
        mine, theirs = (-self.size, self.speed, self.quality), (-other.size, other.speed, other.quality)
        return mine != theirs and all(ours >= its for ours, its in zip(mine, theirs, strict=True))


@dataclass(frozen=True)
class Tradeoff:
    """What is drawn: ``front`` are those of ``points`` that stand out; ``base``: bytes, compiled."""

    title: str
    says: str
    points: tuple[Point, ...]
    front: tuple[Point, ...]
    footer: str
    base: float | None = None


def draw_tradeoff(chart: Tradeoff, frame: Frame, *, description: str) -> Drawing:
    """The picture of ``chart`` in ``frame``."""
    svg = Svg(frame)
    pad = _PAD.get(frame, 14.0)
    top = svg.heading(chart.title, chart.says, pad) + frame.line * 2
    foot = frame.line * 4.4
    bottom = frame.height - foot if frame.height else top + _HEIGHTS.get(frame, _PLOT)
    sizes = [each.size for each in chart.points] + ([chart.base] if chart.base else [])
    across = _axis_of_bytes(sizes, pad + frame.size * 3.2, frame.width - pad)
    up = LogAxis.around((math.log(each.speed) for each in chart.points), bottom - 4, top + 4)
    _axes(svg, across, up)
    for each in sorted(chart.points, key=lambda point: point in chart.front):
        _dot(svg, each, (across.at(math.log(each.size)), up.at(math.log(each.speed))), each in chart.front)
    if chart.base:
        at = across.at(math.log(chart.base)), up.at(0.0)
        svg.rect(at[0] - 4, at[1] - 4, 8, 8, "t")
        svg.name((at[0], at[1] - frame.size * 0.8), "compiled", frame.size * 8, "t small e")
    _names(svg, chart.front, across, up)
    svg.text(pad, top - frame.line * 0.7, "↑ faster than the compiled model", "q small")
    svg.text(frame.width - pad, bottom + frame.line * 2.1, "larger model →", "q small e")
    svg.footer(chart.footer, pad, bottom + frame.line * 3.2)
    return svg.document(bottom + foot, chart.title, description)


def _axis_of_bytes(sizes: Sequence[float], start: float, stop: float) -> LogAxis:
    low, high = math.log(min(sizes)), math.log(max(sizes))
    margin = max(0.15, MARGIN * (high - low))
    return LogAxis(low - margin, high + margin, start, stop)


def _axes(svg: Svg, across: LogAxis, up: LogAxis) -> None:
    frame, left, right = svg.frame, across.start, across.stop
    bottom, top = up.start + 4, up.stop - 4
    sizes = _sizes(across, max(3, int((right - left) / (frame.size * 6))))
    speeds = up.ticks(max(3, int((bottom - top) / (frame.size * 2.4))))
    grid = [f"M{number(across.at(math.log(each)))} {number(top)}V{number(bottom)}" for each in sizes]
    grid += [f"M{number(left)} {number(up.at(math.log(each)))}H{number(right)}" for each in speeds]
    svg.path("".join(grid), "grid")
    svg.path(f"M{number(left)} {number(up.at(0.0))}H{number(right)}", "one")
    svg.path(f"M{number(left)} {number(top)}V{number(bottom)}H{number(right)}", "axis")
    for each in sizes:
        svg.text(across.at(math.log(each)), bottom + frame.size * 1.2, units.quantity(each, "B"), "q m small")
    for each in speeds:
        svg.text(
            left - frame.size * 0.4, up.at(math.log(each)) + frame.size * 0.3, f"{each:g}{TIMES}", "q e small"
        )


def _sizes(axis: LogAxis, most: int) -> list[float]:
    """At most ``most`` numbers of bytes, round in their unit; the middle of an axis that has none."""
    unit = math.log(1024) * int(axis.low / math.log(1024))
    for step in (1.0, 2.0, 3.0):
        found = series_of(axis.low - unit, axis.high - unit, step)
        if 0 < len(found) <= most:
            return [each * math.exp(unit) for each in found]
    return [math.exp((axis.low + axis.high) / 2)]


def _dot(svg: Svg, point: Point, at: tuple[float, float], stands_out: bool) -> None:
    size = units.quantity(point.size, "B")
    doubt = "" if point.sure else ", in doubt"
    svg.group(f"{point.name}: {point.speed:.2f}{TIMES}, {size}, {point.quality:.1f} dB{doubt}")
    svg.dot(*at, svg.frame.size * 0.36, "b" if stands_out else "u" if point.sure else "page su")
    svg.end()


def _names(svg: Svg, points: Sequence[Point], across: LogAxis, up: LogAxis) -> None:
    """The name and the quality beside each point that has room for them; others have their title."""
    frame, taken = svg.frame, list[tuple[float, float, float]]()
    middle = (across.start + across.stop) / 2
    for each in sorted(points, key=lambda point: -point.speed):
        x, y = across.at(math.log(each.size)), up.at(math.log(each.speed)) + frame.size * 0.3
        left = x > middle
        room = (x - across.start if left else across.stop - x) - frame.size
        ends = (x - room, x) if left else (x, x + room)
        near = [(low, high) for other, low, high in taken if abs(y - other) < frame.line]
        if any(ends[0] < high and low < ends[1] for low, high in near):
            continue
        taken.append((y, *ends))
        at = (x - frame.size * 0.7 if left else x + frame.size * 0.7), y
        svg.name(at, f"{each.name} {each.quality:.0f} dB", room, "t small e" if left else "t small")
