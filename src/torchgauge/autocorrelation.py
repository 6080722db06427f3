"""How much samples resemble the one before, and how much wider that makes an interval of their median.

Standard library only: the worker decides by it when to stop sampling, and the store says the interval by the
same rule.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise


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
