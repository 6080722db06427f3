"""What one device says in a number: its mean change since the results before, and its mean speed-ups."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from torchgauge.dashboard.latest_results import Entry
from torchgauge.dashboard.pages import geomean
from torchgauge.dashboard.pages.noise import Movement
from torchgauge.dashboard.pages.number_text import change
from torchgauge.records import METRICS, Status, apart, left_out
from torchgauge.suites.toy.suite import SUITE as TOYS

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
        if movement is not None and not _toy(entry) and not geomean.why_out(entry, metric):
            logs.setdefault(entry.workload.name, []).append(math.log(movement.ratio))
    mean = geomean.mean_of([math.exp(math.fsum(found) / len(found)) for found in logs.values()])
    if mean is None:
        return ""
    half, unit = geomean.half_percent(mean), METRICS[metric].unit if metric in METRICS else ""
    text = change(mean.estimate, half, unit) + (f" {geomean.interval_text(mean)}" if half is not None else "")
    without = left_out(
        _toy(entry) or apart(metric, entry.marks)
        for entry in entries
        if entry.status is Status.PASS and metric in entry.numbers
    )
    beside = f"; {without}" if without else ""
    name = metric.replace("_", " ")
    return f"geomean {name} {text} since the previous run (n = {mean.n}{beside})"


def speedups(entries: Sequence[Entry], metric: str) -> tuple[tuple[str, geomean.Mean, str], ...]:
    """The mean speed-up of every compiled configuration, each over its own workloads, and what it leaves out.

    A speed-up is paired with its baseline, which ``metric`` names.
    """
    found: dict[str, list[float]] = {}
    doubts: dict[str, list[str]] = {}
    for entry in entries:
        if not entry.column.compiled:
            continue
        name = entry.column.configuration
        if entry.status is Status.PASS and metric in entry.numbers:
            doubts.setdefault(name, []).append(_toy(entry) or apart(metric, entry.marks))
        if not _toy(entry) and not geomean.why_out(entry, metric):
            found.setdefault(name, []).append(entry.numbers[metric]["median"])
    means = {name: geomean.mean_of(values) for name, values in found.items()}
    return tuple((name, mean, left_out(doubts[name])) for name, mean in sorted(means.items()) if mean)


def _toy(entry: Entry) -> str:
    """``toy`` for a toy, which is in no mean: it exercises the way to a number, and is all overhead."""
    return TOYS.name if entry.workload.suite == TOYS.name else ""
