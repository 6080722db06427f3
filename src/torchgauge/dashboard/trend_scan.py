"""The search for changes of level in a build of a site, where nobody ran ``torchgauge results trend``.

The same detector on the same tables; what it finds is on the pages and is not kept, since a build only reads.
"""

from __future__ import annotations

import numpy as np

from torchgauge.dashboard.context import SiteContext
from torchgauge.dashboard.history import MEDIAN
from torchgauge.results.trends.trend_findings import Look, TrendFilter, look_of

MOST_NUMBERS = 16_000
"""Numbers of a store that a build looks at: the detector takes half a millisecond for each, 8 s at most."""

ENOUGH = 20
"""Nights with a number that a series must have before the detector says anything: its warm-up."""


COMMAND = "torchgauge results trend"
"""What looks at any number of them."""


def scan(context: SiteContext) -> tuple[tuple[Look, ...], str]:
    """What the store's series say, by metric; where none was looked at, why not."""
    metrics = [metric.name for metric in context.primaries if _longest(context, metric.name) >= ENOUGH]
    if not metrics:
        return (), f"regression detection requires {ENOUGH} nights with a number; no case has so many yet"
    numbers = sum(_numbers(context, metric) for metric in metrics)
    if numbers > MOST_NUMBERS:
        return (), f"not computed for a store this large; run {COMMAND}"
    from torchgauge.results.trends.trend import trend  # pandas: a tenth of the time of a large build

    found = []
    for metric in metrics:
        wanted = TrendFilter(metric=metric)
        found.append(look_of(trend(context.store, wanted), wanted, context.now))
    return tuple(found), ""


def _longest(context: SiteContext, metric: str) -> int:
    """Nights with a number of the longest series in the recent snapshots."""
    values = context.recent.values.get(metric)
    return 0 if values is None else int((~np.isnan(values[MEDIAN])).sum(axis=1).max(initial=0))


def _numbers(context: SiteContext, metric: str) -> int:
    """About how many numbers the store has, if its past is as its recent snapshots are."""
    values, recent = context.recent.values[metric], len(context.recent.snapshots)
    return round(int((~np.isnan(values[MEDIAN])).sum()) * len(context.snapshots) / max(recent, 1))
