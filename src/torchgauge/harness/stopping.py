"""The worker's stopping rule: standard library only, because the worker has no numpy of ours.

The interval is the order-statistic interval of the median: with sorted samples x(1)..x(n), the interval
[x(k), x(n-k+1)] covers the median with probability 1 - 2 P(B <= k-1), B ~ Binomial(n, 1/2)
(Conover, Practical Nonparametric Statistics, 3rd ed., section 3.2).

The interval is right for independent samples. Samples that resemble the one before hold less than their
number says, so the rule widens what it asks for by their correlation (:func:`widening`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from statistics import NormalDist, median


@lru_cache(maxsize=4096)
def interval_rank(n: int, confidence: float) -> int:
    """Largest k for which [x(k), x(n-k+1)] covers the median with ``confidence``; 0 where none does."""
    tail = (1.0 - confidence) / 2.0
    if n > 1000:
        spread = NormalDist().inv_cdf(1.0 - tail) * math.sqrt(n) / 2.0
        return max(0, math.floor(n / 2.0 - spread))
    total, limit, k = 0, tail * 2.0**n, 0
    while True:
        total += math.comb(n, k)
        if total > limit:
            return k
        k += 1


def relative_half_width(samples: Sequence[float], confidence: float) -> float:
    """Half the width of the median's interval over the median; infinite where n is too small."""
    rank = interval_rank(len(samples), confidence)
    middle = median(samples) if samples else 0.0
    if rank == 0 or middle == 0.0:
        return math.inf
    ordered = sorted(samples)
    return (ordered[-rank] - ordered[rank - 1]) / 2.0 / abs(middle)


def resemblance(samples: Sequence[float]) -> float:
    """Rank correlation of consecutive samples: about 0 for independent ones, whose bias -1/n is taken out."""
    n = len(samples)
    if n < 3:
        return 0.0
    places: dict[float, list[int]] = {}
    for place, value in enumerate(sorted(samples)):
        places.setdefault(value, []).append(place)
    ranks = [(places[value][0] + places[value][-1] - (n - 1)) / 2.0 for value in samples]
    whole = sum(rank * rank for rank in ranks)
    return sum(a * b for a, b in pairwise(ranks)) / whole + 1.0 / n if whole else 0.0


def widening(correlation: float) -> float:
    """By how much more an estimate varies than that from independent samples: sqrt((1 + r) / (1 - r)).

    For a first-order autoregressive process; 1 where ``correlation`` is negative, at most 4.4.
    """
    r = min(0.9, max(0.0, correlation))
    return math.sqrt((1.0 + r) / (1.0 - r))


def log_ratio_half_width(base: Sequence[float], other: Sequence[float], confidence: float) -> float:
    """Half the width of the interval of the median paired log ratio; infinite where n is too small."""
    rank = interval_rank(len(base), confidence)
    if rank == 0 or min(base) <= 0.0 or min(other) <= 0.0:
        return math.inf
    ratios = sorted(math.log(b / o) for b, o in zip(base, other, strict=True))
    return (ratios[-rank] - ratios[rank - 1]) / 2.0
