"""Numbers that can be: the limits of every metric by its unit, whoever measured it.

A run keeps them when it makes a row. Here they hold for rows from elsewhere, before these become tables.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence

from torchgauge.clock import DAY_S, LATEST
from torchgauge.records import Measurement, Result, Summary, is_metric_name
from torchgauge.registry import metrics

LONGEST_S = 7 * DAY_S
"""From the plan to the last row: a day in GitHub's queue, five days of a job on an own runner, one more."""
MOST_OF_UNIT: Mapping[str, float] = {"s": LONGEST_S, "B": 2.0**53, "count": 1e9, "ratio": 1e9, "share": 1.0}
"""Largest value of a unit."""
LARGEST = 1e24
"""Largest value of any other unit: no device reaches a yottaflop per second."""
LEAST_SECOND, LEAST_OF_ANY = 1e-12, 1e-24
"""Least values above zero, of a time and of any other unit: no clock resolves less than a picosecond."""


def impossible(row: Result, *, bounded: bool = False) -> str:
    """Return which number of the result ``row`` cannot be; empty where all can.

    Where ``bounded``, it is also held to the limits of its unit, which a night on one's own machine may pass.
    """
    for series in row.measurements:
        if problem := _outside(series, series.samples, bounded):
            return problem
    for summary in row.summaries:
        ends = [value for value in (summary.low, summary.median, summary.high) if value is not None]
        if problem := _outside(summary, ends, bounded):
            return problem
        if ends != sorted(ends):
            return f"the interval of {summary.metric} does not contain its median"
    if not 0.0 <= row.started_at <= LATEST or not 0.0 <= row.duration_s <= LATEST:
        return "the start or the duration of the case is impossible"
    if row.accuracy is not None:
        shown = row.accuracy
        errors = (shown.max_abs_error, shown.rmse, shown.rmse_eager, shown.rmse_ratio, shown.eager_spread)
        if any(value is not None and not 0.0 <= value < math.inf for value in errors):
            return "an accuracy error is negative or infinite"
    return ""


def _outside(series: Measurement | Summary, values: Sequence[float], bounded: bool) -> str:
    metric = metrics().get(series.metric)
    if metric.unit != series.unit if metric else not (is_metric_name(series.metric) and series.unit):
        return f"{series.metric[:60]!r} in {series.unit[:24]!r} is not a known pair of metric and unit"
    signed = metric is None or metric.signed
    most = MOST_OF_UNIT.get(series.unit, LARGEST) if bounded else sys.float_info.max
    tiny = LEAST_SECOND if series.unit == "s" and not signed else LEAST_OF_ANY
    least = -most if signed else 0.0
    low, high = min(values, default=0.0), max(values, default=0.0)
    if not least <= low <= high <= most or (bounded and (0 < abs(low) < tiny or 0 < abs(high) < tiny)):
        return f"{series.metric} of {high if least <= low else low:g} {series.unit} is impossible"
    return ""
