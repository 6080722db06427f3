"""How much samples resemble those before them, and how much wider that makes an interval of their median.

Standard library only: the worker decides by it when to stop sampling, and the store says the interval by the
same rule.

Two things widen. Neighbours: the factor of a first-order autoregressive process, with the bias of a few
samples taken out (Kendall, Note on bias in the estimation of autocorrelation, Biometrika 41, 1954). And what
lasts: on a machine with two speeds that stay for fifty steps neighbours resemble each other little where
steps scatter much, and yet all of them share its regime. So from ``LONG`` samples on all lags count, as far
as the sums of two successive ones are positive and do not grow (the initial monotone sequence of Geyer,
Practical Markov chain Monte Carlo, Statistical Science 7, 1992).
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections.abc import Callable, Sequence
from operator import mul, sub

REGIME = 8
"""A regime is seen where it lasts for one in so many of the samples."""
APART = 2.5
"""Standard errors of its median by which a regime lies away from that of all samples."""
FEWEST = 6
"""Samples from which their autocorrelation is looked at: fewer have no interval that it could widen."""
LONG = 30
"""Samples from which more than the neighbours is looked at."""
MANY = 256
"""Samples from which all lags are looked at by one transform, where the caller has one."""
AllLags = Callable[[Sequence[float]], Sequence[float]]
"""The correlations of ranks of mean 0 at each lag up to half of them."""
_NORMAL_STEP = 0.9539
"""Median size of the difference of two independent standard normal numbers."""
STRONGEST = 0.9
"""Autocorrelation of neighbours that is believed at most, and so a factor of 4.4 at most from them alone."""


def lag_1_autocorrelation(samples: Sequence[float]) -> float:
    """Rank correlation of consecutive samples: about 0 for independent ones, 1 for a drift.

    0 for fewer than ``FEWEST``. The bias of n samples, -(1 + 3r) / n, is taken out.
    """
    n = len(samples)
    if n < FEWEST:
        return 0.0
    ranks = _ranks(samples)
    return _unbiased(_correlation(ranks, 1, sum(map(mul, ranks, ranks))), n)


def interval_inflation(
    samples: Sequence[float], all_lags: AllLags | None = None, ordered: Sequence[float] = ()
) -> float:
    """By how much more the median of ``samples``, in their order, varies than that of independent ones.

    ``all_lags`` is for who has numpy: a drift has hundreds of lags, each as dear as all samples. ``ordered``
    are the samples by size, for who has them.
    """
    n = len(samples)
    if n < FEWEST:
        return 1.0
    ranks = _ranks(samples, ordered)
    lags = all_lags(ranks) if all_lags is not None and n >= MANY else ()
    whole = sum(map(mul, ranks, ranks))
    first = _correlation(ranks, 1, whole)
    r = min(STRONGEST, max(0.0, _unbiased(first, n)))
    neighbours = (1.0 + r) / (1.0 - r)
    return math.sqrt(max(neighbours, _lasting(ranks, first, lags, whole) if n >= LONG else 1.0))


def effective_sample_size(samples: Sequence[float], all_lags: AllLags | None = None) -> float:
    """As many independent samples say as much of the median as ``samples`` do."""
    return len(samples) / interval_inflation(samples, all_lags) ** 2


def regimes(
    samples: Sequence[float], wider: float | None = None, ordered: Sequence[float] = ()
) -> tuple[float, float] | None:
    """Medians of the lowest and the highest stretch of ``samples``, where one of them is a regime of its own.

    ``wider`` is their :func:`interval_inflation`, and ``ordered`` they are by size, where these are known.

    None where no stretch of an eighth of them lies apart from the rest by more than their scatter and their
    autocorrelation explain, and for fewer than ``LONG``. The scatter is that of neighbours: no regime widens
    it.
    """
    n = len(samples)
    if n < LONG:
        return None
    ordered = ordered or sorted(samples)
    size, median = n // REGIME, middle(ordered)
    scatter = middle(sorted(map(abs, map(sub, samples[1:], samples)))) / _NORMAL_STEP
    wider = interval_inflation(samples, ordered=ordered) if wider is None else wider
    limit = APART * math.sqrt(math.pi / 2.0 / size) * scatter * wider
    edge = (size - 1) // 2  # no stretch has a median beyond these of all samples
    if max(median - ordered[edge], ordered[-1 - edge] - median) <= limit:
        return None
    found = _medians(samples, size)
    low, high = min(found), max(found)
    return (low, high) if max(median - low, high - median) > limit else None


def middle(ordered: Sequence[float]) -> float:
    """The median of samples that are ``ordered`` by size."""
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def _medians(samples: Sequence[float], size: int) -> list[float]:
    """The median of each stretch of ``size`` samples: one comes and one goes, and the others stay sorted."""
    window, lower, upper = sorted(samples[:size]), (size - 1) // 2, size // 2
    found = [(window[lower] + window[upper]) / 2]
    for gone, come in zip(samples, samples[size:], strict=False):
        del window[bisect_left(window, gone)]
        insort(window, come)
        found.append((window[lower] + window[upper]) / 2)
    return found


def _ranks(samples: Sequence[float], ordered: Sequence[float] = ()) -> list[float]:
    """Ranks around 0, ties sharing theirs."""
    n, ordered = len(samples), ordered or sorted(samples)
    last = dict(zip(ordered, range(n), strict=True))
    if len(last) == n:
        return [last[value] - (n - 1) / 2.0 for value in samples]
    first = dict(zip(reversed(ordered), range(n - 1, -1, -1), strict=True))
    shared = {value: (first[value] + place - (n - 1)) / 2.0 for value, place in last.items()}
    return [shared[value] for value in samples]


def _correlation(ranks: Sequence[float], lag: int, whole: float) -> float:
    """That of ``ranks``, the sum of whose squares is ``whole``, with those ``lag`` places on."""
    return sum(map(mul, ranks, ranks[lag:])) / whole if whole else 0.0


def _unbiased(found: float, n: int) -> float:
    return max(-1.0, min(1.0, (found * n + 1.0) / (n - 3.0))) if found else 0.0


def _lasting(ranks: Sequence[float], first: float, lags: Sequence[float], whole: float) -> float:
    """1 + twice the sum over lags, by the initial monotone sequence; ``lags`` are known ones, or none."""
    pair = 1.0 + first
    total, lag = pair, 2
    while lag + 1 < len(ranks) // 2:
        one = lags[lag] if lags else _correlation(ranks, lag, whole)
        two = lags[lag + 1] if lags else _correlation(ranks, lag + 1, whole)
        pair = min(pair, one + two)
        if pair <= 0.0:
            break
        total += pair
        lag += 2
    return 2.0 * total - 1.0
