"""A small line of pass counts over the snapshots, as an SVG path; a snapshot without results breaks it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torchgauge.counted import counted

WIDTH, HEIGHT = 240, 36
_MARGIN = 3


@dataclass(frozen=True)
class PassLine:
    """A line in words and as SVG: ``dots`` are points without a neighbour, and the newest point."""

    path: str
    dots: tuple[tuple[str, str], ...]
    label: str
    width: int = WIDTH
    height: int = HEIGHT


def pass_line(counts: Sequence[int | None], planned: Sequence[int], dates: Sequence[str]) -> PassLine | None:
    """The line of ``counts``, oldest first, from 0 to the largest plan; None for fewer than two."""
    known = [i for i, count in enumerate(counts) if count is not None]
    if len(known) < 2:
        return None
    top = max([1, *(planned[i] for i in known)])
    step = (WIDTH - 2 * _MARGIN) / max(1, len(counts) - 1)
    points = [
        None
        if count is None
        else (_MARGIN + i * step, HEIGHT - _MARGIN - (HEIGHT - 2 * _MARGIN) * count / top)
        for i, count in enumerate(counts)
    ]
    path, dots, drawing = [], [], False
    for i, point in enumerate(points):
        if point is None:
            drawing = False
            continue
        x, y = (f"{value:.1f}" for value in point)
        path.append(f"{'L' if drawing else 'M'}{x} {y}")
        alone = not drawing and (i + 1 == len(points) or points[i + 1] is None)
        if alone or i == known[-1]:
            dots.append((x, y))
        drawing = True
    gaps = known[-1] - known[0] + 1 - len(known)
    label = (
        f"passes from {dates[known[0]]} to {dates[known[-1]]}: first {counts[known[0]]}, "
        f"least {min(c for c in counts if c is not None)}, most {max(c for c in counts if c is not None)}, "
        f"last {counts[known[-1]]} of {planned[known[-1]]}"
    )
    if gaps:
        label += f"; {counted(gaps, 'snapshot')} without a result"
    return PassLine("".join(path), tuple(dots), label)
