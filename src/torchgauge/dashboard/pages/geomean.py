"""Geometric means over workloads: which numbers take part, which do not, and why."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from torchgauge.dashboard.board import Column, Entry
from torchgauge.dashboard.statuses import LOOKS
from torchgauge.results import stats, units


@dataclass(frozen=True)
class Mean:
    """A geometric mean as text; ``value`` is empty where no workload has a number."""

    value: str
    interval: str
    n: int

    @property
    def text(self) -> str:
        """The mean with its interval."""
        return f"{self.value} {self.interval}".strip()


@dataclass(frozen=True)
class Exclusion:
    """A workload that takes no part in a mean over the common set, with the columns that lack it."""

    workload: str
    reasons: tuple[str, ...]


def usable(entry: Entry, metric: str) -> tuple[float | None, str]:
    """The value of ``metric`` that may enter a mean, or None and the reason why not."""
    number = entry.numbers.get(metric)
    if not entry.fully_passed:
        return None, "degraded" if entry.status.value == "pass" else LOOKS[entry.status].code
    if "stale" in entry.marks:
        return None, "stale"
    if number is None:
        return None, "not measured"
    if number.median is None:
        return None, number.absent
    if not (number.median > 0 and math.isfinite(number.median)):
        return None, "not positive"
    return number.median, ""


def values(entries: Sequence[Entry], metric: str) -> dict[str, float | None]:
    """What may enter a mean, by workload."""
    return {entry.workload.name: usable(entry, metric)[0] for entry in entries}


def mean(numbers: Mapping[str, float | None], unit: str, within: Collection[str] | None = None) -> Mean:
    """The geometric mean of ``numbers`` over ``within``."""
    found = stats.geometric_mean(numbers, within)
    if found.estimate is None:
        return Mean("", "", 0)
    value, bracket = units.interval_parts(found.estimate, found.low, found.high, unit)
    return Mean(value, bracket, found.n)


def exclusions(
    columns: Mapping[Column, Sequence[Entry]],
    metric: str,
    common: Collection[str],
    built_differently: Collection[str],
) -> tuple[Exclusion, ...]:
    """The workloads outside ``common``, each with the columns that lack a number and why."""
    names = {entry.workload.name for entries in columns.values() for entry in entries} - set(common)
    reasons: dict[str, list[str]] = {
        name: ["built differently, not comparable"] if name in built_differently else []
        for name in sorted(names)
    }
    for column, entries in columns.items():
        by_name = {entry.workload.name: entry for entry in entries}
        for name, said in reasons.items():
            entry = by_name.get(name)
            why = usable(entry, metric)[1] if entry else "not planned"
            if why:
                said.append(f"{column.name}: {why}")
    return tuple(Exclusion(name, tuple(said)) for name, said in reasons.items())
