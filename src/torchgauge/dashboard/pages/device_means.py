"""What one device says in a number: its mean change since the results before, and its mean speed-ups."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from torchgauge.dashboard.latest_results import Entry
from torchgauge.dashboard.pages import geomean
from torchgauge.dashboard.pages.noise import Movement
from torchgauge.dashboard.pages.number_text import change
from torchgauge.records import Status, apart, left_out


def mean_change(entries: Sequence[Entry], moved: Mapping[str, Movement]) -> list[str]:
    """The mean change of the latency since the result before, where any workload has two.

    The configurations of one workload are averaged first: they move together, so that taking them for
    independent would make the interval too narrow.
    """
    logs: dict[str, list[float]] = {}
    for entry in entries:
        movement = moved.get(entry.newest["case_key"])
        if movement is not None and not geomean.why_out(entry, "latency"):
            logs.setdefault(entry.workload.name, []).append(math.log(movement.ratio))
    mean = geomean.mean_of([math.exp(math.fsum(found) / len(found)) for found in logs.values()])
    if mean is None:
        return []
    half = geomean.half_percent(mean)
    text = change(mean.estimate, half) + (f" {geomean.interval_text(mean)}" if half is not None else "")
    without = left_out(entry.doubt("latency") for entry in entries if "latency" in entry.numbers)
    beside = f"; {without}" if without else ""
    return [f"geomean latency {text} since the results before (n = {mean.n}{beside})"]


def speedups(entries: Sequence[Entry]) -> tuple[tuple[str, geomean.Mean, str], ...]:
    """The mean speed-up of every compiled configuration, each over its own workloads, and what it leaves out.

    A speed-up is paired with eager, so that each configuration is compared with its baseline by itself.
    """
    found: dict[str, list[float]] = {}
    doubts: dict[str, list[str]] = {}
    for entry in entries:
        if not entry.column.compiled:
            continue
        name = entry.column.configuration
        if entry.status is Status.PASS and "speedup" in entry.numbers:
            doubts.setdefault(name, []).append(apart("speedup", entry.marks))
        if not geomean.why_out(entry, "speedup"):
            found.setdefault(name, []).append(entry.numbers["speedup"]["median"])
    means = {name: geomean.mean_of(values) for name, values in found.items()}
    return tuple((name, mean, left_out(doubts[name])) for name, mean in sorted(means.items()) if mean)
