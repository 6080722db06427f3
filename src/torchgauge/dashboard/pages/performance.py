"""The performance matrix: a page per view, with intervals, and a mean under each column."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from markupsafe import Markup

from torchgauge.dashboard.latest_results import Column, Entry, LatestResults
from torchgauge.dashboard.pages.cells import NOT_PLANNED, escaped, known_note, row_head
from torchgauge.dashboard.pages.column_heads import ColumnHead, column_heads
from torchgauge.dashboard.pages.column_means import ColumnMeans, column_means
from torchgauge.dashboard.pages.heat import heat
from torchgauge.dashboard.pages.latest import numbers_of, numbers_shard, own_numbers
from torchgauge.dashboard.pages.number_text import (
    NO_NUMBER,
    TIMES,
    change,
    digits,
    rounded,
    scale_of,
    spread,
)
from torchgauge.dashboard.pages.views import Readers, Reading, View, views
from torchgauge.dashboard.pages.whisker import whisker
from torchgauge.dashboard.statuses import LOOKS, MARKS
from torchgauge.records import Better, Modifier, Status
from torchgauge.results.hostile_text import first_line

if TYPE_CHECKING:
    from torchgauge.dashboard.context import SiteContext

QUIET_MARKS = frozenset({"unexpected", "expected", "superseded"})
"""Marks that say nothing of a number."""


@dataclass(frozen=True)
class NumberRow:
    """A workload and its cells."""

    head: Markup
    cells: Markup


@dataclass(frozen=True)
class PerformancePage:
    """One view with its table; ``means`` is None where no mean is meaningful, ``bare`` without any number."""

    view: View
    views: tuple[View, ...]
    unit: str
    doc: str
    better: str
    metrics: Mapping[str, str]
    columns: tuple[ColumnHead, ...]
    rows: tuple[NumberRow, ...]
    means: ColumnMeans | None
    provenance: tuple[str, ...]
    bare: bool


def build(context: SiteContext) -> Iterator[tuple[str, bytes]]:
    """A page per view, and the numbers of every metric that has one."""
    latest = context.latest.of_models()
    found = views(latest, context.primaries)
    readers, notes = Readers(latest, context.movements), notes_of(latest)
    for view in found:
        page = performance_page(latest, view, found, readers, notes)
        text = context.renderer.page("performance", view.file, section="performance.html", page=page)
        yield view.file, text.encode()
    for view in {numbers_of(view): view for view in found if own_numbers(view)}.values():
        yield numbers_shard(latest, view, readers.of(view))


def performance_page(
    latest: LatestResults, view: View, others: tuple[View, ...], readers: Readers, notes: Mapping[int, str]
) -> PerformancePage:
    """The table of one view, whose cells ``readers`` read; ``notes`` are those of :func:`notes_of`."""
    metric, read = view.of, readers.of(view)
    places = [place for place, column in enumerate(latest.columns) if view.eager or column.compiled]
    columns = tuple(latest.columns[place] for place in places)
    scale = scale_of(metric)
    unit = f" {scale.name}" if view.turned else TIMES if scale.name == TIMES else ""
    better = Better.HIGHER if view.turned and metric.better is not Better.NEITHER else metric.better
    readings = [
        [(entry, read(entry)) if (entry := row[place]) is not None else None for place in places]
        for row in latest.grid
    ]
    return PerformancePage(
        view=view,
        views=others,
        unit=scale.name,
        doc=metric.doc,
        better=metric.better.value,
        metrics={other.metric: other.of.unit for other in others},
        columns=column_heads(columns, latest.apart),
        rows=tuple(
            NumberRow(
                row_head(workload, comparable=workload.name not in latest.built_differently),
                Markup("".join([_cell(found, better, (scale.factor, unit), notes) for found in row])),  # noqa: S704
            )
            for workload, row in zip(latest.workloads, readings, strict=True)
        ),
        means=column_means(latest, view.averaged, columns, readers) if view.mean else None,
        provenance=_provenance(columns, readings, view.metric) if view.metric == "peak_memory" else (),
        bare=not any(found and found[1].value is not None for row in readings for found in row),
    )


_Found = tuple[Entry, Reading] | None
_Scale = tuple[float, str]
"""What a base unit is divided by, and what stands behind a number that is no ratio where others are."""

_Readings = Sequence[Sequence[_Found]]
"""What the cells of a view show, by row and column; None where nothing was planned."""


def notes_of(latest: LatestResults) -> dict[int, str]:
    """What is said under the number of an entry in every view, by the entry's identity; most say nothing."""
    found = {}
    for entry in latest.entries.values():
        above = latest.stale_days.get(entry.column, "")
        said = (known_note(entry, above), *(mark for mark in entry.marks if mark not in QUIET_MARKS))
        if note := " ".join(part for part in said if part):
            found[id(entry)] = note
    return found


def _cell(found: _Found, better: Better, scale: _Scale, notes: Mapping[int, str]) -> str:
    """One cell as HTML in few bytes: thousands of them are one page. What the store says is escaped."""
    if found is None:
        return NOT_PLANNED
    entry, reading = found
    look, passed = LOOKS[entry.status], entry.status is Status.PASS
    apart = notes.get(id(entry), "")
    if reading.doubt and reading.doubt not in entry.marks:  # of what stands in for the newest row
        apart = f"{apart} {reading.doubt}".lstrip()
    if not passed and reading.value is not None:
        apart = f"{look.code} {apart}" if apart else look.code
    if reading.value is None:
        main = NO_NUMBER if passed else look.code
        why = _why(reading.why) if passed and reading.why not in entry.marks else ""
        beside, detail = "", f"<em>{why}</em>" if why else ""
    else:
        main, beside = _number(reading, scale)
        detail = f"<i>{beside}</i>" if beside else ""
    small = f"<small>{escaped(apart)}</small>" if apart else ""
    colour = _heat(reading, scale, better) if passed else ""
    loud = " x" if reading.factor is not None and reading.factor > 1 else ""
    if reading.doubt:
        why = escaped(_why_apart(entry, reading.doubt))
        drawn = whisker(reading.half) if reading.doubt == Modifier.UNSTEADY else ""
        return f'<td class="{look.letter} d" title="{why}">{main}{small}<i>{beside}{drawn}</i>'
    return f'<td class="{look.letter}{loud}{colour}">{main}{small}{detail}'


def _heat(reading: Reading, scale: _Scale, better: Better) -> str:
    if reading.value is None or not (reading.relative or scale[1] == TIMES):
        return ""
    found = heat(reading.value, reading.half, better)
    return f" {found}" if found else ""


def _why_apart(entry: Entry, doubt: str) -> str:
    """What is said of a number that enters no mean and no ratio, where a reader points at it."""
    why = {"unsteady": entry.unsteady, "unchecked": entry.unchecked}.get(doubt, MARKS[doubt])
    return f"{doubt}: {why}"


@lru_cache(maxsize=1024)
def _why(raw: str) -> str:
    return escaped(first_line(raw, 48))


def _number(reading: Reading, scale: _Scale) -> tuple[str, str]:
    value, (factor, unit) = reading.value or 0.0, scale
    if reading.factor is not None or reading.why:
        text = change(value, reading.half)
        if reading.factor is None or reading.factor <= 1:
            return text, spread(reading.half)
        return text, f"{spread(reading.half)} {min(reading.factor, 999):.2g}{TIMES} noise"
    if reading.doubt == Modifier.UNSTEADY:
        return f"about {rounded(value / factor)}{unit}", spread(reading.half)
    if reading.relative:
        return f"{digits(value, reading.half)}{TIMES}", spread(reading.half)
    return f"{digits(value / factor, reading.half)}{unit}", spread(reading.half)


def _provenance(columns: Sequence[Column], readings: _Readings, metric: str) -> tuple[str, ...]:
    """Which counters the numbers of each column came from, since those of two counters are not comparable."""
    found: dict[Column, set[str]] = {column: set() for column in columns}
    for row in readings:
        for column, cell in zip(columns, row, strict=True):
            number = cell[0].numbers.get(metric) if cell and cell[1].value is not None else None
            if number is not None and number["provenance"]:
                found[column].add(number["provenance"].replace("_", " "))
    return tuple(", ".join(sorted(found[column])) for column in columns)
