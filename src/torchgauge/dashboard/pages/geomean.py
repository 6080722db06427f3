"""Geometric means over workloads: which numbers take part, which do not, and why."""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from torchgauge.dashboard.latest_results import Entry
from torchgauge.dashboard.pages.number_text import spread
from torchgauge.dashboard.statuses import LOOKS
from torchgauge.records import Modifier, Status, apart
from torchgauge.results import stats

Key = TypeVar("Key", bound=Hashable)
Numbers = Mapping[str, float | None]

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Mean:
    """A geometric mean with its interval, over ``n`` workloads."""

    estimate: float
    low: float | None
    high: float | None
    n: int


@dataclass(frozen=True)
class Exclusion:
    """A workload that takes no part in a mean over the common set, and why."""

    workload: str
    why: str


def usable(entry: Entry, metric: str) -> tuple[float | None, str]:
    """The value of ``metric`` that may enter a mean, or None and the reason why not."""
    number = entry.numbers.get(metric)
    if entry.status is not Status.PASS:
        return None, LOOKS[entry.status].code
    if why := apart(metric, entry.marks):
        return None, "another model than its name says" if why == Modifier.OTHER_MODEL else why
    if "stale" in entry.marks:
        return None, "stale"
    if number is None:
        return None, "not measured"
    if number["median"] is None:
        return None, number["absent"]
    if not number["median"] > 0:  # what is not finite has no median
        return None, "not positive"
    return number["median"], ""


def common(numbers: Mapping[Key, Numbers], built_differently: Collection[str]) -> frozenset[str]:
    """The workloads with a number in every column that has any."""
    sides = [side for side in numbers.values() if any(value is not None for value in side.values())]
    return stats.common_set(*sides) - frozenset(built_differently)


def means_over(numbers: Mapping[Key, Numbers], within: Collection[str]) -> dict[Key, Mean]:
    """The geometric mean of every column over ``within``, which has a number in each that is not left out.

    The interval is that of :func:`stats.geometric_mean`, the percentile bootstrap over names with its seed;
    the resamples are drawn once for all columns.
    """
    names = sorted(within)
    columns = [key for key, side in numbers.items() if names and all(side.get(n) is not None for n in names)]
    if not columns:
        return {}
    logs = np.log(np.array([[numbers[key][name] for name in names] for key in columns], np.float64))
    estimates = np.exp(logs.mean(axis=1)).tolist()
    if len(names) == 1:
        return {key: Mean(estimates[i], None, None, 1) for i, key in enumerate(columns)}
    n = len(names)
    resampled = _resamples(n) @ logs.T / n
    tail = (1 - CONFIDENCE) / 2
    low, high = np.exp(np.quantile(resampled, (tail, 1 - tail), axis=0))
    return {key: Mean(estimates[i], float(low[i]), float(high[i]), n) for i, key in enumerate(columns)}


@lru_cache(maxsize=4)
def _resamples(n: int) -> npt.NDArray[np.float64]:
    """How often each of ``n`` names is in each resample: ``[resamples, names]``."""
    picks = np.random.default_rng(stats.SEED).integers(0, n, size=(stats.RESAMPLES, n))
    flat = picks + n * np.arange(stats.RESAMPLES)[:, None]
    counts = np.bincount(flat.ravel(), minlength=stats.RESAMPLES * n).reshape(stats.RESAMPLES, n)
    return counts.astype(np.float64)


def plain_mean(numbers: Numbers) -> tuple[float | None, int]:
    """The geometric mean of whatever has a number, and of how many: not comparable with other columns."""
    found = [math.log(value) for value in numbers.values() if value is not None]
    return (math.exp(math.fsum(found) / len(found)), len(found)) if found else (None, 0)


def half_percent(mean: Mean) -> float | None:
    """Half of the interval in percent of the mean, the wider side; None for one workload."""
    if mean.low is None or mean.high is None:
        return None
    return 100 * max(mean.high - mean.estimate, mean.estimate - mean.low) / mean.estimate


def interval_text(mean: Mean) -> str:
    """Half of the interval as text, such as ``±0.8%``."""
    half = half_percent(mean)
    return "one workload" if half is None else spread(half)


def left_out(numbers: Mapping[Key, Numbers], within: Collection[str]) -> tuple[Exclusion, ...]:
    """The workloads outside ``within``, each with how many of the columns lack a number for it."""
    sides = [side for side in numbers.values() if any(value is not None for value in side.values())]
    found = []
    for name in sorted({name for side in numbers.values() for name in side} - set(within)):
        lacking = sum(side.get(name) is None for side in sides)
        why = (
            f"no usable number in {lacking} of {len(sides)} columns"
            if lacking
            else "built differently, not comparable"
        )
        found.append(Exclusion(name, why))
    return tuple(found)
