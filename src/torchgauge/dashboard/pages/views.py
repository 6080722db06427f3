"""The views of the performance matrix: which metric, and what a number is a ratio to.

Every view is a page of its own, so that each is complete without scripts and stays small.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import NamedTuple

from torchgauge.dashboard.latest_results import Column, Entry, LatestResults
from torchgauge.dashboard.pages import geomean
from torchgauge.dashboard.pages.noise import Movement
from torchgauge.dashboard.pages.number_text import half_percent, scale_of, together
from torchgauge.records import METRICS, Better, Metric
from torchgauge.results.gain import turned

LATENCY = METRICS["latency"]
EAGER = "eager"
"""The configuration that is the baseline of its device where a device has it."""

INDUCTOR = "inductor"
"""The configuration of which pages tell first where several compile."""


OVER = {"speedup": "eager", "speedup_compiled": "compiled"}
"""The speed-ups that workers measure, paired by round, and what they are over."""


class Against(Enum):
    """What a number is a ratio to."""

    NOTHING = "absolute"
    EAGER = "eager"
    DEVICE = "device"
    COLUMN = "column"
    BEFORE = "previous"


@dataclass(frozen=True)
class View:
    """One page of the performance matrix."""

    file: str
    of: Metric
    title: str
    label: str
    against: Against
    device: str = ""
    eager: bool = True
    mean: bool = False

    @property
    def metric(self) -> str:
        """The name of the metric."""
        return self.of.name

    @property
    def turned(self) -> bool:
        """Whether the cells are ratios of which those above 1 are better."""
        return self.against in (Against.EAGER, Against.DEVICE, Against.COLUMN)

    @property
    def averaged(self) -> View:
        """The view whose cells the means are of: ratios, since numbers of different sets do not compare."""
        absolute = self.against is Against.NOTHING and self.of.unit != "ratio"
        return replace(self, against=Against.COLUMN) if absolute else self


class Reading(NamedTuple):
    """What one cell of a view shows.

    ``value`` is in the metric's base unit. Where ``relative`` it is a ratio: above 1 is better, or in a view
    of changes the newest number over the one before. ``half`` is half of its interval in percent. Without a
    value ``why`` says why there is none. ``factor`` is set where a change exceeds the noise of its series.
    ``doubt`` is the modifier that keeps the number apart: it is shown, in no ratio. ``out`` says why the
    number enters no mean; empty where it does.
    """

    value: float | None
    half: float | None
    relative: bool
    why: str = ""
    factor: float | None = None
    doubt: str = ""
    out: str = ""


Reader = Callable[[Entry], Reading]


def views(latest: LatestResults, primaries: Sequence[Metric] = (LATENCY,)) -> tuple[View, ...]:
    """The views for which ``latest`` has columns, the first one under the name that the navigation has.

    ``primaries`` are the metrics that the scenarios measure for.
    """
    if not latest.entries:
        return (View("performance.html", LATENCY, "Latency", "in ms", Against.NOTHING),)
    found = list(_of_primary(latest, primaries[0], "", f"-{primaries[0].name}"))
    for metric in primaries[1:]:
        found += _of_primary(latest, metric, f"-{metric.name}", f"-{metric.name}-absolute")
    if any(column.compiled for column in latest.columns):
        known = {name for entry in latest.entries.values() for name in entry.numbers} | {"speedup"}
        for name, over in OVER.items():
            file, label = f"-{name.replace('_', '-')}", f"over {over}, paired"
            view = View(file, METRICS[name], "Speed-up", label, Against.NOTHING, eager=False, mean=True)
            found += [view] if name in known else []
        cold, warm = (METRICS[name] for name in ("compile_cold", "compile_warm"))
        found += [
            View("-compile", cold, "Compile time", "cold cache", Against.NOTHING, eager=False),
            View("-compile-warm", warm, "Compile time", "warm cache", Against.NOTHING, eager=False),
        ]
    found.append(View("-memory", METRICS["peak_memory"], "Peak memory", "in MiB", Against.NOTHING))
    if any("peak_share" in entry.numbers for entry in latest.entries.values()):
        found.append(View("-peak-share", METRICS["peak_share"], "Peak share", "in %", Against.NOTHING))
    return (
        replace(found[0], file="performance.html"),
        *(replace(view, file=f"performance{view.file}.html") for view in found[1:]),
    )


def _of_primary(latest: LatestResults, metric: Metric, stem: str, absolute: str) -> Iterator[View]:
    """The views of a metric that a scenario measures for; files begin with ``stem``."""
    taken = baseline_columns(latest).values()
    if any(column not in taken for column in latest.columns):
        yield _primary(stem, metric, f"{metric.gain} over eager", Against.EAGER)
    yield _primary(absolute, metric, f"in {scale_of(metric).name}", Against.NOTHING)
    if len(latest.devices) > 1:
        device = latest.devices[0]
        label = f"{metric.gain} over {latest.dated(device)}"
        yield replace(_primary(f"{stem}-device", metric, label, Against.DEVICE), device=device)
    time = " of time" if metric.unit == "s" else ""
    yield _primary(f"{stem}-previous", metric, f"change{time} since previous run", Against.BEFORE)


def _primary(file: str, metric: Metric, label: str, against: Against) -> View:
    title = metric.name.replace("_", " ").capitalize()
    return View(file, metric, title, label, against, mean=True)


def metric_units(latest: LatestResults, primaries: Sequence[Metric]) -> dict[str, str]:
    """The metrics that a query may compare, with their base units."""
    return {view.metric: view.of.unit for view in views(latest, primaries)}


def baseline_columns(latest: LatestResults) -> Mapping[str, Column]:
    """The column that others of its device are compared with: ``eager``, else the first plain one."""
    found: dict[str, Column] = {}
    for column in latest.columns:
        if not column.compiled and (column.device not in found or column.configuration == EAGER):
            found[column.device] = column
    return found


def first_baseline(latest: LatestResults) -> Column:
    """What all columns are compared with where nobody chose: the baseline of the first device with one."""
    return next(iter(baseline_columns(latest).values()), latest.columns[0])


def baselines(latest: LatestResults, view: View) -> Mapping[Column, Column]:
    """The column that each column of ``view`` is compared with; those that have none are not in it."""
    if view.against is Against.EAGER:
        found = baseline_columns(latest)
        return {column: found[column.device] for column in latest.columns if column.device in found}
    if view.against is Against.DEVICE:
        by_name = {c.configuration: c for c in latest.columns if c.device == view.device}
        return {c: by_name[c.configuration] for c in latest.columns if c.configuration in by_name}
    if view.against is Against.COLUMN:
        return dict.fromkeys(latest.columns, first_baseline(latest))
    return {}


class Readers:
    """How the cells of views are read; what several views share is read once."""

    def __init__(self, latest: LatestResults, moved: Mapping[str, Mapping[str, Movement]]) -> None:
        """``moved`` are the newest changes, by metric and case."""
        self._latest = latest
        self._moved = moved
        self._absolutes: dict[str, Reader] = {}

    def of(self, view: View) -> Reader:
        """How the cells of ``view`` are read."""
        absolute = self._absolutes.setdefault(view.metric, _read_once(view.metric))
        if view.against is Against.BEFORE:
            moved = self._moved.get(view.metric, {})
            return lambda entry: _before(entry, absolute(entry), moved)
        if view.against is Against.NOTHING:
            return absolute
        base, entries = baselines(self._latest, view), self._latest.entries
        return lambda entry: _ratio(
            entry,
            entries.get((entry.workload, base[entry.column])) if entry.column in base else None,
            absolute,
            view.of.better,
        )


def _read_once(metric: str) -> Reader:
    known: dict[int, Reading] = {}

    def read(entry: Entry) -> Reading:
        found = known.get(id(entry))
        if found is None:
            found = known[id(entry)] = _absolute(entry, metric)
        return found

    return read


def _absolute(entry: Entry, metric: str) -> Reading:
    number, out = entry.numbers.get(metric), geomean.why_out(entry, metric)
    if number is None or number["median"] is None:
        return Reading(
            None, None, relative=False, why=number["absent"] if number else "not measured", out=out
        )
    doubt = entry.doubt(metric)
    return Reading(number["median"], half_percent(number), relative=False, doubt=doubt, out=out)


def _ratio(entry: Entry, base: Entry | None, absolute: Reader, better: Better) -> Reading:
    own = absolute(entry)
    if own.value is None or base is entry:
        return own
    if own.doubt:
        return _none(own.doubt, own.out)
    if base is None:
        return _none("no baseline planned", own.out)
    below = absolute(base)
    out = own.out or (f"baseline {below.out}" if below.out else "")
    if below.value is None or below.value <= 0:
        return _none("no baseline", out)
    if below.doubt:
        return _none(f"baseline {below.doubt}", out)
    left, right = entry.shown["realised_hash"], base.shown["realised_hash"]
    if left and right and left != right:
        return _none("built differently", out)
    ratio = turned(better, own.value / below.value, None, None)[0]
    return Reading(ratio, together(own.half, below.half), relative=True, out=out)


def _none(why: str, out: str) -> Reading:
    return Reading(None, None, relative=True, why=why, out=out or why)


def _before(entry: Entry, own: Reading, moved: Mapping[str, Movement]) -> Reading:
    if own.value is None:
        return own
    if own.doubt:
        return _none(own.doubt, own.out)
    movement = moved.get(entry.newest["case_key"])
    if movement is None:
        return _none("no previous run", own.out)
    factor = movement.factor
    return Reading(
        round(movement.ratio, 6),  # as its file has it, so that pages and browser have the same digits
        movement.half_percent,
        relative=True,
        why="" if factor is not None else "too little history for a threshold",
        factor=factor,
        out=own.out,
    )
