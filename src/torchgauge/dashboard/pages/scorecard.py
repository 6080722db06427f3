"""The pages of quality scorecards: each device with checks, its points, its level, and what both rest on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from torchgauge.dashboard.latest_results import LatestResults
from torchgauge.dashboard.names import device_id
from torchgauge.records import Subject
from torchgauge.results.scorecard.card import Scored, Source
from torchgauge.results.scorecard.gathering import Scorecard, scorecards
from torchgauge.results.scorecard.levels import range_text
from torchgauge.results.scorecard.releases import release_in
from torchgauge.results.scorecard.scorecard_file import ScorecardFile, bundled_scorecard
from torchgauge.results.scorecard.text import because_text, commands, grade_text, points_text, stands_text

if TYPE_CHECKING:
    from torchgauge.dashboard.context import SiteContext

INDEX = "scorecards.html"


@dataclass(frozen=True)
class ReleaseLine:
    """One release of the history, in words."""

    release: str
    grade: str
    level: str


@dataclass(frozen=True)
class ScorecardPage:
    """One device, with what a template cannot say itself."""

    file: str
    of: Scorecard
    measured: int
    declared: int
    grade: str
    stands: str
    releases: tuple[ReleaseLine, ...]
    commands: tuple[tuple[str, tuple[Scored, ...]], ...]


def build(context: SiteContext) -> Iterator[tuple[str, bytes]]:
    """The page of all devices and one for each, where the store has checks of any."""
    pages = tuple(_page(bundled_scorecard(), each) for each in context.scorecards)
    if not pages:
        return
    render = context.renderer.page
    words: dict[str, Any] = {"points": points_text, "because": because_text}
    beside = {"scorecard": bundled_scorecard(), **words}
    yield INDEX, render("scorecards", INDEX, pages=pages, **beside).encode()
    for page in pages:
        yield page.file, render("scorecard", page.file, section=INDEX, page=page, **beside).encode()


def devices_with_scorecards(latest: LatestResults) -> tuple[str, ...]:
    """Devices that have one: those with a row of a check, measured with a torch that is known."""
    found = {
        column.device
        for (workload, column), entry in latest.entries.items()
        if workload.subject is Subject.CHECKS and release_in(entry.shown["torch_version"])
    }
    return tuple(device for device in latest.devices if device in found)


def read_scorecards(context: SiteContext) -> tuple[Scorecard, ...]:
    """The scorecards of those devices."""
    devices = devices_with_scorecards(context.latest)
    return scorecards([str(context.store.path)], devices).cards if devices else ()


def _page(file: ScorecardFile, of: Scorecard) -> ScorecardPage:
    return ScorecardPage(
        f"scorecards/{device_id(of.device)}.html",
        of,
        of.card.points(Source.MEASURED),
        of.card.points(Source.DECLARED),
        grade_text(file, of.card),
        stands_text(file, of),
        tuple(
            ReleaseLine(
                each.release.name,
                range_text(file, each.grade) if each.card else "not measured",
                range_text(file, each.stands),
            )
            for each in of.history
        ),
        tuple((line, tuple(items)) for line, items in commands(of.card).items()),
    )
