"""Coverage over time: how the planned cases of models ended, snapshot by snapshot, on one device or all."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from torchgauge.counted import counted
from torchgauge.dashboard.names import device_id
from torchgauge.dashboard.pictures.course import LOST, Course, course_of
from torchgauge.dashboard.pictures.coverage_drawing import draw_coverage
from torchgauge.dashboard.pictures.picture import Numbers, Picture, dated, nothing
from torchgauge.records import Subject

if TYPE_CHECKING:
    from torchgauge.dashboard.context import SiteContext

KIND = "coverage"
FEWEST = 2
"""Snapshots without which there is no course to show."""

MOST_DEVICES = 4
"""Devices that have a picture of their own."""

METHOD = (
    "Each column is one snapshot: a UTC day and a build of torch. Its height is the number of planned "
    "cases, stacked by status. Degraded, unchecked and other-model results are drawn apart from the "
    "passes. A hatched part has no results, because a nightly run was lost or did not start; it counts the "
    "cases that the device planned last. A device that measured another build of the day keeps those "
    "results. A dashed line marks the first snapshot of another release of torch."
)


def pictures(context: SiteContext) -> Iterator[Picture]:
    """All devices together, then each alone where there are several."""
    rows: dict[str, list[int]] = {}
    for row, case in enumerate(context.recent.cases):
        if case.workload.subject is Subject.MODELS:
            rows.setdefault(case.device, []).append(row)
    snapshots = len(context.recent.snapshots)
    if not rows or snapshots < FEWEST:
        why = f"Models have results in {counted(snapshots, 'snapshot')}; a trend requires {FEWEST}."
        if not rows:
            why = "No model has a result yet."
        yield nothing(KIND, "Coverage over time", why, KIND)
        return
    devices = context.latest.of_models().devices
    several = len(devices) > 1
    everything = sorted(row for members in rows.values() for row in members)
    yield _picture(context, "all devices" if several else next(iter(rows)), KIND, everything)
    for device in devices[: MOST_DEVICES if several else 0]:
        name = f"{KIND}-{device_id(device)}"
        if device in rows:
            yield _picture(context, device, name, rows[device])
        else:
            why = f"None of {snapshots} snapshots has a result of {device}."
            yield nothing(KIND, f"Coverage over time, {device}", why, name)


def _picture(context: SiteContext, of: str, name: str, rows: list[int]) -> Picture:
    course = course_of(context.recent, rows)
    title, says = f"Coverage over time, {of}", _says(of, course)
    footer = dated(context).replace("95 % intervals, ", "")
    description = f"Stacked columns, one per snapshot, by status. {says}"
    draw = partial(draw_coverage, course, (title, says, footer), description=description)
    return Picture(KIND, name, title, says, description, METHOD, _numbers(course), draw)


def _says(of: str, course: Course) -> str:
    heard = course.heard
    if not heard:
        return f"None of {len(course.snapshots)} snapshots has a result of {of}."
    first, last = heard[0], heard[-1]
    there, here = (_share(course, place) for place in (first, last))
    says = f"{of}: {here} pass on {course.snapshots[last].date}"
    if first != last:
        says += f", {there} did on {course.snapshots[first].date}"
    if course.lost:
        says += f", {len(course.lost)} of {len(course.snapshots)} snapshots have no result"
    return f"{says}."


def _share(course: Course, place: int) -> str:
    """Return how many cases pass, of those that devices with a result planned."""
    lost = next((layer.counts[place] for layer in course.layers if layer.text == LOST), 0)
    without = f" (without {', '.join(course.silent[place])})" if place in course.silent else ""
    return f"{course.passed[place]} of {course.planned[place] - lost} planned cases{without}"


def _numbers(course: Course) -> Numbers:
    releases = dict(course.releases)
    rows = []
    for place, snapshot in reversed(list(enumerate(course.snapshots))):
        note = [f"no result of {', '.join(course.silent[place])}"] if place in course.silent else []
        note += [f"torch {releases[place]}"] if place in releases else []
        counts = (str(layer.counts[place]) for layer in course.layers)
        rows.append((snapshot.id, str(course.planned[place]), *counts, ", ".join(note)))
    return Numbers(("snapshot", "planned", *(layer.text for layer in course.layers), "note"), tuple(rows))
