"""Where a value stands on an axis, and the values that are written under it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

FARTHEST = math.log(1000)
"""The largest log-ratio that has a place of its own; what is beyond stands at the edge."""


@dataclass(frozen=True)
class LogAxis:
    """Ratios from ``low`` to ``high`` on a log scale between the places ``start`` and ``stop``."""

    low: float
    high: float
    start: float
    stop: float

    @staticmethod
    def around(logs: Iterable[float], start: float, stop: float) -> LogAxis:
        """The axis on which all of ``logs`` and 1 have room; beyond :data:`FARTHEST` nothing counts."""
        found = [0.0, *(min(FARTHEST, max(-FARTHEST, each)) for each in logs if math.isfinite(each))]
        low, high = min(found), max(found)
        margin = max(0.02, 0.06 * (high - low))
        return LogAxis(low - margin, high + margin, start, stop)

    def at(self, log: float) -> float:
        """The place of a log-ratio, on the axis."""
        share = (min(self.high, max(self.low, log)) - self.low) / (self.high - self.low)
        return self.start + share * (self.stop - self.start)

    def ticks(self, most: int) -> Sequence[float]:
        """At most ``most`` ratios, 1 among them."""
        for step in _STEPS:
            found = _linear(self.low, self.high, step) if step < 1 else series_of(self.low, self.high, step)
            if len(found) <= most:
                return found
        return (1.0,)


_STEPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 3.0)
"""From one tick to the next: a difference below 1, and from 1 on how coarse the series of 1, 2, 5 is."""

_SERIES = {1.0: (1, 1.5, 2, 3, 5, 7), 2.0: (1, 2, 5), 3.0: (1,)}


def _linear(low: float, high: float, step: float) -> list[float]:
    first, last = math.exp(low), math.exp(high)
    if last / first > 3:
        return [1.0] * 99
    return [
        round(1 + n * step, 4)
        for n in range(math.ceil((first - 1) / step), math.floor((last - 1) / step) + 1)
    ]


def series_of(low: float, high: float, step: float) -> list[float]:
    """Round numbers whose logarithms lie between ``low`` and ``high``, by the coarseness ``step``."""
    found = [
        float(f"{factor}e{power}")
        for power in range(math.floor(low / math.log(10)), math.ceil(high / math.log(10)) + 1)
        for factor in _SERIES[step]
    ]
    return [each for each in found if low <= math.log(each) <= high]


@dataclass(frozen=True)
class CountAxis:
    """Counts from 0 to ``most`` between the places ``start`` and ``stop``."""

    most: int
    start: float
    stop: float

    def at(self, count: float) -> float:
        """The place of a count."""
        return self.start + count / max(1, self.most) * (self.stop - self.start)

    def ticks(self, most: int) -> Sequence[int]:
        """At most ``most`` whole counts with 0."""
        step = 1
        while self.most // step + 1 > most:
            step = _next(step)
        return range(0, self.most + 1, step)


def _next(step: int) -> int:
    lead = int(str(step)[0])
    return step * 2 if lead in (1, 5) else step * 5 // 2
