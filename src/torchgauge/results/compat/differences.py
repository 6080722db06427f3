"""What one device lacks that others have, how far each was covered, and the rows on which devices differ."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

from torchgauge.records import Status
from torchgauge.results.compat.gathering import OPERATORS
from torchgauge.results.compat.table import Entry, Feature, Part, Section, Table


@dataclass(frozen=True)
class Lack:
    """One part that the device lacks; ``others`` are the columns that have it."""

    feature: str
    part: str
    entry: Entry
    others: tuple[str, ...]


@dataclass(frozen=True)
class LackGroup:
    """Lacks of one group of capabilities, of one missing operator, or of one feature."""

    section: str
    name: str
    lacks: tuple[Lack, ...]


@dataclass(frozen=True)
class Lacking:
    """What the column ``column`` lacks, largest groups first.

    ``unknown`` counts, by section, parts that others have and that were never measured here. ``nowhere``
    counts, by feature, parts that it lacks and that no other column has either.
    """

    column: str
    groups: tuple[LackGroup, ...]
    nowhere: tuple[tuple[str, int], ...]
    unknown: tuple[tuple[str, int], ...]

    @property
    def total(self) -> int:
        """Parts that it lacks."""
        return sum(len(group.lacks) for group in self.groups)


@dataclass(frozen=True)
class Coverage:
    """Counts of one column in one section: of ``planned`` parts known to any column, ``measured`` have a row.

    ``said`` of them say something of the device, and ``passed`` of those pass; ``statuses`` are of all rows.
    """

    section: str
    column: str
    planned: int
    measured: int
    said: int
    passed: int
    unexpected: int
    statuses: tuple[tuple[str, int], ...]


def lacking(table: Table) -> tuple[Lacking, ...]:
    """What each column lacks that at least one other has, in the order of the columns."""
    return tuple(_lacking(table, index) for index in range(len(table.columns)))


def coverage(table: Table) -> tuple[Coverage, ...]:
    """Counts by section and column."""
    return tuple(
        _coverage(section, column.name, index)
        for section in table.sections
        for index, column in enumerate(table.columns)
    )


def only_differences(table: Table) -> Table:
    """``table`` with the features and parts on which two columns disagree: one has what another lacks.

    Cells still count all parts of a feature. What was not measured, does not apply or was skipped disagrees
    with nothing.
    """
    return replace(table, sections=tuple(_differing(section) for section in table.sections))


def _differing(section: Section) -> Section:
    kept = []
    for feature in section.features:
        parts = tuple(part for part in feature.parts if disagree(part))
        others = tuple(part for part in feature.parts if not disagree(part))
        kept += [replace(feature, parts=parts, left_out=others)] if parts else []
    return replace(section, features=tuple(kept))


def disagree(part: Part) -> bool:
    """Whether one column has what another lacks."""
    known = [entry for entry in part.entries if entry is not None]
    return any(entry.has for entry in known) and any(entry.lacks for entry in known)


def _lacking(table: Table, index: int) -> Lacking:
    groups: dict[tuple[str, str], list[Lack]] = {}
    unknown: Counter[str] = Counter()
    nowhere: Counter[str] = Counter()
    for section in table.sections:
        for feature in section.features:
            for part in feature.parts:
                others = tuple(
                    column.name
                    for column, entry in zip(table.columns, part.entries, strict=True)
                    if entry is not None and entry.has
                )
                entry = part.entries[index]
                if others and entry is None:
                    unknown[section.key] += 1
                elif others and entry is not None and entry.lacks:
                    lack = Lack(feature.name, part.name, entry, others)
                    groups.setdefault((section.key, _group(section, feature, entry)), []).append(lack)
                elif entry is not None and entry.lacks:
                    nowhere[feature.name] += 1
    order = sorted(groups.items(), key=lambda item: (-len(item[1]), item[0]))
    found = tuple(LackGroup(section, name, tuple(lacks)) for (section, name), lacks in order)
    return Lacking(table.columns[index].name, found, tuple(nowhere.most_common()), tuple(unknown.items()))


def _group(section: Section, feature: Feature, entry: Entry) -> str:
    """Operators are grouped by the one that is missing below them, where that is known."""
    missing = section.key == OPERATORS and entry.missing_op and entry.status is not Status.FAIL_ACCURACY
    return f"{entry.missing_op} is missing" if missing else feature.name


def _coverage(section: Section, column: str, index: int) -> Coverage:
    parts = [part for feature in section.features for part in feature.parts]
    known = [entry for part in parts if (entry := part.entries[index]) is not None]
    words = Counter(entry.word for entry in known)
    return Coverage(
        section=section.key,
        column=column,
        planned=len(parts),
        measured=len(known),
        said=sum(entry.has or entry.lacks for entry in known),
        passed=sum(entry.has for entry in known),
        unexpected=sum(entry.unexpected for entry in known),
        statuses=tuple(words.most_common()),
    )
