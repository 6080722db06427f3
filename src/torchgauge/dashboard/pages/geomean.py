"""Geometric means over workloads: which numbers take part, which do not, and why.

The interval is Student's t on logarithms, as that of a trend and of a comparison: it is a formula, so that a
browser that works a mean out again, over the rows that a reader left, comes to the same digits.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from torchgauge.dashboard.latest_results import Entry
from torchgauge.dashboard.pages.number_text import spread
from torchgauge.dashboard.statuses import LOOKS
from torchgauge.dashboard.trend_lines import mean_and_half
from torchgauge.records import Modifier, Status, apart
from torchgauge.results.latest import STALE_AFTER_S
from torchgauge.suites.toy.suite import toy

NO_NUMBER = "no number"


@dataclass(frozen=True)
class Mean:
    """A geometric mean with its 95 % interval, over ``n`` workloads; fewer than three have none."""

    estimate: float
    low: float | None
    high: float | None
    n: int


def why_out(entry: Entry, metric: str) -> str:
    """Why the number of ``metric`` enters no mean; empty where it does."""
    if why := toy(entry.workload):
        return why
    if entry.status is not Status.PASS:
        return LOOKS[entry.status].code
    if why := apart(metric, entry.marks):
        return "another model than its name" if why == Modifier.OTHER_MODEL else why
    if entry.known_age_s > STALE_AFTER_S:
        return "stale"
    number = entry.numbers.get(metric)
    median = number["median"] if number else None
    return NO_NUMBER if median is None or not median > 0 else ""


def mean_of(values: Collection[float]) -> Mean | None:
    """The geometric mean of positive ``values``; None where there are none."""
    if not values:
        return None
    logs = np.log(np.fromiter(values, np.float64, len(values)))[:, None]
    with np.errstate(over="ignore"):  # an interval of three values may be as wide as it likes
        mean, half = mean_and_half(logs, np.isfinite(logs))
        middle, low, high = (float(np.exp(each[0])) for each in (mean, mean - half, mean + half))
    return Mean(middle, low, high, len(values)) if len(values) > 2 else Mean(middle, None, None, len(values))


def half_percent(mean: Mean) -> float | None:
    """Half of the interval in percent of the mean, the wider side; None where it has none."""
    if mean.low is None or mean.high is None:
        return None
    return 100 * max(mean.high - mean.estimate, mean.estimate - mean.low) / mean.estimate


def interval_text(mean: Mean) -> str:
    """Half of the interval as text, such as ``±0.8%``."""
    half = half_percent(mean)
    if half is None:
        return "no interval"
    return spread(half) if math.isfinite(half) else "unbounded interval"
