"""Stacked columns over the snapshots, with the releases of torch marked and what was lost hatched."""

from __future__ import annotations

from collections.abc import Sequence

from torchgauge.dashboard.pictures.axis import CountAxis
from torchgauge.dashboard.pictures.course import Course
from torchgauge.dashboard.pictures.svg import NARROW, WIDTH_OF_CHARACTER, Drawing, Frame, Svg, number

_PLOT = {NARROW: 190.0}
_HEIGHT = 260.0
_PAD = 14.0
_WIDEST = 90.0
"""Of a column, in pixels."""


def draw_coverage(course: Course, texts: tuple[str, str, str], frame: Frame, *, description: str) -> Drawing:
    """The picture of ``course``; ``texts`` are its title, its sentence and what stands at its foot."""
    svg = Svg(frame)
    title, says, footer = texts
    pad = _PAD if frame is not NARROW else 6.0
    y = svg.heading(title, says, pad)
    y = _legend(svg, course, pad, y + frame.line * 1.1)
    y += frame.line * 1.4
    foot = frame.line * (3.4 if frame is NARROW else 2.6)
    height = frame.height - y - foot if frame.height else _PLOT.get(frame, _HEIGHT)
    most = max(course.planned, default=0)
    gutter = frame.size * (0.62 * len(str(most)) + 1)
    axis = CountAxis(most, y + height, y)
    ends = (pad + gutter, frame.width - pad)
    ticks = axis.ticks(5)
    lines = "".join(f"M{number(ends[0])} {number(axis.at(each))}H{number(ends[1])}" for each in ticks)
    svg.path(lines, "grid")
    for each in ticks:
        svg.text(
            ends[0] - svg.frame.size * 0.4, axis.at(each) + svg.frame.size * 0.32, str(each), "q e small"
        )
    svg.text(pad, axis.stop - svg.frame.size * 0.75, "planned cases", "q small")
    _columns(svg, course, axis, ends)
    _releases(svg, course, axis, ends)
    _dates(svg, course, ends, y + height + frame.size * 1.2)
    svg.footer(footer, pad, y + height + frame.line * 2.1)
    return svg.document(y + height + foot + pad, title, description)


def _legend(svg: Svg, course: Course, pad: float, y: float) -> float:
    """A square and the words of every layer, in as many lines as they take; returns the last line's base."""
    frame, x = svg.frame, pad
    side = frame.size * 0.85
    entries = [(layer.css, layer.text) for layer in course.layers]
    for css, text in entries:
        width = side + frame.size * (WIDTH_OF_CHARACTER * len(text) + 1.3)
        if x > pad and x + width > frame.width - pad:
            x, y = pad, y + frame.line
        svg.fill((x, y - side, side, side), css)
        svg.text(x + side + frame.size * 0.4, y, text, "q small")
        x += width
    return y


def _columns(svg: Svg, course: Course, axis: CountAxis, ends: tuple[float, float]) -> None:
    """One path per layer: a hundred columns of seven layers are seven elements."""
    n = len(course.snapshots)
    step = (ends[1] - ends[0]) / n
    width = min(_WIDEST, step * 0.86) if step > 4 else step
    base = [0] * n
    for layer in course.layers:
        d = ""
        for place, count in enumerate(layer.counts):
            if count:
                bottom, top = axis.at(base[place]), axis.at(base[place] + count)
                x = number(ends[0] + place * step + (step - width) / 2)
                d += f"M{x} {number(bottom)}V{number(top)}h{number(width)}V{number(bottom)}z"
                base[place] += count
        svg.path(d, f"f-{layer.css}")
        if layer.css == "infra":
            svg.hatched(d)


def _releases(svg: Svg, course: Course, axis: CountAxis, ends: tuple[float, float]) -> None:
    """A dashed line at the first column of each; names that would run into one another are left out."""
    step = (ends[1] - ends[0]) / len(course.snapshots)
    free = 0.0
    for place, name in course.releases:
        x = ends[0] + place * step
        svg.path(f"M{number(x)} {number(axis.stop - svg.frame.size)}V{number(axis.start)}", "mark")
        text = f"torch {name}"
        width = svg.frame.size * WIDTH_OF_CHARACTER * len(text) * 0.9
        start = min(x + 4, ends[1] - width)
        if start >= free and start > ends[0] + svg.frame.size * 7:
            svg.text(start, axis.stop - svg.frame.size * 0.35, text, "t small")
            free = start + width + svg.frame.size


def _dates(svg: Svg, course: Course, ends: tuple[float, float], y: float) -> None:
    """The first date, the last one, and some between where they have room."""
    n, size = len(course.snapshots), svg.frame.size
    step = (ends[1] - ends[0]) / n
    most = max(2, int((ends[1] - ends[0]) / (size * 8.5)))
    for i, place in enumerate(places := _spread(n, most)):
        css = "q small" + (" e" if i + 1 == len(places) and n > 2 else " m" if i and n > 2 else "")
        x = ends[0] + (place + 0.5) * step if i and i + 1 < len(places) else ends[0] if not i else ends[1]
        if n <= 2:
            x, css = ends[0] + (place + 0.5) * step, "q small m"
        svg.text(x, y, course.snapshots[place].date, css)


def _spread(n: int, most: int) -> Sequence[int]:
    """At most ``most`` places of ``n``, the first and the last among them."""
    count = min(n, most)
    return [0] if count < 2 else sorted({round(i * (n - 1) / (count - 1)) for i in range(count)})
