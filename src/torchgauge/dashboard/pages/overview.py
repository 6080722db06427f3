"""The overview: one sentence per device, its bar of statuses, and what nobody expected."""

from __future__ import annotations

from dataclasses import dataclass

from torchgauge.dashboard.board import Board, Entry
from torchgauge.dashboard.pages import geomean, links
from torchgauge.dashboard.pages.calibration import CalibrationRow
from torchgauge.dashboard.pages.runs import RunSection
from torchgauge.dashboard.statuses import LOOKS, Look
from torchgauge.dashboard.tally import Tally, tally
from torchgauge.results import units
from torchgauge.results.hostile_text import first_line


@dataclass(frozen=True)
class DeviceCard:
    """What is said of one device."""

    device: str
    sentence: str
    tally: Tally
    incomplete: str
    oldest: str
    calibrations: tuple[CalibrationRow, ...]
    calibration_run: str


@dataclass(frozen=True)
class Surprise:
    """A result that differs from what the data file promises."""

    href: str
    workload: str
    column: str
    look: Look
    expected: str
    detail: str


@dataclass(frozen=True)
class OverviewPage:
    """Cards, surprises and the runs that are not finished."""

    cards: tuple[DeviceCard, ...]
    surprises: tuple[Surprise, ...]
    unfinished: tuple[RunSection, ...]


def overview_page(board: Board, runs: tuple[RunSection, ...]) -> OverviewPage:
    """The overview of ``board``; ``runs`` come newest first."""
    return OverviewPage(
        cards=tuple(_card(device, board.of_device(device), runs) for device in board.devices),
        surprises=_surprises(board),
        unfinished=tuple(run for run in runs if not run.published),
    )


def _card(device: str, entries: tuple[Entry, ...], runs: tuple[RunSection, ...]) -> DeviceCard:
    counted = tally(entries)
    plugin = entries[0].newest["device"]
    run = next((run for run in runs if any(c.device == plugin for c in run.calibrations)), None)
    ages = [entry.age_s for entry in entries]
    return DeviceCard(
        device=device,
        sentence=f"{device}: {_sentence(counted, entries, min(ages))}",
        tally=counted,
        incomplete=_incomplete(counted),
        oldest=units.age(max(ages)),
        calibrations=tuple(c for c in run.calibrations if c.device == plugin) if run else (),
        calibration_run=run.anchor if run else "",
    )


def _sentence(counted: Tally, entries: tuple[Entry, ...], age_s: float) -> str:
    parts = [f"{counted.passed}/{counted.planned} pass"]
    if counted.marks.get("unexpected"):
        parts.append(f"{counted.marks['unexpected']} unexpected")
    for column in sorted({entry.column for entry in entries if entry.column.compiled}, key=lambda c: c.order):
        numbers = geomean.values([entry for entry in entries if entry.column == column], "speedup")
        mean = geomean.mean(numbers, "ratio")
        if mean.n:
            noun = "workload" if mean.n == 1 else "workloads"
            parts.append(f"geomean {column.configuration} speed-up {mean.text} over {mean.n} {noun}")
    return ", ".join([*parts, f"data {units.age(age_s)} old"])


def _incomplete(counted: Tally) -> str:
    if not counted.incomplete:
        return ""
    return f"incomplete: {counted.incomplete} of {counted.planned} cases were lost or never reached"


def _surprises(board: Board) -> tuple[Surprise, ...]:
    found = [entry for entry in board.entries.values() if "unexpected" in entry.marks]
    found.sort(key=lambda entry: (entry.column.order, entry.workload))
    return tuple(
        Surprise(
            href=links.case_link(entry),
            workload=entry.workload.name,
            column=entry.column.name,
            look=LOOKS[entry.status],
            expected=entry.newest["expected"] or "pass",
            detail=_detail(entry),
        )
        for entry in found
    )


def _detail(entry: Entry) -> str:
    row = entry.newest
    message = first_line(
        row["error_message"] or row["reason"] or row["accuracy_detail"] or row["cause"] or ""
    )
    return ": ".join(part for part in (row["error_type"], message) if part) or f"in phase {row['phase']}"
