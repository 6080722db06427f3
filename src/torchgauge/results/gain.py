"""The one sign of a ratio that a person reads: above 1 is better.

Stored ratios are new over old. The ratio of times or bytes is inverted when it is shown, which makes it a
speed-up or a compression. ``static/number_text.js`` has the same rule for a page.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from torchgauge import registry
from torchgauge.records import METRICS, Better, Metric
from torchgauge.results import units

Interval = tuple[float | None, float | None, float | None]


def inverse(ratio: float, low: float, high: float) -> tuple[float, float, float]:
    """Return the inverse of a ratio with the ends of its interval."""
    return 1 / ratio, 1 / high, 1 / low


def turned(better: Better, ratio: float | None, low: float | None, high: float | None) -> Interval:
    """Return a ratio of new over old and its interval so that above 1 is better."""
    if better is not Better.LOWER:
        return ratio, low, high
    ratio, low, high = (1 / each if each else None for each in (ratio, high, low))
    return ratio, low, high


def gain_parts(better: Better, ratio: float | None, low: float | None, high: float | None) -> tuple[str, str]:
    """Return ``1.13x`` and ``[1.10, 1.15]`` of a ratio of new over old; empty where there is none."""
    shown, low, high = turned(better, ratio, low, high)
    if shown is None or not math.isfinite(shown):
        return "", ""
    banded = low is not None and high is not None and math.isfinite(low) and math.isfinite(high)
    return units.interval_parts(shown, low if banded else None, high if banded else None, "ratio")


def gain_text(metric: str, ratio: float | None, low: float | None, high: float | None) -> str:
    """Return both parts of :func:`gain_parts` in one text."""
    return " ".join(filter(None, gain_parts(_metric(metric).better, ratio, low, high)))


def named_gain(metric: str, ratio: float | None, low: float | None, high: float | None) -> str:
    """Return ``speed-up 1.13x [1.10, 1.15]``; empty without a ratio."""
    text = gain_text(metric, ratio, low, high)
    return f"{_metric(metric).gain} {text}" if text else ""


def gain_names(metrics: Iterable[str]) -> str:
    """Return the head of a column of such ratios: ``speed-up``, or ``speed-up or compression``."""
    return " or ".join(dict.fromkeys(_metric(each).gain for each in metrics)) or "speed-up"


def change_text(size: float, unit: str) -> str:
    """Return a relative change: ``+12.0% time``, or ``+12.0%`` of a metric that is not a time."""
    return f"{size:+.1%}{' time' if unit == 's' else ''}"


def _metric(name: str) -> Metric:
    """Return the metric ``name``, or ``latency`` for names that are not metrics, all of them times."""
    return registry.metrics().get(name, METRICS["latency"])
