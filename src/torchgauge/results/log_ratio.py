"""Ratios from their logarithms: what is beyond all that machines do saturates, and never ends a report."""

from __future__ import annotations

import math

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
