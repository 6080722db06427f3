"""How a whole device and configuration moves over one epoch, and how many of its cases pass.

A point is the geometric mean of ratios: every case at that snapshot over the same case at the reference, the
first snapshot of the epoch with nearly all cases. Only cases with a usable number at both take part, so both
sides of every point are the same models; how many stands beside it. One set for the whole epoch would be
empty soon: where one case in twenty misses a night, the set of those that never did halves every two weeks.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec
import numpy as np

from torchgauge.dashboard.arrow_columns import Bits, Floats, Integers
from torchgauge.dashboard.epoch import Epoch
from torchgauge.dashboard.history import MEDIAN, NOTHING_PLANNED, STATUSES, History
from torchgauge.dashboard.names import device_id
from torchgauge.dashboard.statuses import SAYS_NOTHING
from torchgauge.records import UNTIMED, Subject, View, in_view

SCHEMA = 1
CORE = in_view(View.CORE)
EXTRA = tuple(name for name in in_view(View.HISTORY) if name not in CORE)
"""The metrics of a trend's first file and of its second."""

ENOUGH = 0.75
"""Share of the best snapshot's numbers with which a snapshot may be the reference."""

FEWEST = 0.5
"""Share of the reference's numbers below which a snapshot has no point: a few models by hand are no night."""

_SAYS_NOTHING = np.array([s in SAYS_NOTHING for s in STATUSES] + [True] * (256 - len(STATUSES)))


@dataclass(frozen=True)
class MeanLine:
    """One metric of a line: ratios to the snapshot at place ``reference``; NaN where there is no point.

    ``low`` and ``high`` are the 95 % interval over the cases (Student's t on logarithms; NaN for one or two);
    ``cases`` are all that have a number anywhere in the epoch, of which ``n`` take part in each point.
    """

    reference: int
    cases: int
    median: Floats
    low: Floats
    high: Floats
    n: Integers


@dataclass(frozen=True)
class TrendLine:
    """One device and configuration; ``suite`` is empty for all suites together.

    ``passed`` counts cases per snapshot, -1 where nothing was heard of any; ``planned`` counts all.
    ``doubts`` counts those whose step times are in no mean, by the reason; those that occur.
    """

    device: str
    configuration: str
    suite: str
    passed: Integers
    planned: Integers
    metrics: Mapping[str, MeanLine]
    doubts: Mapping[str, Integers] = field(default_factory=dict)


def trend_lines(window: History, metrics: Sequence[str], suites: bool = True) -> tuple[TrendLine, ...]:
    """The lines of all devices and configurations of ``window``, which is one epoch or a part of one."""
    groups: dict[tuple[str, bool, str, str], list[int]] = {}
    for row, case in enumerate(window.cases):
        if case.workload.subject is not Subject.MODELS:
            continue
        for suite in ("", case.workload.suite) if suites else ("",):
            key = case.device, case.column.compiled, case.column.configuration, suite
            groups.setdefault(key, []).append(row)
    passed = window.counted
    said = ~_SAYS_NOTHING[window.status]
    logs = {name: usable_logs(window, name, passed) for name in metrics if name in window.values}
    doubted = {modifier.value: window.mark(modifier.value) & ~window.timed for modifier in sorted(UNTIMED)}
    doubted["toy"] = window.timed & window.toys[:, None]
    found = []
    for (device, _, configuration, suite), members in sorted(groups.items()):
        rows = np.array(members, np.int64)
        counts = np.where(said[rows].any(axis=0), passed[rows].sum(axis=0), -1)
        planned = (window.status[rows] != NOTHING_PLANNED).sum(axis=0)
        toys = window.toys[rows]
        means = {
            name: line for name, array in logs.items() if (line := mean_line(array[rows], toys)) is not None
        }
        doubts = {name: number for name, bits in doubted.items() if (number := bits[rows].sum(axis=0)).any()}
        found.append(TrendLine(device, configuration, suite, counts, planned, means, doubts))
    return tuple(found)


def usable_logs(window: History, metric: str, passed: Bits) -> Floats:
    """Logarithms of the medians that may enter a mean, NaN elsewhere."""
    median = window.values[metric][MEDIAN]
    found = np.full(median.shape, np.nan)
    counts = passed & window.comparable(metric)
    np.log(median, out=found, where=counts & (median > 0) & np.isfinite(median))
    return found


def mean_line(logs: Floats, toys: Bits) -> MeanLine | None:
    """The line of cases with ``logs[cases, snapshots]`` without ``toys``; None without any number."""
    numbers = np.isfinite(logs)
    there = numbers & ~toys[:, None]
    counts = there.sum(axis=0)
    best = int(counts.max(initial=0))
    if not best:
        return None
    reference = int(np.flatnonzero(counts >= ENOUGH * best)[0])
    both = there & there[:, [reference]]
    moved = np.where(both, logs - logs[:, [reference]], 0.0)
    n = both.sum(axis=0)
    mean, half = mean_and_half(moved, both)
    shown = n >= max(1.0, FEWEST * n[reference])
    median = np.where(shown, np.exp(mean), np.nan)
    with np.errstate(over="ignore"):
        low, high = np.where(shown, np.exp(mean - half), np.nan), np.where(shown, np.exp(mean + half), np.nan)
    return MeanLine(reference, int(numbers.any(axis=1).sum()), median, low, high, n)


def mean_and_half(values: Floats, counted: Bits) -> tuple[Floats, Floats]:
    """Mean over the first axis of what is ``counted``, and half of its 95 % interval by Student's t.

    NaN stands for a mean of nothing and for the interval of fewer than three values.
    """
    n = counted.sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(counted, values, 0.0).sum(axis=0) / n
        squares = np.where(counted, (values - mean) ** 2, 0.0).sum(axis=0)
        error = np.sqrt(squares / (n - 1) / n)
    quantiles = _QUANTILES[np.minimum(n, len(_QUANTILES) - 1)]
    return mean, np.where(n > 2, quantiles * error, np.nan)


def student(freedom: Integers) -> Floats:
    """The 97.5 % quantile of Student's t to 0.12 %: closed forms, then Hill's expansion (1970).

    ``static/contrast.js`` has the same, so that a mean in the browser has the digits of the page.
    """
    z, v = 1.959963985, np.maximum(freedom, 1).astype(np.float64)
    found: Floats = (
        z
        + (z**3 + z) / (4 * v)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * v**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * v**3)
        + (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / (92160 * v**4)
    )
    found[v == 1] = math.tan(math.pi * 0.475)
    found[v == 2] = 0.95 * math.sqrt(2 / (1 - 0.95**2))
    return np.where(freedom < 1, np.nan, found)


_QUANTILES = student(np.arange(-1, 10_000))
"""By the number of values; one device has no more models."""


def files(epoch: Epoch) -> Iterator[tuple[str, bytes]]:
    """``trends/EPOCH.json``, which names its devices, and two files for each."""
    extra = tuple(name for name in dict.fromkeys(EXTRA + epoch.primaries) if name not in CORE)
    lines = trend_lines(epoch.window, CORE + extra)
    devices = tuple(dict.fromkeys(line.device for line in lines))
    ids = [snapshot.id for snapshot in epoch.window.snapshots]
    index = {
        "schema": SCHEMA,
        "epoch": epoch.number,
        "snapshots": ids,
        "devices": [device_id(d) for d in devices],
    }
    yield f"trends/{epoch.number}.json", msgspec.json.encode(index)
    for device in devices:
        own = [line for line in lines if line.device == device]
        head = {
            "schema": SCHEMA,
            "device": device,
            "epoch": epoch.number,
            "snapshots": ids,
        }
        for part, names in (("core", CORE), ("extra", extra)):
            content = head | {"lines": [_plain(line, names) for line in own]}
            yield f"trends/{device_id(device)}/{epoch.number}.{part}.json", msgspec.json.encode(content)


def _plain(line: TrendLine, names: Sequence[str]) -> dict[str, object]:
    return {
        "configuration": line.configuration,
        "suite": line.suite,
        "passed": [count if count >= 0 else None for count in line.passed.tolist()],
        "planned": line.planned.tolist(),
        "doubts": {name: counts.tolist() for name, counts in line.doubts.items()},
        "metrics": {
            name: {
                "reference": found.reference,
                "cases": found.cases,
                "median": np.round(found.median, 4).tolist(),
                "low": np.round(found.low, 4).tolist(),
                "high": np.round(found.high, 4).tolist(),
                "n": found.n.tolist(),
            }
            for name in names
            if (found := line.metrics.get(name)) is not None
        },
    }
