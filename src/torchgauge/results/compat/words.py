"""The words that every form of a comparison shares: cells, columns, reasons and counts as plain text."""

from __future__ import annotations

from collections import Counter

from torchgauge.counted import counted
from torchgauge.results import units
from torchgauge.results.compat.differences import Coverage, Lack, Lacking
from torchgauge.results.compat.table import (
    NOT_MEASURED,
    Cell,
    Column,
    Entry,
    Feature,
    Section,
    Table,
    marks_of,
)

REASON_LIMIT = 300


def cell_text(cell: Cell, parts: int) -> str:
    """``7/8 (1 error)``, or one word where the feature has one part; never empty."""
    if not cell.measured:
        return NOT_MEASURED
    if parts == 1:
        word = "pass" if cell.passed else cell.others[0][0]
        return ", ".join([word, *cell.marks])
    details = [f"{number} {word}" for word, number in cell.others]
    if cell.missing:
        details.append(f"{cell.missing} {NOT_MEASURED}")
    if not cell.said:
        return ", ".join([*details, *cell.marks])
    beside = f" ({', '.join([*details, *cell.marks])})" if details or cell.marks else ""
    return f"{cell.passed}/{cell.said}{beside}"


def feature_cells(feature: Feature) -> list[str]:
    """The cells of a row."""
    return [cell_text(cell, feature.size) for cell in feature.cells]


def entry_text(entry: Entry | None) -> str:
    """The cell of one part; never empty."""
    if entry is None:
        return NOT_MEASURED
    return ", ".join([entry.word, *marks_of([entry])])


def reason_text(entry: Entry) -> str:
    """Why, on one line: what the row says, else its missing operator or what the data file says."""
    missing = f"{entry.missing_op} is missing" if entry.missing_op else ""
    line = " ".join(
        (
            entry.tells_nothing or entry.reason or missing or entry.expectation or "no reason was recorded"
        ).split()
    )
    return units.shortened(line, REASON_LIMIT)


def part_name(lack: Lack) -> str:
    """The part with its feature, each once."""
    return lack.part if lack.part.startswith(f"{lack.feature}.") else f"{lack.feature} {lack.part}"


def column_facts(column: Column, table: Table) -> list[tuple[str, str]]:
    """Torch, packages, machines and age of a column as pairs of a word, which may be empty, and a text."""
    if column.newest_at is None:
        return [("", NOT_MEASURED)]
    behind = table.newest_at - column.newest_at
    age = f", {units.age(behind)} older than the newest column" if behind >= 60 else ""
    facts = [("torch", column.torch or "unknown")]
    facts += [("packages", "; ".join(column.packages))] if column.packages else []
    facts += [("model", " | ".join(column.models))] if column.models else []
    facts += [("machine", " | ".join(column.machines) or "unknown")]
    facts += [("newest row", f"{units.moment(column.newest_at)}{age}")]
    facts += [("rows", f"{column.rows} of {counted(column.runs, 'run')}")]
    return facts


def coverage_text(found: Coverage) -> str:
    """Counts as one line."""
    if not found.measured:
        return NOT_MEASURED
    others = [f"{number} {word}" for word, number in found.statuses if word != "pass"]
    if found.measured < found.planned:
        others.append(f"{found.planned - found.measured} {NOT_MEASURED}")
    beside = f" ({', '.join(others)})" if others else ""
    return f"{found.passed}/{found.said} pass{beside}"


def nowhere_text(found: Lacking) -> str:
    """What the device lacks and no other column has either; empty where there is nothing."""
    groups = ", ".join(f"{name} {number}" for name, number in found.nowhere[:12])
    more = ", ..." if len(found.nowhere) > 12 else ""
    parts = counted(sum(n for _, n in found.nowhere), "more part")
    return f"{parts} that no other column has either: {groups}{more}"


def helped_notes(section: Section, table: Table) -> list[str]:
    """What ran by another path than the requested one, a sentence per part and column."""
    return [
        f"{feature.name} {part.name} on {column.name}: {helped_text(entry)}"
        for feature in section.features
        for part in feature.parts
        for column, entry in zip(table.columns, part.entries, strict=True)
        if entry is not None and entry.helped
    ]


def helped_text(entry: Entry) -> str:
    """By what other path than the requested one the part ran."""
    return entry.fallback.sentence if entry.fallback is not None else f"degraded: {entry.degraded}"


def unknown_texts(found: Lacking) -> list[str]:
    """How much that others have was never measured in the column, a sentence per section."""
    return [
        f"{counted(number, 'part')} of {section} measured only in other columns"
        for section, number in found.unknown
    ]


def fallback_sentences(table: Table) -> tuple[str, ...]:
    """Columns in which nothing could tell whether operators fell back to the host, with the reasons."""
    found = []
    for index, column in enumerate(table.columns):
        parts = [part for section in table.sections for each in section.features for part in each.parts]
        entries = [entry for part in parts if (entry := part.entries[index]) is not None]
        reasons = Counter(entry.fallback_unknown for entry in entries if entry.fallback_unknown)
        found += [
            f"{column.name}: fallbacks to the host are not known in "
            f"{number} of {counted(len(entries), 'row')}: {reason}"
            for reason, number in reasons.most_common()
        ]
    return tuple(found)


def same_reasons(lacks: tuple[Lack, ...]) -> list[tuple[Lack, int]]:
    """Each reason's first lack with how many share it: same status and fingerprint, or the same words."""
    found: dict[tuple[str, str], list[Lack]] = {}
    for lack in lacks:
        entry = lack.entry
        key = (entry.word, entry.missing_op or entry.fingerprint or reason_text(entry))
        found.setdefault(key, []).append(lack)
    return [(group[0], len(group)) for group in found.values()]
