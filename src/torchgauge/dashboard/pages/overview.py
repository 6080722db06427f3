"""The overview: one sentence per device, its bar of statuses, what is newly broken, and who fell silent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from torchgauge.clock import DAY_S
from torchgauge.dashboard.history import NOTHING_PLANNED
from torchgauge.dashboard.latest_results import Entry, LatestResults
from torchgauge.dashboard.new_failures import MARK
from torchgauge.dashboard.pages import geomean, links
from torchgauge.dashboard.pages.calibration import newest_calibration
from torchgauge.dashboard.pages.device_history import DeviceHistory, device_history, rows_of
from torchgauge.dashboard.pages.device_means import mean_change, speedups
from torchgauge.dashboard.pages.findings import Finding, failure_finding, reason_of
from torchgauge.dashboard.pages.noise import Movement
from torchgauge.dashboard.pages.pass_line import PassLine, pass_line
from torchgauge.dashboard.plain_rows import Row
from torchgauge.dashboard.statuses import LOOKS
from torchgauge.dashboard.tally import Tally, tally
from torchgauge.records import Subject
from torchgauge.results import units
from torchgauge.results.latest import STALE_AFTER_S

if TYPE_CHECKING:
    from torchgauge.dashboard.context import SiteContext

SILENT_AFTER = 3
"""Snapshots in which only other devices spoke, after which a device is silent, if two days passed too."""

TWO_DAYS_S = 2 * DAY_S
MOST_LISTED = 40
"""Rows of a table of the overview; the matrix has them all."""


@dataclass(frozen=True)
class DeviceCard:
    """What is said of one device.

    ``apart`` counts what is no model: a subject, passes and all. ``speedups`` are means of configurations,
    each over its own workloads, with how many numbers are left out, in words.
    """

    device: str
    href: str
    sentence: str
    silence: str
    tally: Tally
    line: PassLine | None
    new_failures: int
    incomplete: str
    oldest: str
    apart: tuple[tuple[Subject, int, int], ...]
    speedups: tuple[tuple[str, geomean.Mean, str], ...]
    calibrations: list[Row]
    calibration_run: str


def build(context: SiteContext) -> Iterator[tuple[str, bytes]]:
    """The first page."""
    page = context.renderer.page("overview", "index.html", page=_overview(context))
    yield "index.html", page.encode()


def _overview(context: SiteContext) -> dict[str, Any]:
    """Cards, what is new, surprises and the runs that are not finished."""
    latest = context.latest.of_models()
    moved = context.moved
    failures = [each for each in context.new_failures if each.case.workload.subject is Subject.MODELS]
    cards = [_card(context, latest, device, moved) for device in _devices(context, latest)]
    cards.sort(key=lambda card: not card.silence)
    surprises = _surprises(latest)
    return {
        "cards": cards,
        "failures": [failure_finding(latest, found) for found in failures[:MOST_LISTED]],
        "failures_in_all": len(failures),
        "surprises": [_surprise(entry) for entry in surprises[:MOST_LISTED]],
        "surprises_in_all": len(surprises),
        "unfinished": [info for info in context.runs if not info.published],
        "snapshots": len(context.recent.snapshots),
    }


def _devices(context: SiteContext, latest: LatestResults) -> list[str]:
    """The devices of the models, then those of which only checks or operators are known."""
    others = {case.column.device for case in context.recent.cases} - set(latest.devices)
    return [*latest.devices, *sorted(others)]


def _card(
    context: SiteContext,
    latest: LatestResults,
    device: str,
    moved: Mapping[str, Movement],
) -> DeviceCard:
    entries = latest.of_device(device)
    rows = rows_of(context.recent, device, Subject.MODELS)
    history = device_history(context.recent, rows)
    counted = tally(entries)
    fresh = counted.marks.get(MARK, 0)
    run, calibrations = newest_calibration(context, device)
    return DeviceCard(
        device=device,
        href=links.device_page(device),
        sentence=f"{device}: {_sentence(counted, entries, fresh, moved)}",
        silence=silence(latest, entries, history, context.now),
        tally=counted,
        line=pass_line(history.passed, history.planned, [s.date for s in context.recent.snapshots]),
        new_failures=fresh,
        incomplete=_incomplete(counted),
        oldest=units.age(max((entry.age_s for entry in entries), default=0.0)),
        apart=tuple(_apart(context, device)),
        speedups=speedups(entries),
        calibrations=calibrations,
        calibration_run=run,
    )


def _sentence(counted: Tally, entries: tuple[Entry, ...], fresh: int, moved: Mapping[str, Movement]) -> str:
    if not entries:
        return "no model was planned"
    parts = [f"{counted.passed}/{counted.planned} pass"]
    parts.append(f"{fresh or 'no'} new failure{'' if fresh == 1 else 's'}")
    parts += [f"{number} {mark}" for mark in _TOLD if (number := counted.marks.get(mark))]
    parts += mean_change(entries, moved)
    return ", ".join([*parts, f"data {units.age(min(_said_age(entry) for entry in entries))} old"])


_TOLD = ("unexpected", "unchecked", "unsteady")
"""The marks that the sentence of a device counts."""


def _said_age(entry: Entry) -> float:
    """Age of the newest row that says something of the case, in seconds; of the newest where none does."""
    return entry.known_age_s if entry.known is not None else entry.age_s


def silence(latest: LatestResults, entries: tuple[Entry, ...], history: DeviceHistory, now: float) -> str:
    """Since when a device of ``latest`` has had nothing to say while others did; empty where it reports."""
    said = [entry.known_age_s for entry in entries if entry.known is not None]
    everybody = [entry.known_age_s for entry in latest.entries.values() if entry.known is not None]
    if not entries or not everybody:
        return ""
    if not said:
        return "no result at all: every case was lost to the environment or never reached"
    lag = min(said) - min(everybody)
    missed = history.missed
    if min(said) <= STALE_AFTER_S and not (missed >= SILENT_AFTER and lag >= TWO_DAYS_S):
        return ""
    since = f", {missed} snapshots of other devices since" if missed else ""
    return f"no data for {units.age(min(said))}: its last result is of {units.moment(now - min(said))}{since}"


def _incomplete(counted: Tally) -> str:
    if not counted.incomplete:
        return ""
    return f"incomplete: {counted.incomplete} of {counted.planned} cases were lost or never reached"


def _apart(context: SiteContext, device: str) -> Iterator[tuple[Subject, int, int]]:
    for subject in (Subject.CHECKS, Subject.OPERATORS):
        rows = rows_of(context.recent, device, subject)
        if len(rows):
            planned = context.recent.status[rows] != NOTHING_PLANNED
            last = planned.shape[1] - 1 - planned[:, ::-1].argmax(axis=1)
            yield subject, int(context.recent.counted[rows, last].sum()), len(rows)


def _surprises(latest: LatestResults) -> list[Entry]:
    found = [entry for entry in latest.entries.values() if "unexpected" in entry.marks]
    return sorted(found, key=lambda entry: (entry.column.order, entry.workload))


def _surprise(entry: Entry) -> Finding:
    return Finding(
        href=links.case_link(entry),
        workload=entry.workload.name,
        column=entry.column.name,
        look=LOOKS[entry.status],
        against=entry.counted["expected"] or "pass",
        detail=reason_of(entry.counted),
    )
