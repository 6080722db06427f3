"""Scorecards for terminals, Markdown and JSON. Names and reasons of a store are nobody's: none may act."""

from __future__ import annotations

from typing import Any

from torchgauge.results import document
from torchgauge.results.document import ours
from torchgauge.results.scorecard.card import Card, Scored, Source
from torchgauge.results.scorecard.gathering import Scorecard, Scorecards
from torchgauge.results.scorecard.levels import range_text
from torchgauge.results.scorecard.scorecard_file import ScorecardFile

NOT_DECIDED = "not decided"


def terminal_of(found: Scorecards) -> str:
    """All cards as a person reads them on a terminal."""
    return document.terminal("results/scorecard/scorecard", found=found, **_words(found.file))


def markdown_of(found: Scorecards) -> str:
    """All cards as one Markdown document."""
    return document.markdown("results/scorecard/scorecard", found=found, **_words(found.file))


def as_plain(found: Scorecards) -> dict[str, Any]:
    """All of it as JSON values."""
    return {
        "source": found.file.source,
        "total": found.file.total,
        "devices": [_plain(found.file, each) for each in found.cards],
        "notes": list(found.notes),
        "gaps": list(found.gaps),
    }


def stands_text(file: ScorecardFile, of: Scorecard) -> str:
    """The level that stands after the newest release; that it is not decided, where it is not."""
    if not of.history:
        return f"{NOT_DECIDED}: no release was measured"
    low, high = of.history[-1].stands
    text = range_text(file, (low, high))
    return text if low == high else f"{NOT_DECIDED}: {text}"


def grade_text(file: ScorecardFile, card: Card) -> str:
    """What the newest release grades by itself."""
    return card.level or f"{NOT_DECIDED}: {range_text(file, card.grades)}"


def points_text(scored: Scored) -> str:
    """The points of one item: known ones, or those that are possible."""
    if scored.source is Source.UNKNOWN:
        return f"0 to {scored.at_most}" if scored.at_most else "0"
    return str(scored.points)


def because_text(scored: Scored) -> str:
    """Why, with what must be known beside it."""
    said = scored.declaration
    told = f"{scored.because} ({said.by}, {said.date}: {said.link})" if said else scored.because
    return f"{told}; {scored.note}" if scored.note else told


def commands(card: Card) -> dict[str, list[Scored]]:
    """What would measure what is unknown: each command with the items that it is for."""
    found: dict[str, list[Scored]] = {}
    for each in card.items:
        if each.command:
            found.setdefault(each.command, []).append(each)
    return found


def _plain(file: ScorecardFile, of: Scorecard) -> dict[str, Any]:
    card, level = of.card, stands_text(file, of)
    return {
        "device": of.device,
        "release": card.release.name,
        "newest_row_at": card.at,
        "points": {source.value: card.points(source) for source in (Source.MEASURED, Source.DECLARED)}
        | {"unknown": card.unknown, "lowest": card.lowest, "highest": card.highest},
        "grade": card.level or None,
        "level": None if level.startswith(NOT_DECIDED) else level,
        "items": [_item(each) for each in card.items],
        "releases": [
            {
                "release": each.release.name,
                "measured": each.card is not None,
                "grade": range_text(file, each.grade),
                "level": range_text(file, each.stands),
            }
            for each in of.history
        ],
    }


def _item(each: Scored) -> dict[str, Any]:
    said = each.declaration
    return {
        "item": each.item.name,
        "priority": each.item.priority,
        "of": each.item.points,
        "evidence": each.source.value,
        "points": None if each.source is Source.UNKNOWN else each.points,
        "at_most": each.at_most,
        "because": each.because,
        "note": each.note,
        "stands_for": each.item.stands_for if each.source is Source.MEASURED else "",
        "rows": list(each.cases),
        "command": each.command,
        "declared": {"by": said.by, "date": said.date, "link": said.link} if said else None,
    }


def _words(file: ScorecardFile) -> dict[str, Any]:
    return {
        "stands": lambda of: ours(stands_text(file, of)),
        "grade": lambda card: ours(grade_text(file, card)),
        "level_name": lambda ends: ours(range_text(file, ends)),
        "points": lambda scored: ours(points_text(scored)),
        "because": because_text,
        "commands": commands,
        "Source": Source,
        "file": file,
    }
