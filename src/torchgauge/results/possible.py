"""Numbers that can be: the limits of every metric by its unit, whoever measured it.

A run keeps them when it makes a row. Here they hold for rows from elsewhere, before these become tables.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

from torchgauge.clock import DAY_S
from torchgauge.records import is_metric_name
from torchgauge.registry import metrics

LONGEST_S = 7 * DAY_S
"""From the plan to the last row: a day in GitHub's queue, five days of a job on an own runner, one more."""
MOST_OF_UNIT: Mapping[str, float] = {"s": LONGEST_S, "B": 2.0**53, "count": 1e9, "ratio": 1e9, "share": 1.0}
"""Largest value of a unit."""
LARGEST = 1e24
"""Largest value of any other unit: a yottaflop per second is no device."""
LEAST_SECOND, LEAST_OF_ANY = 1e-12, 1e-24
"""Least values above zero, of a time and of any other unit: no clock resolves less than a picosecond."""
LATEST = 4e9
"""Latest date in seconds since the epoch (the year 2096): later ones have no place on an axis."""
_UNIT = re.compile(r"[A-Za-z0-9%/*^._-]{1,24}")


def impossible(row: Any) -> str:
    """Return which number of ``row``, a result or its strict twin, cannot be; empty where all can."""
    for series in row.measurements:
        if problem := _outside(series, series.samples):
            return problem
    for summary in row.summaries:
        ends = [value for value in (summary.low, summary.median, summary.high) if value is not None]
        if problem := _outside(summary, ends):
            return problem
        if ends != sorted(ends):
            return f"the interval of {summary.metric} does not hold its median"
    if not 0.0 <= row.started_at <= LATEST or not 0.0 <= row.duration_s <= LATEST:
        return "its times cannot be"
    if row.accuracy is not None:
        shown = row.accuracy
        errors = (shown.max_abs_error, shown.rmse, shown.rmse_eager, shown.rmse_ratio, shown.eager_spread)
        if any(value is not None and not 0.0 <= value < math.inf for value in errors):
            return "its accuracy has an error below zero or without end"
    return ""


def _outside(series: Any, values: Iterable[float]) -> str:
    metric = metrics().get(series.metric)
    fits = (
        metric.unit == series.unit
        if metric
        else is_metric_name(series.metric) and _UNIT.fullmatch(series.unit)
    )
    if not fits:
        return f"{series.metric[:60]!r} in {series.unit[:24]!r} is not a metric of that unit"
    values = list(values)
    if not values:
        return ""
    most = MOST_OF_UNIT.get(series.unit, LARGEST)
    signed = metric is None or metric.signed
    least = -most if signed else 0.0
    tiny = LEAST_SECOND if series.unit == "s" and not signed else LEAST_OF_ANY
    low, high = min(values), max(values)
    if not (least <= low <= high <= most) or 0 < abs(low) < tiny or 0 < abs(high) < tiny:
        return f"{series.metric} of {low if not least <= low else high:g} {series.unit} cannot be"
    return ""
