"""A small drawing of one trend with its interval and its gaps, and its pass counts beneath, as inline SVG."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from markupsafe import Markup

from torchgauge.dashboard.arrow_columns import Bits, Floats

WIDTH, HEIGHT, BELOW = 320, 72, 20
"""Width of the drawing, height of the line's part and of the part of the pass counts."""

_TOP = 2


def trend_svg(parts: Sequence[tuple[Floats, Floats, Floats]], share: Floats, label: str) -> Markup:
    """The drawing: ``parts`` are median, low and high of consecutive epochs, whose lines are not joined.

    A point without an interval is not drawn. ``share`` is the share of cases that pass, NaN where nothing was
    heard. ``label`` says it all in words and is made of numbers and dates only.
    """
    median, low, high = (np.concatenate([part[i] for part in parts]) for i in range(3))
    there = np.isfinite(median) & np.isfinite(low) & np.isfinite(high)
    x = _places(len(median))
    pieces = [_gaps(~there, x)]
    if there.any():
        top, bottom = float(np.max(high[there])), float(np.min(low[there]))
        top, bottom = max(top, 1.0), min(bottom, 1.0)
        span = max(top - bottom, 1e-9)

        def y(values: Floats) -> list[int]:
            return _whole(_TOP + (HEIGHT - 2 * _TOP) * (top - values) / span)

        one = y(np.array([1.0]))[0]
        pieces.append(f'<path class="one" d="M0 {one}H{WIDTH}"/>')
        pieces += _line(_stretches(there, _borders(parts)), x, y(median), (y(low), y(high)))
    told = np.isfinite(share)
    if told.any():
        floor = HEIGHT + BELOW
        heights = _whole(floor - (BELOW - 2) * share)
        area = "".join(
            f"M{x[a]} {floor}" + "".join(f"L{x[i]} {heights[i]}" for i in range(a, b)) + f"V{floor}Z"
            for a, b in _stretches(told, ())
        )
        pieces.append(f'<path class="passed" d="{area}"/>')
    return Markup(  # noqa: S704  numbers and the label, which the caller makes of numbers and dates
        f'<svg class="trend" viewBox="0 0 {WIDTH} {HEIGHT + BELOW}" role="img" aria-label="{label}">'
        f"{''.join(pieces)}</svg>"
    )


def bare_count(parts: Sequence[tuple[Floats, Floats, Floats]]) -> int:
    """How many points have no interval, and so are not drawn."""
    return sum(
        int((np.isfinite(median) & ~(np.isfinite(low) & np.isfinite(high))).sum())
        for median, low, high in parts
    )


def gap_count(median: Floats) -> int:
    """How many snapshots between the first and the last point have none."""
    places = np.flatnonzero(np.isfinite(median))
    return int(places[-1] - places[0] + 1 - len(places)) if len(places) else 0


def _places(count: int) -> list[int]:
    return _whole(np.linspace(3, WIDTH - 3, count) if count > 1 else np.array([WIDTH / 2]))


def _whole(values: Floats) -> list[int]:
    """Rounded; 0 for NaN."""
    found: list[int] = np.rint(np.nan_to_num(values)).astype(int).tolist()
    return found


def _borders(parts: Sequence[tuple[Floats, Floats, Floats]]) -> tuple[int, ...]:
    return tuple(np.cumsum([len(part[0]) for part in parts])[:-1].tolist())


def _line(
    stretches: Sequence[tuple[int, int]],
    x: list[int],
    median: list[int],
    interval: tuple[list[int], list[int]],
) -> list[str]:
    low, high = interval
    line, band, dots = [], [], []
    for a, b in stretches:
        if b - a == 1:
            dots.append(f'<circle cx="{x[a]}" cy="{median[a]}" r="2"/>')
            dots.append(f'<path d="M{x[a]} {low[a]}V{high[a]}"/>')
            continue
        line.append("M" + " ".join(f"{x[i]} {median[i]}" for i in range(a, b)))
        there_and_back = [f"{x[i]} {high[i]}" for i in range(a, b)] + [
            f"{x[i]} {low[i]}" for i in range(b - 1, a - 1, -1)
        ]
        band.append("M" + " ".join(there_and_back) + "Z")
    return [f'<path class="band" d="{"".join(band)}"/>', f'<path d="{"".join(line)}"/>', *dots]


def _gaps(missing: Bits, x: list[int]) -> str:
    half = (x[1] - x[0]) / 2 if len(x) > 1 else WIDTH / 2
    return "".join(
        f'<rect class="gap" x="{max(0.0, x[a] - half):.0f}" y="0" '
        f'width="{min(float(WIDTH), x[b - 1] + half) - max(0.0, x[a] - half):.0f}" height="{HEIGHT}"/>'
        for a, b in _stretches(missing, ())
    )


def _stretches(there: npt.NDArray[np.bool_], borders: Sequence[int]) -> list[tuple[int, int]]:
    """Beginnings and ends of what is true without a break; ``borders`` break it too."""
    found: list[tuple[int, int]] = []
    start: int | None = None
    flags = there.tolist()
    for i, flag in enumerate([*flags, False]):
        if start is not None and (not flag or i in borders):
            found.append((start, i))
            start = None
        if flag and start is None:
            start = i
    return found
