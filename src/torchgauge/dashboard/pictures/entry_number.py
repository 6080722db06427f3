"""The number of a case that a picture may draw, or the word for why it has none."""

from __future__ import annotations

import math

from torchgauge.dashboard.latest_results import Entry
from torchgauge.dashboard.pages import geomean
from torchgauge.dashboard.pictures.ratios import Edge, Lack, lack_of
from torchgauge.records import Status
from torchgauge.results import units


def interval_of(entry: Entry, metric: str) -> tuple[float, float, float]:
    """Median, low and high of ``metric``, of an entry that lacks nothing."""
    number = entry.numbers[metric]
    return number["median"], number["low"], number["high"]


def lack_of_entry(entry: Entry, metric: str) -> Lack | None:
    """Why ``entry`` has no number of ``metric`` that may be drawn; None where it has one."""
    name = entry.workload.name
    if entry.status is not Status.PASS:
        return lack_of(name, Edge.NOWHERE, entry.status)
    why = geomean.why_out(entry, metric)
    if not why and not has_interval(*interval_of(entry, metric)[1:]):
        why = "no interval"
    return Lack(name, Edge.NOWHERE, why) if why else None


def has_interval(low: float | None, high: float | None) -> bool:
    """Whether there are two ends of which the logarithm can be taken."""
    return all(end is not None and end > 0 and math.isfinite(end) for end in (low, high))


def number_text(entry: Entry, metric: str) -> str:
    """The number in its unit with its interval; one in doubt says so, and there may be none."""
    number = entry.numbers.get(metric)
    if number is None or number["median"] is None:
        return ""
    if doubt := entry.doubt(metric):
        return f"{entry.told(number)}, {doubt}"
    return units.interval(number["median"], number["low"], number["high"], number["unit"])
