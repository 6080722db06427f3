"""Numbers of a matrix as text: one unit per table, as many digits as the interval warrants."""

from __future__ import annotations

import math
from dataclasses import dataclass

from torchgauge.dashboard.plain_rows import Row
from torchgauge.records import Metric
from torchgauge.results import units

MINUS = "\N{MINUS SIGN}"
TIMES = "x"
NO_NUMBER = "\N{EN DASH}"


@dataclass(frozen=True)
class Scale:
    """What a base unit is divided by in a table, and the name of the result."""

    factor: float
    name: str


SCALES: dict[str, Scale] = {
    "s": Scale(1e-3, "ms"),
    "B": Scale(2.0**20, "MiB"),
    "ratio": Scale(1.0, TIMES),
    "share": Scale(0.01, "%"),
}
SECONDS = Scale(1.0, "s")


def scale_of(metric: Metric) -> Scale:
    """How numbers of ``metric`` stand in a table."""
    if metric.name.startswith(("compile", "import")):
        return SECONDS
    return SCALES.get(metric.unit, Scale(1.0, metric.unit))


def half_percent(number: Row) -> float | None:
    """Half of the interval in percent of the median: the wider side; None where there is none."""
    median, low, high = number["median"], number["low"], number["high"]
    if median is None or low is None or high is None or median <= 0:
        return None
    return round(100 * max(high - median, median - low) / median, 4)  # type: ignore[no-any-return]


def together(left: float | None, right: float | None) -> float | None:
    """Half of the interval of a ratio of two independent numbers, in percent; None where one has none."""
    return None if left is None or right is None else math.hypot(left, right)


def digits(value: float, half: float | None = None) -> str:
    """``value`` with four significant digits where half of its interval is below 1 %, else with three."""
    wanted = 4 if half is not None and half < 1 else 3
    magnitude = math.floor(math.log10(value)) if value > 0 else 0
    return f"{value:,.{max(0, wanted - 1 - magnitude)}f}"


def rounded(value: float) -> str:
    """``value`` with two significant digits: what stands after "about" of a number in doubt."""
    decimals = units.rough_decimals(value)
    return f"{round(value, decimals):,.{max(0, decimals)}f}"


def spread(half: float | None) -> str:
    """Half of an interval, such as ``±0.8%``, or that there are too few samples for one."""
    if half is None:
        return "n<6"
    if half > 999:
        return "±>999%"
    if half >= 10:
        return f"±{half:.0f}%"
    return f"±{half:.2g}%" if half >= 1 else f"±{half:.1g}%" if half >= 0.001 else "±0%"


def change(ratio: float, half: float | None = None, unit: str = "") -> str:
    """A ratio as a change in percent with its sign, such as ``+1.2%``; one that rounds to 0 has none.

    One of seconds says that it is of time.
    """
    percent = 100 * (ratio - 1)
    decimals = 2 if half is not None and half < 0.1 else 1 if abs(percent) < 100 else 0
    text = f"{abs(percent):,.{decimals}f}%"
    sign = (MINUS if percent < 0 else "+") if text.strip("0.%") else ""
    return f"{sign}{text}{' time' if unit == 's' else ''}"
