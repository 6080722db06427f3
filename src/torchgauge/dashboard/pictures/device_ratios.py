"""Device against device: what every workload is measured by on one as its speed-up over that on another."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from torchgauge.dashboard.latest_results import Column, Entry, LatestResults
from torchgauge.dashboard.names import device_id
from torchgauge.dashboard.pages import links
from torchgauge.dashboard.pages.views import EAGER
from torchgauge.dashboard.pictures.entry_number import interval_of, lack_of_entry, number_text
from torchgauge.dashboard.pictures.picture import Picture, dated, nothing
from torchgauge.dashboard.pictures.ratio_picture import ratio_picture
from torchgauge.dashboard.pictures.ratios import (
    Edge,
    Lack,
    Ratio,
    RatioChart,
    counts_text,
    group_of,
    labels_of,
    tone_of,
)
from torchgauge.records import Better, Metric
from torchgauge.results.log_ratio import ratio_interval, ratio_of

if TYPE_CHECKING:
    from torchgauge.dashboard.context import SiteContext

KIND = "devices"
MOST_PAIRS = 4
"""Devices that are drawn against the first one."""

METHOD = (
    "Each row is one workload that passed on both devices in the same configuration. The speed-up is the "
    "time of the second device over the time of the first, as the title names them: 2x is twice as fast. "
    "Scenarios with another main metric, such as tokens per second, use that metric. The whisker is the "
    "95 % interval of the speed-up, from the intervals of both sides; it is coloured if it excludes 1. The "
    "intervals cover the samples of one process, not differences between launches. For a lost nightly "
    "run, the last known result is used for up to eight days, with its date. A toy, and a number in doubt or "
    "without an interval, has no speed-up: a mark at the edge of that side states the reason."
)


def pictures(context: SiteContext) -> Iterator[Picture]:
    """The first device against each of the others, or why there is no such picture."""
    latest = context.latest.of_models()
    pairs = list(_pairs(latest))[:MOST_PAIRS]
    for there, here in pairs:
        yield _picture(context, latest, there, here)
    if not pairs:
        why = (
            "Fewer than two devices have results of models in the same configuration."
            if latest.devices
            else "No model has a result yet."
        )
        yield nothing(KIND, "Device against device", why)


def _pairs(latest: LatestResults) -> Iterator[tuple[Column, Column]]:
    """Columns of the same configuration: eager where both devices have it, else the first that both have."""
    by_device: dict[str, dict[str, Column]] = {}
    for column in latest.columns:
        by_device.setdefault(column.device, {})[column.configuration] = column
    first, *others = by_device.values() or ({},)
    for other in others:
        shared = [name for name in first if name in other]
        if shared:
            name = EAGER if EAGER in shared else shared[0]
            yield first[name], other[name]


def _picture(context: SiteContext, latest: LatestResults, there: Column, here: Column) -> Picture:
    a, b = latest.dated(there.device), latest.dated(here.device)
    found = [
        ratio_of_entries(
            base,
            own,
            context.metric(context.primary[workload.mode]),
            alike=workload.name not in latest.built_differently,
        )
        for workload in latest.workloads
        if (base := latest.entries.get((workload, there))) and (own := latest.entries.get((workload, here)))
    ]
    labels = labels_of(latest.workloads)
    group = group_of("", [replace(each, label=labels[each.name]) for each in found])
    chart = RatioChart(
        f"{b} against {a}, {here.configuration}",
        ("workload", a, b),
        (group,),
        dated(context),
        worse=f"{b} slower",
        better=f"{b} faster",
    )
    counts = counts_text(group, "faster", "slower")
    mean = chart.mean_text(group)
    says = f"{b} has a geomean speed-up of {mean} over {a}: {counts}." if mean else f"{b}: {counts}."
    name = f"devices-{device_id(here.device)}-{device_id(there.device)}"
    return ratio_picture(KIND, name, replace(chart, says=says), METHOD)


def ratio_of_entries(base: Entry, own: Entry, metric: Metric, *, alike: bool) -> Ratio | Lack:
    """The speed-up of ``own`` over ``base``; else why not, at the end of the device that has it."""
    name = own.workload.name
    lacks = [lack_of_entry(entry, metric.name) for entry in (base, own)]
    sides = number_text(base, metric.name), number_text(own, metric.name)
    if any(lacks):
        edge = Edge.NOWHERE if all(lacks) else Edge.LEFT if lacks[1] else Edge.RIGHT
        lack = lacks[1] or lacks[0] or Lack(name, edge, "")
        return replace(lack, edge=edge, sides=sides, href=links.case_link(own))
    if not alike:
        return Lack(name, Edge.NOWHERE, "built differently", sides=sides, href=links.case_link(own))
    below, above = (interval_of(entry, metric.name) for entry in (base, own))
    if metric.better is Better.LOWER:
        below, above = above, below
    ratio, low, high = (ratio_of(float(each)) for each in ratio_interval(below, above))
    tone = tone_of(low, high)
    return Ratio(name, ratio, low, high, tone, sides, href=links.case_link(own))
