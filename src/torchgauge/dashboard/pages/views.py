"""The views of the performance matrix: which metric, and what a number is a ratio to.

Every view is a page of its own, so that each is complete without scripts and stays small.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import NamedTuple

from torchgauge.dashboard.latest_results import Column, Entry, LatestResults
from torchgauge.dashboard.pages import geomean
from torchgauge.dashboard.pages.noise import Movement
from torchgauge.dashboard.pages.number_text import half_percent, together
from torchgauge.records import METRICS, Workload

EAGER = "eager"
"""The configuration that is the baseline of its device where a device has it."""


class Against(Enum):
    """What a number is a ratio to."""

    NOTHING = "absolute"
    EAGER = "eager"
    DEVICE = "device"
    BEFORE = "previous"


@dataclass(frozen=True)
class View:
    """One page of the performance matrix."""

    file: str
    metric: str
    title: str
    label: str
    against: Against
    device: str = ""
    eager: bool = True
    mean: bool = False


class Reading(NamedTuple):
    """What one cell of a view shows.

    ``value`` is in the metric's base unit, or a ratio where ``relative``; ``half`` is half of its interval in
    percent. Without a value ``why`` says why there is none. ``factor`` is set where a change exceeds the
    noise of its series. ``doubt`` is the modifier that keeps the number apart: it is shown, in no ratio.
    """

    value: float | None
    half: float | None
    relative: bool
    why: str = ""
    factor: float | None = None
    doubt: str = ""


Reader = Callable[[Entry], Reading]


def views(latest: LatestResults) -> tuple[View, ...]:
    """The views for which ``latest`` has columns, the first one under the name that the navigation has."""
    if not latest.entries:
        return (View("performance.html", "latency", "Latency", "in ms", Against.NOTHING),)
    compiled = any(column.compiled for column in latest.columns)
    baselines = baseline_columns(latest)
    found = []
    if any(column not in baselines.values() for column in latest.columns):
        found.append(View("", "latency", "Latency", "ratio to eager", Against.EAGER, mean=True))
    found.append(View("-latency", "latency", "Latency", "in ms", Against.NOTHING, mean=True))
    if len(latest.devices) > 1:
        device = latest.devices[0]
        found.append(
            View("-device", "latency", "Latency", f"ratio to {device}", Against.DEVICE, device, mean=True)
        )
    found.append(
        View("-previous", "latency", "Latency", "change since the result before", Against.BEFORE, mean=True)
    )
    if compiled:
        found += [
            View(
                "-speedup",
                "speedup",
                "Speed-up",
                "over eager, paired",
                Against.NOTHING,
                eager=False,
                mean=True,
            ),
            View("-compile", "compile_cold", "Compile time", "cold cache", Against.NOTHING, eager=False),
            View("-compile-warm", "compile_warm", "Compile time", "warm cache", Against.NOTHING, eager=False),
        ]
    found.append(View("-memory", "peak_memory", "Peak memory", "in MiB", Against.NOTHING))
    if any("peak_share" in entry.numbers for entry in latest.entries.values()):
        found.append(View("-peak-share", "peak_share", "Peak share", "in %", Against.NOTHING))
    return (
        replace(found[0], file="performance.html"),
        *(replace(view, file=f"performance{view.file}.html") for view in found[1:]),
    )


def metric_units(latest: LatestResults) -> dict[str, str]:
    """The metrics that a query may compare, with their base units."""
    return {view.metric: METRICS[view.metric].unit for view in views(latest)}


def baseline_columns(latest: LatestResults) -> Mapping[str, Column]:
    """The column that others of its device are compared with: ``eager``, else the first plain one."""
    found: dict[str, Column] = {}
    for column in latest.columns:
        if not column.compiled and (column.device not in found or column.configuration == EAGER):
            found[column.device] = column
    return found


class Readers:
    """How the cells of views are read; what several views share is read once."""

    def __init__(self, latest: LatestResults, moved: Mapping[str, Movement]) -> None:
        """``moved`` are the newest changes of latency, by case."""
        self._latest = latest
        self._moved = moved
        self._absolutes: dict[str, Reader] = {}

    def of(self, view: View) -> Reader:
        """How the cells of ``view`` are read."""
        absolute = self._absolutes.setdefault(view.metric, _read_once(view.metric))
        if view.against is Against.BEFORE:
            return lambda entry: _before(entry, absolute(entry), self._moved)
        if view.against is Against.NOTHING:
            return absolute
        base = _base_of(self._latest, view)
        return lambda entry: _ratio(entry, base(entry.workload, entry.column), absolute)


def _read_once(metric: str) -> Reader:
    known: dict[int, Reading] = {}

    def read(entry: Entry) -> Reading:
        found = known.get(id(entry))
        if found is None:
            found = known[id(entry)] = _absolute(entry, metric)
        return found

    return read


def _base_of(latest: LatestResults, view: View) -> Callable[[Workload, Column], Entry | None]:
    if view.against is Against.EAGER:
        baselines = baseline_columns(latest)
        return lambda workload, column: (
            latest.entries.get((workload, baselines[column.device])) if column.device in baselines else None
        )
    by_name = {c.configuration: c for c in latest.columns if c.device == view.device}
    return lambda workload, column: (
        latest.entries.get((workload, by_name[column.configuration]))
        if column.configuration in by_name
        else None
    )


def _absolute(entry: Entry, metric: str) -> Reading:
    number = entry.numbers.get(metric)
    if number is None or number["median"] is None:
        return Reading(None, None, relative=False, why=number["absent"] if number else "not measured")
    return Reading(number["median"], half_percent(number), relative=False, doubt=entry.doubt(metric))


def _ratio(entry: Entry, base: Entry | None, absolute: Reader) -> Reading:
    own = absolute(entry)
    if own.value is None or base is entry:
        return own
    if own.doubt:
        return Reading(None, None, relative=True, why=own.doubt)
    if base is None:
        return Reading(None, None, relative=True, why="no baseline planned")
    below = absolute(base)
    if below.value is None or below.value <= 0:
        return Reading(None, None, relative=True, why="no baseline")
    if below.doubt:
        return Reading(None, None, relative=True, why=f"baseline {below.doubt}")
    if not _built_alike(entry, base):
        return Reading(None, None, relative=True, why="built differently")
    return Reading(own.value / below.value, together(own.half, below.half), relative=True)


def _built_alike(entry: Entry, base: Entry) -> bool:
    left, right = entry.shown["realised_hash"], base.shown["realised_hash"]
    return not left or not right or left == right


def _before(entry: Entry, own: Reading, moved: Mapping[str, Movement]) -> Reading:
    if own.value is None:
        return own
    if own.doubt:
        return Reading(None, None, relative=True, why=own.doubt)
    movement = moved.get(entry.newest["case_key"])
    if movement is None:
        return Reading(None, None, relative=True, why="nothing before")
    factor = movement.factor
    return Reading(
        movement.ratio,
        movement.half_percent,
        relative=True,
        why="" if factor is not None else "too little history for a threshold",
        factor=factor,
    )


def for_mean(entry: Entry, reading: Reading, metric: str) -> float | None:
    """The value of ``reading`` where it may enter a geometric mean."""
    if reading.value is None or not reading.value > 0:
        return None
    return reading.value if geomean.usable(entry, metric)[0] is not None else None
