"""The scorecard of one device with one release: each item measured, declared or unknown, and the sums.

Nothing is guessed: what is unknown counts nothing in the lowest sum and all that it can be in the highest,
and a level is said only where both sums give the same one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from torchgauge.results.scorecard.declarations import Declaration
from torchgauge.results.scorecard.evidence import Evidence
from torchgauge.results.scorecard.finding import Finding
from torchgauge.results.scorecard.releases import Release
from torchgauge.results.scorecard.rules import find
from torchgauge.results.scorecard.scorecard_file import Item, ScorecardFile, Section

NOT_DECLARED = "no row decides this item, and it is not declared"


class Source(str, Enum):
    """What an item's points rest on."""

    MEASURED = "measured"
    DECLARED = "declared"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Scored:
    """One item: ``points`` where they are known, else ``at_most`` that many.

    ``note`` says what a reader must know beside it, such as a declaration that rows contradict.
    """

    item: Item
    source: Source
    points: int
    at_most: int
    because: str
    cases: tuple[str, ...] = ()
    command: str = ""
    declaration: Declaration | None = None
    note: str = ""


@dataclass(frozen=True)
class ScoredSection:
    """The items of a section; no more than its total counts."""

    section: Section
    items: tuple[Scored, ...]

    def points(self, source: Source) -> int:
        """The points of one source, before what the section's total cuts off."""
        return sum(each.points for each in self.items if each.source is source)

    @property
    def lowest(self) -> int:
        """The points that are certain."""
        return min(self.section.total, sum(each.points for each in self.items))

    @property
    def highest(self) -> int:
        """The points where all that is unknown turned out well."""
        return min(self.section.total, sum(each.at_most for each in self.items))


@dataclass(frozen=True)
class Card:
    """All sections of ``device`` with ``release``, whose newest row is of ``at``, seconds since the epoch."""

    device: str
    release: Release
    at: float
    sections: tuple[ScoredSection, ...]
    file: ScorecardFile

    @property
    def items(self) -> tuple[Scored, ...]:
        """All items, in order."""
        return tuple(each for section in self.sections for each in section.items)

    def points(self, source: Source) -> int:
        """The points of one source."""
        return sum(section.points(source) for section in self.sections)

    @property
    def lowest(self) -> int:
        """The points that are certain."""
        return sum(section.lowest for section in self.sections)

    @property
    def highest(self) -> int:
        """The points where all that is unknown turned out well."""
        return sum(section.highest for section in self.sections)

    @property
    def unknown(self) -> int:
        """The points that nobody has shown or declared, and that are still possible."""
        return self.highest - self.lowest

    @property
    def grades(self) -> tuple[int, int]:
        """Places of the lowest and of the highest level that it can be, in the file's order."""
        musts = [each for each in self.items if each.item.must]
        certain = all(each.points == each.item.points for each in musts)
        possible = all(each.at_most == each.item.points for each in musts)
        return self._grade(self.lowest, musts=certain), self._grade(self.highest, musts=possible)

    def _grade(self, points: int, *, musts: bool) -> int:
        reached = [
            place
            for place, level in enumerate(self.file.levels)
            if points >= level.points and (musts or not level.musts)
        ]
        return max(reached)

    @property
    def level(self) -> str:
        """The level that this release alone gives; empty where it is not decided."""
        low, high = self.grades
        return self.file.levels[low].name if low == high else ""


def card_of(file: ScorecardFile, evidence: Evidence, declarations: Iterable[Declaration]) -> Card:
    """The card of one device with one release."""
    said = {each.item: each for each in declarations if each.holds(evidence.release.pair, evidence.newest_at)}
    old = {each.item for each in declarations} - set(said)
    sections = tuple(
        ScoredSection(
            section,
            tuple(
                _scored(item, find(item, evidence, file.databases), said.get(item.name), item.name in old)
                for item in section.items
            ),
        )
        for section in file.sections
    )
    return Card(evidence.device, evidence.release, evidence.newest_at, sections, file)


def _scored(item: Item, found: Finding | None, said: Declaration | None, old: bool) -> Scored:
    """What rows decide counts; what they leave open may be declared; the rest is unknown."""
    aside = "the declaration is too old, or is for a later release" if old else ""
    if found is not None and found.points is not None:
        against = said is not None and said.points != found.points
        note = f"declared: {said.points}, but measured rows contradict this" if said and against else ""
        return Scored(
            item, Source.MEASURED, found.points, found.points, found.because, found.cases, note=note
        )
    if said is not None:
        most = found.at_most if found is not None else item.points
        points = min(said.points, most)
        note = (
            f"declared: {said.points}, but measured rows allow at most {most} points"
            if points < said.points
            else ""
        )
        return Scored(item, Source.DECLARED, points, points, said.statement, declaration=said, note=note)
    if found is None:
        return Scored(item, Source.UNKNOWN, 0, item.points, NOT_DECLARED, note=aside)
    return Scored(
        item, Source.UNKNOWN, 0, found.at_most, found.because, found.cases, found.command, note=aside
    )
