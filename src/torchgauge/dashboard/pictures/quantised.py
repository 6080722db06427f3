"""What quantisation trades: speed, bytes and quality of every configuration of one model on one device."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING

from torchgauge.counted import counted
from torchgauge.dashboard.latest_results import Entry
from torchgauge.dashboard.names import device_id
from torchgauge.dashboard.pages.links import case_link
from torchgauge.dashboard.pictures.entry_number import number_text
from torchgauge.dashboard.pictures.picture import Numbers, Picture, dated, nothing
from torchgauge.dashboard.pictures.tradeoff_drawing import Point, Tradeoff, draw_tradeoff
from torchgauge.records import Status, Subject
from torchgauge.results import units
from torchgauge.results.hostile_text import slug

if TYPE_CHECKING:
    from torchgauge.dashboard.context import SiteContext

KIND = "quantised"
TITLE = "Quantised models"
SPEED, SIZE, QUALITY = "speedup_compiled", "model_size", "sqnr"
COMPILED = "inductor"
"""The configuration that speeds are over; it has a size, and no noise."""
COLUMNS = {
    "latency": "step", SPEED: "speed-up over compiled", SIZE: "model", "peak_memory": "peak memory",
    QUALITY: "signal to noise", "top1_agreement": "top-1 agreement",
}  # fmt: skip
"""Metrics of the table, and what stands above them."""
MOST = 12
"""Models and devices that are drawn, those with most configurations first."""

METHOD = (
    "Each point is one configuration that quantised the model. The axes are the bytes of parameters and "
    "buffers, and the speed-up over the compiled, unquantised model in the same rounds. The number "
    "beside a name is the signal to quantisation noise in dB: 6 dB are one bit. Named points are "
    "Pareto-optimal: no other point is better in bytes, speed and quality at once. A hollow point is in "
    "doubt, or ran by another path than requested, and is ignored in this selection. Rows without a "
    "number are in the table, with their status."
)


@dataclass(frozen=True)
class _Found:
    """One configuration: the point, None where it has no place, and its row of the table."""

    point: Point | None
    row: tuple[str, ...]
    href: str


def pictures(context: SiteContext) -> Iterator[Picture]:
    """One for each model and device with quantised configurations, or why there is none."""
    groups = sorted(_groups(context), key=lambda group: (-len(group), group[0].workload))
    for entries in groups[:MOST]:
        yield _picture(context, entries)
    if not groups:
        yield nothing(KIND, TITLE, "No quantised model has a speed and a size yet.")


def _groups(context: SiteContext) -> Iterator[Sequence[Entry]]:
    """Entries of one workload on one device, where one of them at least may be drawn."""
    entries = [entry for entry in context.latest.entries.values() if entry.workload.subject is Subject.MODELS]
    entries.sort(key=lambda entry: (entry.workload, entry.column.device, entry.column.order))
    for _, found in groupby(entries, key=lambda entry: (entry.workload, entry.column.device)):
        group = [entry for entry in found if SIZE in entry.numbers or entry.status is not Status.PASS]
        if any(_point(entry) for entry in group):
            yield group


def _point(entry: Entry) -> Point | None:
    speed, size, quality = (_median(entry, name) for name in (SPEED, SIZE, QUALITY))
    if entry.status is not Status.PASS or speed is None or size is None or quality is None:
        return None
    sure = entry.fully_passed and not entry.doubt(SPEED)
    return Point(entry.column.configuration, size, speed, quality, sure)


def _median(entry: Entry, metric: str) -> float | None:
    """A number that has a logarithm, or any one of the quality; None where there is none."""
    value = (entry.numbers.get(metric) or {}).get("median")
    if value is None or not math.isfinite(value) or (value <= 0 and metric != QUALITY):
        return None
    return float(value)


def _picture(context: SiteContext, entries: Sequence[Entry]) -> Picture:
    found = [_Found(_point(each), _row(each), case_link(each)) for each in entries]
    found.sort(key=lambda each: -each.point.speed if each.point else math.inf)
    points = tuple(each.point for each in found if each.point)
    bases = [_median(each, SIZE) for each in entries if each.column.configuration == COMPILED]
    workload, device = entries[0].workload, entries[0].column.device
    title = f"{workload.model} {workload.variant}, quantised, {device}"
    front = front_of(points)
    drawn = counted(len(points), "configuration")
    tried = len(points) + sum(each.status is not Status.PASS for each in entries)
    says = f"{drawn} of {tried} ran and have size, speed and quality. {_best(front)}"
    chart = Tradeoff(title, says, points, front, dated(context), next(filter(None, bases), None))
    description = f"Speed-up over the compiled model, by size of the model in bytes. {says}"
    numbers = Numbers(
        ("configuration", "status", *COLUMNS.values()),
        tuple(each.row for each in found),
        tuple(each.href for each in found),
    )
    name = f"{KIND}-{slug(workload.name)}-{device_id(device)}"
    draw = partial(draw_tradeoff, chart, description=description)
    return Picture(KIND, name, title, says, description, METHOD, numbers, draw)


def front_of(points: Sequence[Point]) -> tuple[Point, ...]:
    """Those that are sure and that no other sure one beats in all three, smallest first."""
    sure = [each for each in points if each.sure]
    kept = [each for each in sure if not any(other.beats(each) for other in sure)]
    return tuple(sorted(kept, key=lambda each: (each.size, each.speed)))


def _best(front: Sequence[Point]) -> str:
    if not front:
        return "Each is in doubt, or ran by another path than requested."
    fastest, smallest = max(front, key=lambda each: each.speed), front[0]
    said = [f"Fastest is {_told(fastest)}"]
    if smallest is not fastest:
        said.append(f"smallest {_told(smallest)}")
    return f"{'; '.join(said)}."


def _told(point: Point) -> str:
    size = units.quantity(point.size, "B")
    return f"{point.name}, {point.speed:.2f}x over compiled, {size}, {point.quality:.1f} dB"


def _row(entry: Entry) -> tuple[str, ...]:
    status = "degraded" if entry.degraded else entry.status.value
    return (entry.column.configuration, status, *(number_text(entry, metric) for metric in COLUMNS))
