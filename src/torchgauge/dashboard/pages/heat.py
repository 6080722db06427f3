"""The colour of a ratio or a change: only where its interval excludes 1, in three depths, blue for better."""

from __future__ import annotations

import math

from torchgauge.records import Better

STEPS = (math.log(1.1), math.log(1.5))
"""Changes up to 10 % are pale and those above 50 % are deep, as log-ratios."""


def heat(ratio: float, half: float | None, better: Better) -> str:
    """``b1`` to ``b3`` for better, ``w1`` to ``w3`` for worse; empty where ``ratio`` may be 1.

    ``half`` is half of the interval in percent of the ratio; without one nothing is said.
    """
    if half is None or not ratio > 0:
        return ""
    if not (ratio * (1 - half / 100) > 1 or ratio * (1 + half / 100) < 1):
        return ""
    worse = better.worse(ratio - 1)
    if worse is None:
        return ""
    size = abs(math.log(ratio))
    return f"{'w' if worse else 'b'}{1 + sum(size > step for step in STEPS)}"
