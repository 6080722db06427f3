"""Is it getting better? Geometric means and pass counts over time, per device and configuration."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from markupsafe import Markup

from torchgauge.counted import counted
from torchgauge.dashboard import trend_lines
from torchgauge.dashboard.arrow_columns import Integers
from torchgauge.dashboard.context import SiteContext
from torchgauge.dashboard.history import History
from torchgauge.dashboard.names import device_id
from torchgauge.dashboard.pages.trend_panel import bare_count, gap_count, trend_svg
from torchgauge.dashboard.snapshots import Snapshot
from torchgauge.dashboard.trend_lines import CORE, EXTRA, MeanLine, TrendLine
from torchgauge.records import Better, Metric, left_out
from torchgauge.results.gain import gain_parts


@dataclass(frozen=True)
class Panel:
    """One device and configuration; texts are empty where there is no number."""

    device: str
    device_id: str
    configuration: str
    svg: Markup
    newest: str
    interval: str
    since: str
    at: str
    n: int
    cases: int
    left_out: str
    gaps: int
    bare: int
    passed: str
    cells: tuple[str, ...]


@dataclass(frozen=True)
class Section:
    """All that is drawn of one metric without scripts."""

    metric: Metric
    panels: tuple[Panel, ...]


@dataclass(frozen=True)
class TrendsPage:
    """The page without scripts: a section for each metric that the scenarios measure for."""

    sections: tuple[Section, ...]
    snapshots: tuple[Snapshot, ...]
    epochs: int
    metrics: tuple[str, ...]


def build(context: SiteContext) -> Iterator[tuple[str, bytes]]:
    """The page."""
    page = context.renderer.page("trends", "trends.html", page=trends_page(context))
    yield "trends.html", page.encode()


def trends_page(context: SiteContext) -> TrendsPage:
    """The page of the recent epochs."""
    recent, primaries = context.recent, context.primaries
    names = tuple(metric.name for metric in primaries)
    parts = [trend_lines.trend_lines(part, names, suites=False) for part in _epochs(recent)]
    found: dict[tuple[str, str], list[TrendLine | None]] = {}
    for place, lines in enumerate(parts):
        for line in lines:
            if line.planned.any():
                known = found.setdefault((line.device, line.configuration), [None] * len(parts))
                known[place] = line
    lengths = [len(part.snapshots) for part in _epochs(recent)]
    sections = [
        Section(
            metric,
            tuple(
                _panel(metric, name, lines, lengths, recent.snapshots)
                for name, lines in found.items()
                if len(names) == 1 or any(line and metric.name in line.metrics for line in lines)
            ),
        )
        for metric in primaries
    ]
    return TrendsPage(
        sections=tuple(section for section in sections if section.panels),
        snapshots=recent.snapshots,
        epochs=len(parts),
        metrics=tuple(name for name in dict.fromkeys(names + CORE + EXTRA) if name in context.metrics),
    )


def _epochs(window: History) -> list[History]:
    """``window`` epoch by epoch."""
    numbers = np.array([snapshot.epoch for snapshot in window.snapshots], np.int64)
    return [_part(window, np.flatnonzero(numbers == epoch)) for epoch in np.unique(numbers).tolist()]


def _part(window: History, places: Integers) -> History:
    span = slice(int(places[0]), int(places[-1]) + 1)
    return replace(
        window,
        snapshots=window.snapshots[span],
        status=window.status[:, span],
        values={name: array[:, :, span] for name, array in window.values.items()},
        marks={name: bits[:, span] for name, bits in window.marks.items()},
        when=window.when[:, span],
    )


def _panel(
    metric: Metric,
    name: tuple[str, str],
    lines: list[TrendLine | None],
    lengths: list[int],
    snapshots: tuple[Snapshot, ...],
) -> Panel:
    device, configuration = name
    nothing = [np.full(length, np.nan) for length in lengths]
    means = [_turned(metric, line.metrics.get(metric.name)) if line else None for line in lines]
    parts = [(m.median, m.low, m.high) if m else (n, n, n) for m, n in zip(means, nothing, strict=True)]
    median = np.concatenate([part[0] for part in parts])
    passed = np.concatenate(
        [line.passed if line else np.full(length, -1) for line, length in zip(lines, lengths, strict=True)]
    )
    planned = np.concatenate(
        [
            line.planned if line else np.zeros(length, np.int64)
            for line, length in zip(lines, lengths, strict=True)
        ]
    )
    share = np.where(passed >= 0, passed / np.maximum(planned, 1), np.nan)
    newest, interval, since, at, n, cases, place = _newest(means, lengths, snapshots)
    apart = _left_out(lines, lengths, place)
    heard = np.flatnonzero(passed >= 0)
    last = f"{passed[heard[-1]]}/{planned[heard[-1]]}" if len(heard) else ""
    label = (
        f"{counted(len(snapshots), 'snapshot')}; {counted(gap_count(median), 'gap')}; "
        f"newest {newest or 'none'} {interval}"
        f"{f' since {since}' if since else ''}{f'; {apart}' if apart else ''}; passes {last or 'none'}"
    )
    return Panel(
        device=device,
        device_id=device_id(device),
        configuration=configuration,
        svg=trend_svg(parts, share, label),
        newest=newest,
        interval=interval,
        since=since,
        at=at,
        n=n,
        cases=cases,
        left_out=apart,
        gaps=gap_count(median),
        bare=bare_count(parts),
        passed=last,
        cells=tuple(
            _cell(float(value), int(count), int(of))
            for value, count, of in zip(median, passed, planned, strict=True)
        ),
    )


def _turned(metric: Metric, found: MeanLine | None) -> MeanLine | None:
    """Return the line as it is shown: above 1 is better."""
    if found is None or metric.better is not Better.LOWER:
        return found
    return replace(found, median=1 / found.median, low=1 / found.high, high=1 / found.low)


def _newest(
    means: list[MeanLine | None], lengths: list[int], snapshots: tuple[Snapshot, ...]
) -> tuple[str, str, str, str, int, int, int]:
    """The newest point with its interval, since when, on which day, n, all cases and its place.

    The point that the others are compared with is no change since itself: it has no interval and no since.
    """
    start = len(snapshots)
    for mean, length in zip(reversed(means), reversed(lengths), strict=True):
        start -= length
        if mean is None:
            continue
        i = int(np.flatnonzero(np.isfinite(mean.median))[-1])
        low, high = float(mean.low[i]), float(mean.high[i])
        if i == mean.reference:
            return "first point", "", "", snapshots[start + i].date, int(mean.n[i]), mean.cases, start + i
        newest, interval = gain_parts(Better.HIGHER, float(mean.median[i]), low, high)
        return (
            newest,
            interval or "no interval",
            snapshots[start + mean.reference].date,
            snapshots[start + i].date,
            int(mean.n[i]),
            mean.cases,
            start + i,
        )
    return "", "", "", "", 0, 0, len(snapshots) - 1


def _left_out(lines: list[TrendLine | None], lengths: list[int], place: int) -> str:
    """How many cases have a number at ``place`` that is in no mean."""
    for line, length in zip(lines, lengths, strict=True):
        if place < length:
            doubts = line.doubts.items() if line else ()
            return left_out(name for name, counts in doubts for _ in range(int(counts[place])))
        place -= length
    return ""


def _cell(value: float, passed: int, planned: int) -> str:
    if passed < 0:
        return "no result" if planned else "not planned"
    return f"{f'{value:.3f}x' if np.isfinite(value) else 'no mean'} · {passed}/{planned}"
