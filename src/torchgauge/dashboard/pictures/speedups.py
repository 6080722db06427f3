"""The distribution of the speed-ups of a compiler: every workload, sorted, device by device."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from torchgauge.dashboard.latest_results import Entry
from torchgauge.dashboard.pages import links
from torchgauge.dashboard.pages.views import INDUCTOR
from torchgauge.dashboard.pictures.entry_number import interval_of, lack_of_entry
from torchgauge.dashboard.pictures.picture import Picture, nothing
from torchgauge.dashboard.pictures.picture import dated as footer_of
from torchgauge.dashboard.pictures.ratio_picture import ratio_picture
from torchgauge.dashboard.pictures.ratios import (
    Lack,
    Ratio,
    RatioChart,
    RatioGroup,
    counts_text,
    group_of,
    labels_of,
    tone_of,
)
from torchgauge.results.hostile_text import slug

if TYPE_CHECKING:
    from torchgauge.dashboard.context import SiteContext

KIND = "speedups"
METRIC = "speedup"
MOST = 3
"""Configurations that are drawn: those with most numbers."""

METHOD = (
    "Each point is one workload that passed eager and compiled. The speed-up is eager time over "
    "compiled time, measured interleaved in one process: 2 is twice as fast. The whisker is its 95 % "
    "interval, coloured if it excludes 1. Points are sorted, so each group is the whole distribution. "
    "The diamond is the geometric mean over the workloads, with its interval. Toys, and workloads "
    "without a speed-up or with one in doubt, are counted with the reason and have no point."
)


def pictures(context: SiteContext) -> Iterator[Picture]:
    """The configurations that are planned most and have speed-ups, or why there is none."""
    by_name: dict[str, list[Entry]] = {}
    for entry in context.latest.of_models().entries.values():
        if entry.column.compiled:
            by_name.setdefault(entry.column.configuration, []).append(entry)
    numbers = {name: sum(METRIC in each.numbers for each in found) for name, found in by_name.items()}
    chosen = sorted(
        (name for name in by_name if numbers[name]),
        key=lambda name: (-len(by_name[name]), name != INDUCTOR, -numbers[name], name),
    )
    for name in chosen[:MOST]:
        yield _picture(context, name, by_name[name])
    if not chosen:
        yield nothing(KIND, "Speed-up of a compiler", "No compiled configuration has a speed-up yet.")


def _picture(context: SiteContext, name: str, entries: list[Entry]) -> Picture:
    labels = labels_of(sorted({entry.workload for entry in entries}))
    by_device: dict[str, list[Ratio | Lack]] = {}
    for entry in sorted(entries, key=lambda each: (each.column.order, each.workload)):
        found = replace(_found(entry), label=labels[entry.workload.name])
        by_device.setdefault(entry.column.device, []).append(found)
    dated = context.latest.of_models().dated
    groups = tuple(group_of(dated(device), found) for device, found in by_device.items())
    chart = RatioChart(
        f"{name} against eager",
        ("workload",),
        groups,
        footer_of(context),
        ends=3,
        lacks_in_words=True,
    )
    says = "; ".join(_said(chart, group) for group in groups)
    return ratio_picture(KIND, f"{KIND}-{slug(name)}", replace(chart, says=f"{says}."), METHOD)


def _found(entry: Entry) -> Ratio | Lack:
    lack, href = lack_of_entry(entry, METRIC), links.case_link(entry)
    if lack is not None:
        return replace(lack, href=href)
    ratio, low, high = interval_of(entry, METRIC)
    return Ratio(entry.workload.name, ratio, low, high, tone_of(low, high), href=href)


def _said(chart: RatioChart, group: RatioGroup) -> str:
    mean = chart.mean_text(group)
    counts = counts_text(group, "faster", "slower")
    return f"{group.caption} {mean} (geometric mean): {counts}" if mean else f"{group.caption}: {counts}"
