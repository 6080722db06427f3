"""A cumulative curve in steps: each row begins where the one above it ends."""

from __future__ import annotations

from dataclasses import dataclass

from torchgauge.dashboard.pictures.axis import CountAxis
from torchgauge.dashboard.pictures.svg import CARD, NARROW, Drawing, Frame, Svg, number

MOST_STEPS = 20
"""Rows of a picture of free height; the table has all."""

_NAMES = {CARD: 380.0, NARROW: 140.0}


@dataclass(frozen=True)
class Step:
    """Operators to implement together after ``before`` models run; ``models`` are those that it brings.

    ``observed`` of them were seen to fail, ``predicted`` are not known yet.
    """

    operators: tuple[str, ...]
    before: int
    observed: int
    predicted: int
    models: tuple[str, ...]

    @property
    def after(self) -> int:
        """Models that run after it."""
        return self.before + self.observed + self.predicted


def draw_unblocking(
    steps: tuple[Step, ...], texts: tuple[str, str, str], frame: Frame, *, description: str
) -> Drawing:
    """The picture of ``steps``; ``texts`` are its title, its sentence and what stands at its foot."""
    svg = Svg(frame)
    title, says, footer = texts
    pad = 6.0 if frame is NARROW else 36.0 if frame is CARD else 14.0
    top = svg.heading(title, says, pad) + frame.line * 1.1
    x, side = pad, svg.frame.size * 0.85
    for css, text in (("pass", "seen to fail"), ("apart", "predicted")):
        svg.fill((x, top - side, side, side), css)
        svg.text(x + side * 1.5, top, text, "q small")
        x += side + svg.frame.size * (0.57 * len(text) + 1.3)
    top = top + frame.size * 0.6
    foot, row = frame.line * (3.4 if frame is NARROW else 2.6), round(frame.size * 1.55)
    most = int((frame.height - top - foot) / row) if frame.height else MOST_STEPS
    shown = steps[:most]
    left = pad + _NAMES.get(frame, 250.0)
    axis = CountAxis(steps[-1].after, left, frame.width - pad - frame.size * 2.6)
    bottom = frame.height - foot if frame.height else top + row * len(shown) + 4
    ticks = axis.ticks(max(2, int((axis.stop - axis.start) / (frame.size * 4))))
    svg.path("".join(f"M{number(axis.at(each))} {number(top)}V{number(bottom)}" for each in ticks), "grid")
    for each in ticks:
        svg.text(axis.at(each), bottom + frame.size * 1.15, str(each), "q m small")
    for place, step in enumerate(shown):
        _row(svg, step, axis, (pad, top + place * row, row))
    rest = f"; {len(steps) - len(shown)} more steps in the table" if len(steps) > len(shown) else ""
    svg.footer(f"{footer}{rest}", pad, bottom + frame.line * 2)
    return svg.document(bottom + foot + pad, title, description)


def _row(svg: Svg, step: Step, axis: CountAxis, at: tuple[float, float, float]) -> None:
    pad, y, row = at
    size, base = svg.frame.size, y + row / 2 + svg.frame.size * 0.36
    start, middle, end = (axis.at(n) for n in (step.before, step.before + step.observed, step.after))
    svg.group(f"{', '.join(step.operators)}: {step.observed} seen to fail, {step.predicted} predicted")
    svg.name((pad, base), ", ".join(step.operators), axis.start - pad - 8, "t")
    svg.fill((start, y + 2, middle - start, row - 4), "pass")
    svg.fill((middle, y + 2, end - middle, row - 4), "apart")
    svg.text(end + size * 0.4, base, str(step.after), "t small")
    svg.path(f"M{number(end)} {number(y + row - 2)}V{number(y + row + 2)}", "axis")
    svg.end()
