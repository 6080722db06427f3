"""How far a series moves by itself, and by how much the newest change exceeds that.

The threshold of a series is Q3 + 3 IQR over the absolute log-ratios of successive points, as rustc-perf does
it; the change that is judged is not part of it. The significance factor is the change over the threshold:
above 1 the series has moved more than it does by itself.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from torchgauge.dashboard.history import HIGH, LOW, MEDIAN, History

FEWEST_CHANGES = 4
"""Changes before the newest one without which a series has no threshold."""

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Movement:
    """The newest change of one series.

    ``ratio`` is the newest value over the one before it, ``half_percent`` half of the interval of the ratio
    in percent (None for single samples), ``threshold`` a relative change, or None with too little history.
    """

    ratio: float
    half_percent: float | None
    threshold: float | None

    @property
    def change(self) -> float:
        """The relative change: 0.02 is 2 % more."""
        return self.ratio - 1

    @property
    def factor(self) -> float | None:
        """By how many times the change exceeds the threshold; None without a threshold."""
        if self.threshold is None:
            return None
        moved = abs(math.log(self.ratio))
        return moved / self.threshold if self.threshold > 0 else (math.inf if moved else 0.0)


def thresholds(changes: Floats) -> Floats:
    """Q3 + 3 IQR of every row of absolute log-ratios; NaN where a row has fewer than it needs.

    ``changes`` is ``[series, changes]`` with NaN where there is none. Quantiles are interpolated linearly.
    """
    ordered = np.sort(changes, axis=1)
    count = np.isfinite(ordered).sum(axis=1)
    enough = count >= FEWEST_CHANGES
    first, third = (_quantile(ordered, count, share) for share in (0.25, 0.75))
    return np.where(enough, third + 3 * (third - first), np.nan)


def _quantile(ordered: Floats, count: npt.NDArray[np.int64], share: float) -> Floats:
    place = np.maximum(count - 1, 0) * share
    low = np.floor(place).astype(np.int64)
    high = np.minimum(low + 1, np.maximum(count - 1, 0))
    rows = np.arange(len(ordered))
    below, above = ordered[rows, low], ordered[rows, high]
    found: Floats = below + (above - below) * (place - low)
    return found


def movements(history: History, metric: str) -> Mapping[str, Movement]:
    """The newest change of every case, by its key, that has two positive numbers of ``metric`` that count."""
    values = history.numbers(metric)
    if values is None or values.shape[2] < 2:
        return {}
    medians = np.where(values[MEDIAN] > 0, values[MEDIAN], np.nan)
    rows = np.flatnonzero(np.isfinite(medians).sum(axis=1) >= 2)
    if not len(rows):
        return {}
    last, before, changes = _successive(medians[rows])
    newest, previous = medians[rows, last], medians[rows, before]
    with np.errstate(over="ignore"):
        ratios = newest / previous
    both = np.hypot(_half(values, rows, last), _half(values, rows, before))
    limits = thresholds(changes)
    return {
        history.cases[row].key: Movement(
            float(ratios[i]),
            float(both[i]) if math.isfinite(both[i]) else None,
            float(limits[i]) if math.isfinite(limits[i]) else None,
        )
        for i, row in enumerate(rows.tolist())
        if math.isfinite(ratios[i])
    }


def _successive(medians: Floats) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], Floats]:
    """Places of the last number and the one before it, and the earlier absolute log-ratios of each row."""
    length = medians.shape[1]
    there = np.isfinite(medians)
    places = np.where(there, np.arange(length), -1)
    reached = np.maximum.accumulate(places, axis=1)
    last = reached[:, -1]
    rows = np.arange(len(medians))
    before = reached[rows, np.maximum(last - 1, 0)]
    previous = medians[rows[:, None], np.maximum(reached[:, :-1], 0)]
    valid = there[:, 1:] & (reached[:, :-1] >= 0) & (np.arange(1, length) < last[:, None])
    changes = np.full((len(medians), length - 1), np.nan)
    with np.errstate(over="ignore"):  # a store may hold any double
        np.log(medians[:, 1:] / previous, out=changes, where=valid)
    return last, before, np.abs(changes)


def _half(values: Floats, rows: npt.NDArray[np.int64], at: npt.NDArray[np.int64]) -> Floats:
    """Half of the interval in percent of the median, the wider side; NaN without an interval."""
    median, low, high = values[MEDIAN, rows, at], values[LOW, rows, at], values[HIGH, rows, at]
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        found: Floats = 100 * np.maximum(high - median, median - low) / median
    return found


def series_thresholds(history: History, metric: str) -> Floats:
    """The threshold of every case of ``history`` as a log-ratio; NaN with too little history."""
    values = history.numbers(metric)
    if values is None or values.shape[2] < 2:
        return np.full(len(history.cases), np.nan)
    medians = np.where(values[MEDIAN] > 0, values[MEDIAN], np.nan)
    found: Floats = np.full(len(history.cases), np.nan)
    rows = np.flatnonzero(np.isfinite(medians).sum(axis=1) >= 2)
    if len(rows):
        found[rows] = thresholds(_successive(medians[rows])[2])
    return found
