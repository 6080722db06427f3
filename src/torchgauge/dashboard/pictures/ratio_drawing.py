"""Sorted horizontal ratios on a log axis with their intervals, the line of 1, and what failed at the edge."""

from __future__ import annotations

import math
from dataclasses import dataclass

from torchgauge.dashboard.pages.number_text import TIMES
from torchgauge.dashboard.pictures.axis import LogAxis
from torchgauge.dashboard.pictures.ratios import Edge, Lack, Ratio, RatioChart, RatioGroup, Tone, why_lacking
from torchgauge.dashboard.pictures.svg import CARD, NARROW, Drawing, Frame, Svg, number

MOST_LACKS = 24
"""Names without a ratio that a picture of free height writes; the table has them all."""

_DENSE_HEIGHT, _DENSE_STEP = 360.0, 4.0
"""Of the ratios whose names are not written: at most, together and each, in pixels."""

_MOST_GROUPS = 8
"""Groups that have room in a frame of fixed height."""

_NAMES = {CARD: 360.0, NARROW: 158.0}
_VALUES = {CARD: 110.0, NARROW: 50.0}
_ALL_NAMED = 40
"""Ratios up to which a picture of free height writes every name."""

_PAD = {CARD: 36.0, NARROW: 6.0}


@dataclass(frozen=True)
class _Room:
    """Where things stand: the plot reaches from ``left`` to ``right``; ``css`` is that of names."""

    left: float
    right: float
    pad: float
    row: float
    ends: int
    css: str


def draw_ratios(chart: RatioChart, frame: Frame, *, description: str) -> Drawing:
    """The picture of ``chart`` in ``frame``."""
    svg = Svg(frame)
    pad = _PAD.get(frame, 14.0)
    names = _NAMES.get(frame, 250.0)
    left, right = names + pad, frame.width - _VALUES.get(frame, 152.0) - pad
    room = _Room(left, right, pad, round(frame.size * 1.4), chart.ends, "t small" if frame is NARROW else "t")
    y = _head(svg, chart, room)
    axis = _axis_of(chart, frame, room)
    top = y
    foot = frame.line * (3.4 if frame is NARROW else 2.6)
    heights = _heights(chart, frame, (frame.height - foot - y) if frame.height else 0, room)
    marks = Svg(frame)
    for group, height in zip(chart.groups[: len(heights)], heights, strict=True):
        y = _group(marks, chart, group, (axis, room, y, height))
    if frame.height:
        y = frame.height - foot
    _axis(svg, axis, (top, y))
    svg.parts += marks.parts
    svg.footer(chart.footer, room.pad, y + frame.line * 2)
    return svg.document(y + foot + room.pad, chart.title, description)


def _axis_of(chart: RatioChart, frame: Frame, room: _Room) -> LogAxis:
    """The axis between what stands at its edges, where something does."""
    codes: dict[Edge, int] = {}
    for each in (
        lack for group in chart.groups for lack in group.lacks if not (frame.height or chart.lacks_in_words)
    ):
        codes[each.edge] = max(codes.get(each.edge, 0), len(each.code))
    start, stop = (
        _chip_width(frame, codes[edge]) if edge in codes else 0 for edge in (Edge.LEFT, Edge.RIGHT)
    )
    logs = [math.log(end) for group in chart.groups for each in group.ratios for end in (each.low, each.high)]
    if start + stop > (room.right - room.left) / 2:  # on a phone: they stand in rows of their own anyway
        start = stop = 0
    return LogAxis.around(logs, room.left + 4 + start, room.right - 4 - stop)


def _head(svg: Svg, chart: RatioChart, room: _Room) -> float:
    """Title, sentence and what the directions mean; returns where the plot begins."""
    frame = svg.frame
    y = svg.heading(chart.title, chart.says, room.pad)
    y += frame.line * 1.3
    half = (room.right - room.left) / 2
    if frame is NARROW:
        svg.name((room.pad, y), f"← {chart.worse}", svg.frame.width / 2, "q small")
        svg.name((svg.frame.width - room.pad, y), f"{chart.better} →", svg.frame.width / 2, "q small e")
    else:
        svg.name((room.left, y), f"← {chart.worse}", half, "q small")
        svg.name((room.right, y), f"{chart.better} →", half, "q small e")
    return y + frame.size * 0.5


def _heights(chart: RatioChart, frame: Frame, budget: float, room: _Room) -> list[float]:
    """The height of the ratios of every group; those of a frame of fixed height share ``budget``."""
    if not frame.height:
        return [_natural(len(group.ratios), room) for group in chart.groups]
    groups = chart.groups[:_MOST_GROUPS]
    fixed = sum(
        frame.line * bool(group.lacks and not group.caption) + room.row * bool(group.mean or group.caption)
        for group in groups
    )
    wanted = [len(group.ratios) * room.row for group in groups]
    left, whole = max(0.0, budget - fixed - 6 * len(wanted)), sum(wanted)
    return [each * min(1.0, left / whole) if whole else 0.0 for each in wanted]


def _natural(n: int, room: _Room) -> float:
    if n <= max(_ALL_NAMED if room.ends == RatioChart.ends else 0, 2 * room.ends + 2):
        return n * room.row
    return 2 * room.ends * room.row + min(_DENSE_HEIGHT, _DENSE_STEP * (n - 2 * room.ends))


def _group(svg: Svg, chart: RatioChart, group: RatioGroup, at: tuple[LogAxis, _Room, float, float]) -> float:
    """One group from ``y`` on; returns where it ends."""
    axis, room, y, height = at
    frame = svg.frame
    if group.caption and not frame.height:
        y += frame.line * 1.25
        svg.name((room.pad, y - frame.size * 0.35), group.caption, frame.width - 2 * room.pad, "t k")
    y += 6
    if group.mean is not None or (group.caption and frame.height):
        _mean(svg, chart, group, (axis, room, y + room.row / 2))
        y += room.row
    places, named = _places(len(group.ratios), y, height, room)
    whiskers = dict.fromkeys(Tone, "")
    for each, place in zip(group.ratios, places, strict=True):
        left, right = (number(axis.at(math.log(end))) for end in (each.low, each.high))
        whiskers[each.tone] += f"M{left} {number(place)}H{right}"
    thin = " thin" if named < len(places) else ""
    for tone, d in whiskers.items():
        svg.path(d, f"s{tone.value}{thin}")
    dots = dict.fromkeys(Tone, "")
    for i, (each, place) in enumerate(zip(group.ratios, places, strict=True)):
        if i < (named + 1) // 2 or i >= len(places) - named // 2:
            _named(svg, chart, each, (axis, room, place))
        else:
            dots[each.tone] += f"M{number(axis.at(math.log(each.ratio)))} {number(place)}h0"
    for tone, d in dots.items():
        svg.path(d, f"s{tone.value} point")
    y += height
    return _lacks(svg, group, chart, room, y)


def _places(n: int, y: float, height: float, room: _Room) -> tuple[list[float], int]:
    """The height of every ratio, and how many have their name: at the ends, as many as there is room for."""
    if not n:
        return [], 0
    if n * room.row <= height + 0.5:
        return [y + room.row * (i + 0.5) for i in range(n)], n
    ends = min(room.ends, int(0.8 * height / (2 * room.row)))
    step = (height - 2 * ends * room.row) / (n - 2 * ends)
    close = y + ends * room.row
    places = [y + room.row * (i + 0.5) for i in range(ends)]
    places += [close + step * (i + 0.5) for i in range(n - 2 * ends)]
    below = close + step * (n - 2 * ends)
    return [*places, *(below + room.row * (i + 0.5) for i in range(ends))], 2 * ends


def _named(svg: Svg, chart: RatioChart, each: Ratio, at: tuple[LogAxis, _Room, float]) -> None:
    axis, room, place = at
    size = svg.frame.size
    base = place + size * 0.36
    interval = chart.interval(each.low, each.high)
    beside = f", {each.beside}" if each.beside else ""
    svg.group(f"{each.name}: {chart.text(each.ratio)} {interval}{beside}")
    svg.name((room.pad, base), each.label or each.name, room.left - room.pad - 8, room.css)
    svg.dot(
        axis.at(math.log(each.ratio)),
        place,
        size * 0.27,
        each.tone.value if each.sure else f"page s{each.tone.value}",
    )
    tone = each.tone.value if each.tone is not Tone.OPEN else "q"
    _value(svg, chart, (each.ratio, each.low, each.high), room, (base, tone))
    svg.end()


def _mean(svg: Svg, chart: RatioChart, group: RatioGroup, at: tuple[LogAxis, _Room, float]) -> None:
    """A diamond as wide as the interval, as in a forest plot."""
    axis, room, y = at
    size = svg.frame.size
    name = "mean" if svg.frame is NARROW else "geometric mean"
    name = group.caption if group.caption and svg.frame.height else name
    of = f"{name} of {len(group.ratios)}" if name != group.caption else f"{name}, {len(group.ratios)}"
    svg.name((room.pad, y + size * 0.36), of, room.left - room.pad - 8, "t k")
    if group.mean is None:
        return
    mean, *ends = group.mean
    middle, low, high = (axis.at(math.log(each)) for each in (mean, *ends))
    low, high, tall = min(low, middle - size * 0.3), max(high, middle + size * 0.3), size * 0.42
    x = [number(each) for each in (low, middle, high)]
    up, base, down = (number(each) for each in (y - tall, y, y + tall))
    svg.path(f"M{x[0]} {base}L{x[1]} {up}L{x[2]} {base}L{x[1]} {down}Z", "t")
    _value(svg, chart, (mean, ends[0], ends[1]), room, (y + size * 0.36, "t k"))


def _value(
    svg: Svg, chart: RatioChart, ratio: tuple[float, float, float], room: _Room, at: tuple[float, str]
) -> None:
    """A ratio as text at the right, with its interval where there is room."""
    text = chart.text(ratio[0])
    if svg.frame not in (CARD, NARROW):
        text = f"{text} {chart.interval(*ratio[1:])}"
    width = svg.frame.width
    svg.name((width - room.pad, at[0]), text, width - room.right - room.pad - 4, f"{at[1]} e small")


def _lacks(svg: Svg, group: RatioGroup, chart: RatioChart, room: _Room, y: float) -> float:
    """What has no ratio: at the edge of the side that lacks a number, in words where there is no room."""
    if not group.lacks:
        return y
    frame = svg.frame
    width = frame.width - 2 * room.pad
    if frame.height and group.caption:
        return y
    if frame.height or chart.lacks_in_words:
        told = f"{len(group.lacks)} without a ratio: {group.lacking}"
        svg.rect(room.pad, y + 1, width, frame.line, "page")
        svg.name((room.pad, y + frame.size * 1.2), told, width, "q")
        return y + frame.line
    shown = [each for each in group.lacks if each.edge is not Edge.NOWHERE][:MOST_LACKS]
    if shown:
        y += frame.line * 1.2
        base, half = y - frame.size * 0.4, (room.right - room.left) * 0.7
        edges = {each.edge for each in shown}
        if Edge.LEFT in edges:
            svg.name((room.left, base), f"not on {chart.columns[-1]}", half, "q small")
        if Edge.RIGHT in edges:
            svg.name((room.right, base), f"not on {chart.columns[1]}", half, "q small e")
    for each in shown:
        svg.group(f"{each.name}: {each.code}")
        at = room.pad, y + room.row * 0.5 + frame.size * 0.36
        svg.name(at, each.label or each.name, room.left - room.pad - 8, room.css)
        svg.end()
        _chip(svg, each, room, y)
        y += room.row
    if len(group.lacks) > len(shown):
        y += room.row
        rest = [each for each in group.lacks if each not in shown]
        told = f"{len(rest)} {'more ' if shown else ''}without a ratio: {why_lacking(rest)}"
        svg.name((room.pad, y - room.row * 0.5 + frame.size * 0.36), told, width, "q")
    return y


def _chip_width(frame: Frame, characters: int) -> float:
    return frame.size * (0.56 * characters + 0.9)


def _chip(svg: Svg, lack: Lack, room: _Room, y: float) -> None:
    width = _chip_width(svg.frame, len(lack.code))
    x = room.left if lack.edge is Edge.LEFT else room.right - width
    svg.rect(x, y + 1.5, width, room.row - 3, f"f-{'lack' if lack.css == 'infra' else lack.css}")
    svg.text(x + width / 2, y + room.row * 0.5 + svg.frame.size * 0.3, lack.code, f"i-{lack.css} m small")


def _axis(svg: Svg, axis: LogAxis, ends: tuple[float, float]) -> None:
    top, bottom = ends
    frame = svg.frame
    ticks = axis.ticks(max(3, int((axis.stop - axis.start) / (frame.size * 4.6))))
    grid = "".join(f"M{number(axis.at(math.log(each)))} {number(top)}V{number(bottom)}" for each in ticks)
    svg.path(grid, "grid")
    one = number(axis.at(0.0))
    svg.path(f"M{one} {number(top)}V{number(bottom)}", "one")
    svg.path(f"M{number(axis.start - 4)} {number(bottom)}H{number(axis.stop + 4)}", "axis")
    for each in ticks:
        svg.text(axis.at(math.log(each)), bottom + frame.size * 1.15, f"{each:g}{TIMES}", "q m small")
