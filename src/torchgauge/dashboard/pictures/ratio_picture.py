"""A picture of ratios, made of its chart."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from torchgauge.dashboard.pictures.picture import Numbers, Picture, nothing
from torchgauge.dashboard.pictures.ratio_drawing import draw_ratios
from torchgauge.dashboard.pictures.ratios import RatioChart


def ratio_picture(kind: str, name: str, chart: RatioChart, method: str) -> Picture:
    """The picture of ``chart``; one that would show no ratio says so at the same address."""
    text = described(chart)
    drawn = any(group.ratios for group in chart.groups)
    lacking = "; ".join(group.lacking for group in chart.groups if group.lacks)
    if not drawn:
        why = f"There is no ratio to draw{f': {lacking}' if lacking else ''}."
        return replace(nothing(kind, chart.title, why, name), method=method, numbers=_numbers(chart))
    draw = partial(draw_ratios, chart, description=text)
    return Picture(kind, name, chart.title, chart.says, text, method, _numbers(chart), draw)


def described(chart: RatioChart) -> str:
    """The chart for those who do not see it."""
    parts = [f"Sorted horizontal ratios with 95 % intervals on a log axis. {chart.says}"]
    for group in chart.groups:
        if group.ratios:
            first, last = group.ratios[0], group.ratios[-1]
            ends = f"from {chart.text(first.ratio)} ({first.name}) to {chart.text(last.ratio)} ({last.name})"
            parts.append(f"{group.caption or 'Ratios'}: {len(group.ratios)}, {ends}.")
        if group.lacks:
            parts.append(f"Without a ratio: {group.lacking}.")
    return " ".join(parts)


def _numbers(chart: RatioChart) -> Numbers:
    apart = len(chart.groups) > 1
    rows: list[tuple[str, ...]] = []
    hrefs = []
    for group in chart.groups:
        head = (group.caption,) if apart else ()
        for each in group.ratios:
            interval = chart.interval(each.low, each.high)
            rows.append((*head, each.name, *each.sides, chart.text(each.ratio), interval, each.beside))
            hrefs.append(each.href)
        for lack in group.lacks:
            sides = lack.sides or ("",) * (len(chart.columns) - 1)
            rows.append((*head, lack.name, *sides, "", "", lack.code))
            hrefs.append(lack.href)
    columns = (*(("group",) if apart else ()), *chart.columns, chart.gain, "95 % interval", "note")
    if not any(row[-1] for row in rows):
        columns, rows = columns[:-1], [row[:-1] for row in rows]
    return Numbers(columns, tuple(rows), tuple(hrefs), name=int(apart))
