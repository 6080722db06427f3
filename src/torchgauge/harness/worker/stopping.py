"""The worker's stopping rule: standard library only, because the worker has no numpy of ours.

The interval is the order-statistic interval of the median: with sorted samples x(1)..x(n), the interval
[x(k), x(n-k+1)] covers the median with probability 1 - 2 P(B <= k-1), B ~ Binomial(n, 1/2)
(Conover, Practical Nonparametric Statistics, 3rd ed., section 3.2).

The interval is right for independent samples. Samples that resemble the one before hold less than their
number says, so the rule widens what it asks for by their correlation
(:mod:`torchgauge.autocorrelation`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
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


def log_ratio_half_width(base: Sequence[float], other: Sequence[float], confidence: float) -> float:
    """Half the width of the interval of the median paired log ratio; infinite where n is too small."""
    rank = interval_rank(len(base), confidence)
    if rank == 0 or min(base) <= 0.0 or min(other) <= 0.0:
        return math.inf
    ratios = sorted(math.log(b / o) for b, o in zip(base, other, strict=True))
    return (ratios[-rank] - ratios[rank - 1]) / 2.0
