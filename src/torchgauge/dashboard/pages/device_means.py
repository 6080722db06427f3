"""What one device says in a number: its mean change since the results before, and its mean speed-ups."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from torchgauge.counted import counted
from torchgauge.dashboard.latest_results import Entry
from torchgauge.dashboard.pages import geomean
from torchgauge.dashboard.pages.noise import Movement
from torchgauge.dashboard.pages.number_text import change
from torchgauge.records import METRICS, Status, left_out

if TYPE_CHECKING:
    from torchgauge.dashboard.context import SiteContext


def mean_change(entries: Sequence[Entry], context: SiteContext) -> list[str]:
    """The mean change since the result before of each metric that the scenarios of ``entries`` measure for.

    None where no workload has two results. The configurations of one workload are averaged first: they move
    together, so that taking them for independent would make the interval too narrow.
    """
    by_metric: dict[str, list[Entry]] = {}
    for entry in entries:
        by_metric.setdefault(context.primary[entry.workload.mode], []).append(entry)
    found = [_mean_change(own, name, context.moved) for name, own in sorted(by_metric.items())]
    return [text for text in found if text]


def _mean_change(entries: Sequence[Entry], metric: str, moved: Mapping[str, Movement]) -> str:
    logs: dict[str, list[float]] = {}
    for entry in entries:
        movement = moved.get(entry.newest["case_key"])
        if movement is not None and not geomean.why_out(entry, metric):
            logs.setdefault(entry.workload.name, []).append(math.log(movement.ratio))
    mean = geomean.mean_of([math.exp(math.fsum(found) / len(found)) for found in logs.values()])
    without = left_out(
        geomean.why_out(entry, metric)
        for entry in entries
        if entry.status is Status.PASS and metric in entry.numbers
    )
    name = metric.replace("_", " ")
    if mean is None:
        return f"no geomean {name} since the previous run: {without}" if without else ""
    half, unit = geomean.half_percent(mean), METRICS[metric].unit if metric in METRICS else ""
    text = change(mean.estimate, half, unit) + (f" {geomean.interval_text(mean)}" if half is not None else "")
    counts = f"{counted(sum(map(len, logs.values())), 'case')} of {counted(mean.n, 'workload')}"
    beside = f"; {without}" if without else ""
    return f"geomean {name} {text} since the previous run ({counts}{beside})"


def speedups(entries: Sequence[Entry], metric: str) -> Mapping[str, tuple[geomean.Mean | None, str]]:
    """The mean speed-up of every compiled configuration, each over its own workloads, and what it leaves out.

    A speed-up is paired with its baseline, which ``metric`` names.
    """
    found: dict[str, list[float]] = {}
    doubts: dict[str, list[str]] = {}
    for entry in entries:
        if entry.column.compiled and entry.status is Status.PASS and metric in entry.numbers:
            name, why = entry.column.configuration, geomean.why_out(entry, metric)
            doubts.setdefault(name, []).append(why)
            if not why:
                found.setdefault(name, []).append(entry.numbers[metric]["median"])
    return {
        name: (geomean.mean_of(found.get(name, ())), left_out(each)) for name, each in sorted(doubts.items())
    }
