"""Medians, ratios and means with their intervals: every number that is shown comes from here.

Why our own: the interval of a median from order statistics is exact for any distribution and is six lines;
scipy has none, and importing it costs more than a run may spend. The rules are in prose in ``method.md``:

* ``order-statistic``: the closest symmetric pair of order statistics that covers the median with at least
  the asked confidence; the coverage is binomial(n, 1/2) and exact (David and Nagaraja, Order Statistics,
  3rd edition, section 7.1). It needs six samples for 95 %.
* ``order-statistic-correlated``: the same where samples resemble those before. Their number is taken for as
  many independent ones as vary alike (n / inflation², the effective sample size of Wilks, Statistical Methods
  in the Atmospheric Sciences, 3rd edition, section 5.2.4), with the normal approximation of the binomial; it
  is never wider than the range of the samples.
* ``order-statistic-moods``: the same, and it reaches to the medians of the lowest and the highest stretch of
  an eighth of the samples, where one of these is apart from the rest: a machine that has two speeds.
* ``too-few``: fewer samples than that have no interval, and nothing is decided from them: even the range of n
  samples holds the median with a probability of 1 - 2 ** (1 - n) only.

The mean over models of a claim or a page is another thing: ``bootstrap-percentile``, over the models.

The samples of one process share its launch: these intervals do not cover what differs between launches.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from torchgauge.autocorrelation import interval_inflation, middle, regimes
from torchgauge.records import Measurement, Metric, Summary

ORDER_STATISTIC = "order-statistic"
CORRELATED = "order-statistic-correlated"
REGIMES = "order-statistic-moods"
BOOTSTRAP = "bootstrap-percentile"
TOO_FEW = "too-few"
ABSENT = "absent"

RESAMPLES = 9999
"""Resamples of the geometric mean's bootstrap; with a fixed seed, so that a report can be repeated."""

SEED = 20_240_229


@dataclass(frozen=True)
class Estimate:
    """A number with its interval; ``low`` and ``high`` are None where ``n`` is too small for one.

    ``estimate`` is None where there is nothing to estimate from.
    """

    estimate: float | None
    low: float | None
    high: float | None
    n: int
    confidence: float
    method: str


@dataclass(frozen=True)
class GeometricMean(Estimate):
    """A geometric mean over the common set, and the names that dropped out of it."""

    dropped: tuple[str, ...] = ()


def median_interval(samples: Sequence[float], confidence: float = 0.95, wider: float = 1.0) -> Estimate:
    """The median of one sample or more and its interval.

    ``wider`` says by how much more the median varies than that of independent samples, 1 or more.
    Raises ``ValueError`` for no sample, a non-finite one, or a confidence outside [0.5, 0.999].
    """
    _check(samples, confidence)
    return _interval(sorted(map(float, samples)), confidence, wider)


def _interval(ordered: Sequence[float], confidence: float, wider: float) -> Estimate:
    """:func:`median_interval` of samples that were looked at, by size."""
    n, median = len(ordered), middle(ordered)
    rank, method = _rank(n, confidence), ORDER_STATISTIC
    if not rank:
        return Estimate(median, None, None, n, confidence, TOO_FEW)
    if wider > 1:
        spread = _normal(confidence) * wider * math.sqrt(n) / 2
        lower = max(1, math.floor((n + 1) / 2 - spread))  # with the correction for continuity
        if lower < rank:
            rank, method = lower, CORRELATED
    return Estimate(median, ordered[rank - 1], ordered[n - rank], n, confidence, method)


def series_interval(samples: Sequence[float], confidence: float = 0.95) -> Estimate:
    """The median of ``samples``, in the order in which they were taken, with its interval.

    It is wider where they resemble each other, and holds the regimes that they show. Raises as
    :func:`median_interval`.
    """
    _check(samples, confidence)
    ordered = sorted(map(float, samples))
    wider = interval_inflation(samples, all_lags, ordered)
    found, seen = _interval(ordered, confidence, wider), regimes(samples, wider, ordered)
    if seen is None or found.low is None or found.high is None:
        return found
    low, high = min(found.low, seen[0]), max(found.high, seen[1])
    return Estimate(found.estimate, low, high, found.n, confidence, REGIMES)


def all_lags(ranks: Sequence[float]) -> list[float]:
    """The correlation of ``ranks``, whose mean is 0, at each lag up to half of them.

    Twice a rank is whole, and so is each sum of products: rounding takes the transform's error out of it.
    """
    n = len(ranks)
    spectrum = np.fft.rfft(2.0 * np.asarray(ranks), 1 << (2 * n).bit_length())
    sums = np.rint(np.fft.irfft(spectrum * spectrum.conj()))[: n // 2]
    found: list[float] = (sums / sums[0] if sums[0] else sums).tolist()
    return found


def summarise(measurement: Measurement, metric: Metric, confidence: float = 0.95) -> Summary:
    """The summary of ``measurement``; what is absent stays absent, with its reason.

    Its samples are in the order in which they were taken: those that resemble the one before have a wider
    interval. Raises ``ValueError`` where the measurement is of another metric or unit.
    """
    if (measurement.metric, measurement.unit) != (metric.name, metric.unit):
        raise ValueError(f"{measurement.metric} in {measurement.unit} is not {metric.name} in {metric.unit}")
    found = (
        Estimate(None, None, None, 0, confidence, ABSENT)
        if measurement.absent
        else series_interval(measurement.samples, confidence)
    )
    return Summary(
        metric=metric.name,
        unit=metric.unit,
        better=metric.better,
        n=found.n,
        median=found.estimate,
        low=found.low,
        high=found.high,
        confidence=confidence,
        method=found.method,
        provenance=measurement.provenance,
        stopped=measurement.stopped,
        absent=measurement.absent,
    )


def paired_ratio(base: Sequence[float], other: Sequence[float], confidence: float = 0.95) -> Estimate:
    """``other`` / ``base`` of samples taken in pairs: exp of the median of the paired log differences.

    Raises ``ValueError`` for unequal lengths or a sample that is not positive.
    """
    if len(base) != len(other):
        raise ValueError(
            f"paired samples must be equal in number: {len(base)} of base, {len(other)} of the other side"
        )
    if not all(sample > 0 for sample in (*base, *other)):
        raise ValueError("a ratio needs positive samples")
    logs = [math.log(b / a) for a, b in zip(base, other, strict=True)]
    return _exp(median_interval(logs, confidence))


def geometric_mean(
    values: Mapping[str, float | None], within: Collection[str] | None = None, confidence: float = 0.95
) -> GeometricMean:
    """Geometric mean over the names that have a number (and stand in ``within``, the common set).

    The interval is the percentile bootstrap over names, with a fixed seed. Raises ``ValueError`` for a value
    that is not positive and finite.
    """
    kept = {
        name: value
        for name, value in sorted(values.items())
        if value is not None and (within is None or name in within)
    }
    dropped = tuple(sorted((values.keys() | set(within or ())) - kept.keys()))
    bad = next((name for name, value in kept.items() if not (value > 0 and math.isfinite(value))), None)
    if bad is not None:
        raise ValueError(f"{bad}: a geometric mean needs positive finite values, not {kept[bad]}")
    if not kept:
        return GeometricMean(None, None, None, 0, confidence, ABSENT, dropped)
    found = _exp(mean([math.log(value) for value in kept.values()], confidence))
    return GeometricMean(**vars(found), dropped=dropped)


def mean(values: Sequence[float], confidence: float = 0.95) -> Estimate:
    """The arithmetic mean with the percentile bootstrap, whose seed is fixed; one value has no interval."""
    _check(values, confidence)
    numbers, n = np.asarray(values, dtype=np.float64), len(values)
    estimate = float(numbers.mean())
    if n == 1:
        return Estimate(estimate, None, None, 1, confidence, TOO_FEW)
    picks = np.random.default_rng(SEED).integers(0, n, size=(RESAMPLES, n))
    low, high = np.quantile(numbers[picks].mean(axis=1), ((1 - confidence) / 2, (1 + confidence) / 2))
    return Estimate(estimate, float(low), float(high), n, confidence, BOOTSTRAP)


def wilson(count: int, total: int, confidence: float = 0.95) -> tuple[float, float]:
    """Wilson's score interval of the share ``count`` / ``total`` (Wilson, JASA 22, 1927)."""
    z = _normal(confidence)
    p, spread = count / total, z * z / total
    centre = (p + spread / 2) / (1 + spread)
    half = z * math.sqrt(p * (1 - p) / total + spread / (4 * total)) / (1 + spread)
    return (0.0 if count == 0 else centre - half), (1.0 if count == total else centre + half)


def common_set(*sides: Mapping[str, float | None]) -> frozenset[str]:
    """Names that have a number on every side."""
    present = [frozenset(name for name, value in side.items() if value is not None) for side in sides]
    return frozenset.intersection(*present) if present else frozenset()


def _check(samples: Sequence[float], confidence: float) -> None:
    if not 0.5 <= confidence <= 0.999:
        raise ValueError(f"a confidence of {confidence} is outside [0.5, 0.999]")
    if not len(samples):
        raise ValueError("an interval requires at least one sample")
    if not all(map(math.isfinite, samples)):
        raise ValueError("a non-finite sample")


@cache
def _normal(confidence: float) -> float:
    """Standard deviations on either side that hold a normal number with ``confidence``."""
    return statistics.NormalDist().inv_cdf((1 + confidence) / 2)


@cache
def _rank(n: int, confidence: float) -> int:
    """The largest r for which the r-th smallest and r-th largest of n cover the median; 0 for none.

    In integers, since 2 ** -n leaves the range of a float: sum of C(n, k) over k < r, against the tail.
    """
    limit = int((1 - confidence) / 2 * 2**53) * (1 << n) >> 53
    term, total, rank = 1, 0, 0
    while total + term <= limit:
        total += term
        term = term * (n - rank) // (rank + 1)
        rank += 1
    return rank


def _exp(logs: Estimate) -> Estimate:
    estimate, low, high = (
        None if value is None else math.exp(value) for value in (logs.estimate, logs.low, logs.high)
    )
    return Estimate(estimate, low, high, logs.n, logs.confidence, logs.method)
