"""Ratios from their logarithms, with their intervals.

What is beyond all that machines do saturates, and never ends a report.
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Any

FARTHEST = 700.0
"""Largest logarithm of a ratio that is told; a float ends at 709."""
LEAST = -36.0
"""Least logarithm of a change: below it the change would be -1, of which there is no logarithm again."""


def ratio_of(log: float) -> float:
    """The ratio whose natural logarithm is ``log``, at most e to the :data:`FARTHEST` either way."""
    return math.exp(min(max(log, -FARTHEST), FARTHEST))


def change_of(log: float) -> float:
    """The relative change of the logarithm ``log``: above -1, and at most as :func:`ratio_of` says."""
    return math.expm1(min(max(log, LEAST), FARTHEST))


def variance_of(low: float | None, high: float | None, confidence: float) -> float | None:
    """The variance of a log median that its interval says, as if it were normal; None without an interval."""
    if low is None or high is None or low <= 0:
        return None
    return ((math.log(high) - math.log(low)) / (2 * NormalDist().inv_cdf((1 + confidence) / 2))) ** 2


def ratio_interval(below: Any, above: Any) -> tuple[Any, Any, Any]:
    """Logarithm of ``above`` over ``below`` and of both ends of its interval; NaN where unknown.

    Both are median, low and high, numbers or arrays of them. On logarithms the halves that face each other
    add in squares: two intervals that overlap are no test of a difference.
    """
    import numpy as np

    with np.errstate(invalid="ignore", divide="ignore"):
        (at, low, high), (over, over_low, over_high) = np.log(below), np.log(above)
        ratio = over - at
        down, up = np.hypot(over - over_low, high - at), np.hypot(over_high - over, at - low)
        return ratio, ratio - down, ratio + up
