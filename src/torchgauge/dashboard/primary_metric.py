"""By which number a mode is looked at: that for which its scenario measures, such as tokens per second."""

from __future__ import annotations

from collections import Counter

from torchgauge.dashboard.latest_results import LatestResults
from torchgauge.harness.scenarios.scenario import final_metric
from torchgauge.records import METRICS, Better, is_metric_name


def primary_metrics(latest: LatestResults) -> dict[str, str]:
    """The metric of each mode.

    The scenario says it. Where no row has that one, since the scenario's package is not installed where the
    site is built, it is what most rows of the mode have, and a metric of a package before torchgauge's own.
    """
    seen: dict[str, set[str]] = {}
    counts: dict[str, Counter[str]] = {}
    for (workload, _), entry in latest.entries.items():
        seen.setdefault(workload.mode, set()).update(entry.numbers)
        count = counts.setdefault(workload.mode, Counter())
        count.update(name for name, number in entry.numbers.items() if number["median"] is not None)
    found = {}
    for mode, there in seen.items():
        wanted = final_metric(mode)
        others = {name: n for name, n in counts[mode].items() if _can_be_better(name)}
        if wanted in there or not others:
            found[mode] = wanted
        else:
            found[mode] = min(others, key=lambda name: (-others[name], name in METRICS, name))
    return found


def _can_be_better(name: str) -> bool:
    known = METRICS.get(name)
    return is_metric_name(name) and (known is None or known.better is not Better.NEITHER)
