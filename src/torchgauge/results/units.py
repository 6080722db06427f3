"""Every number that is shown becomes text here: base units in, units that people read out.

A number is given at least three significant digits, and as many more (up to six) as its interval needs
to show that it has a width.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from functools import lru_cache

from torchgauge.clock import utc

_SECONDS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
_BYTES = ((2.0**40, "TiB"), (2.0**30, "GiB"), (2.0**20, "MiB"), (2.0**10, "KiB"), (1.0, "B"))
_SI = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))

_SCALES: dict[str, Sequence[tuple[float, str]]] = {
    "s": [(factor, f" {name}") for factor, name in _SECONDS],
    "B": [(factor, f" {name}") for factor, name in _BYTES],
    "FLOP": [(factor, f" {prefix}FLOP") for factor, prefix in _SI],
    "FLOP/s": [(factor, f" {prefix}FLOP/s") for factor, prefix in _SI],
    "share": [(0.01, "%")],
    "B/s": [(factor, f" {prefix}B/s") for factor, prefix in _SI],
}
"""Factors of a base unit with what stands after the number, the largest first."""

SMALLEST = 1e-10
"""Below this a number is written with an exponent: its decimals would be zeros, and look like none."""
_WORD = re.compile(r"[\w°%]{1,24}(/[\w°%]{1,24})?")
"""A unit such as ``1/s``; any other text is in angle brackets, so that no sink takes it for our own."""
_WHOLE = frozenset({"count", "parameters"})
"""Units that are not written, and whose numbers may have no decimals."""


def quantity(value: float, unit: str) -> str:
    """One number in its unit, such as ``12.3 ms``."""
    return interval_parts(value, None, None, unit)[0]


def rough(value: float, unit: str) -> str:
    """A number in doubt, in words and with two digits: ``about 1.9 s``."""
    factor, suffix = _scale(value, unit)
    decimals = rough_decimals(value / factor)
    return f"about {round(value / factor, decimals):,.{max(0, decimals)}f}{suffix}"


def rough_decimals(value: float) -> int:
    """Decimals with which ``value`` has two significant digits; negative for tens and hundreds."""
    return 1 - math.floor(math.log10(abs(value))) if value else 1


def told(value: float, unit: str, inexact: bool) -> str:
    """A number in its unit, rough where it is ``inexact``."""
    return rough(value, unit) if inexact else quantity(value, unit)


def interval(value: float, low: float | None, high: float | None, unit: str) -> str:
    """A number with its interval, such as ``12.3 ms [12.1, 12.6]``; without one where an end is missing."""
    return " ".join(part for part in interval_parts(value, low, high, unit) if part)


def interval_parts(value: float, low: float | None, high: float | None, unit: str) -> tuple[str, str]:
    """The number and its interval apart, such as ``("12.3 ms", "[12.1, 12.6]")``; the second may be empty."""
    factor, suffix = _scale(value, unit)
    scaled = value / factor
    if 0 < abs(scaled) < SMALLEST:
        ends = () if low is None or high is None else (low / factor, high / factor)
        return f"{small_number(scaled)}{suffix}", f"[{', '.join(map(small_number, ends))}]" if ends else ""
    decimals = _decimals(scaled, _digits(value, low, high), whole=unit in _WHOLE)
    text = f"{scaled:,.{decimals}f}{suffix}"
    if low is None or high is None:
        return text, ""
    return text, f"[{low / factor:,.{decimals}f}, {high / factor:,.{decimals}f}]"


def small_number(value: float) -> str:
    """An error or a ratio of any size with three significant digits, such as ``1.19e-07``."""
    return f"{value:.3g}"


def integer(value: int) -> str:
    """A count with thousands separated."""
    return f"{value:,}"


def age(seconds: float) -> str:
    """How old something is, in its largest unit: ``5 min``, ``2 h``, ``3 d``."""
    for size, name in ((86_400.0, "d"), (3_600.0, "h"), (60.0, "min")):
        if seconds >= size:
            return f"{int(seconds // size)} {name}"
    return "under 1 min"


def duration(seconds: float) -> str:
    """How long something took: ``820 ms``, ``12.3 s``, ``4 min 5 s``, ``1 h 12 min``."""
    if seconds < 60:
        return quantity(seconds, "s")
    whole = round(seconds)
    if whole < 3_600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3_600} h {whole % 3_600 // 60} min"


def rough_duration(seconds: float) -> str:
    """How long something will probably take, to five seconds: ``45 s``, ``4 min 5 s``; never nothing."""
    rounded = max(5, 5 * round(seconds / 5))
    return f"{rounded} s" if rounded < 60 else duration(rounded)


def moment(seconds: float) -> str:
    """A point in time, UTC, to the minute."""
    return _minute(seconds // 60)


def day(seconds: float) -> str:
    """The day of a point in time, UTC."""
    return f"{utc(seconds):%Y-%m-%d}"


@lru_cache(maxsize=4096)
def _minute(number: float) -> str:
    """The minute ``number`` after the epoch; the pages of a site name few of them thousands of times."""
    return f"{utc(number * 60):%Y-%m-%d %H:%M} UTC"


def _scale(value: float, unit: str) -> tuple[float, str]:
    """What ``value`` is divided by, and what stands after it."""
    scales = _SCALES.get(unit)
    if scales is None or value == 0:
        return 1.0, _suffix(unit)
    size = abs(value)
    for scale in scales:
        if size >= scale[0] * 0.9995:
            return scale
    return scales[-1]


def _suffix(unit: str) -> str:
    if unit == "ratio":
        return "x"
    if unit == "share":
        return "%"
    if unit in _WHOLE:
        return ""
    return f" {unit}" if _WORD.fullmatch(unit) else f" <{unit}>"


def _digits(value: float, low: float | None, high: float | None) -> int:
    if low is None or high is None or not high > low or value == 0:
        return 3
    sharpness = abs(value) / (high - low)
    if not 0 < sharpness < math.inf:
        return 3
    return min(6, max(3, math.ceil(math.log10(sharpness)) + 1))


def _decimals(scaled: float, digits: int, *, whole: bool) -> int:
    if whole and scaled == int(scaled):
        return 0
    magnitude = math.floor(math.log10(abs(scaled))) if scaled else 0
    return max(0, min(12, digits - 1 - magnitude))


def shortened(text: str, limit: int) -> str:
    """``text``, or its beginning with three dots, in at most ``limit`` characters."""
    return text if len(text) <= limit else text[: limit - 3].rstrip() + "..."
