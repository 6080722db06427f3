"""A comparison of devices for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from torchgauge.results.compat.differences import Lacking, coverage, lacking, only_differences
from torchgauge.results.compat.table import Section, Table
from torchgauge.results.compat.words import (
    column_facts,
    coverage_text,
    entry_text,
    fallback_sentences,
    feature_cells,
    helped_notes,
    lack_text,
    nowhere_text,
    same_reasons,
    unknown_texts,
)
from torchgauge.results.hostile_text import visible

GROUPS_SHOWN, REASONS_SHOWN = 12, 6


def render(table: Table, *, differing: bool = False, expand: bool = False) -> str:
    """The whole comparison; ``expand`` adds a line per part, ``differing`` leaves equal rows out."""
    shown = only_differences(table) if differing else table
    lines = [*_columns(table), *_sentences(table)]
    for section, whole in zip(shown.sections, table.sections, strict=True):
        lines += ["", *_section(section, whole, table, expand=expand)]
    for each in lacking(table):
        lines += ["", *_lacking(each, table)]
    return "\n".join(visible(line) for line in lines) + "\n"


def _columns(table: Table) -> Iterator[str]:
    for column in table.columns:
        facts = "; ".join(f"{name} {text}".strip() for name, text in column_facts(column, table))
        yield f"{column.name}: {facts}"


def _sentences(table: Table) -> Iterator[str]:
    yield from (f"note: {note}" for note in (*table.notes, *fallback_sentences(table)))
    yield from (f"gap: {gap}" for gap in table.gaps)


def _section(section: Section, whole: Section, table: Table, *, expand: bool) -> Iterator[str]:
    left_out = len(whole.features) - len(section.features)
    equal = f" ({left_out} of {len(whole.features)} rows without a difference left out)" if left_out else ""
    yield f"{section.title}{equal}"
    if not whole.features:
        yield f"  no rows of any of {', '.join(column.name for column in table.columns)}"
        return
    rows = [[section.feature, *(column.name for column in table.columns)]]
    for feature in section.features:
        rows.append([feature.name, *feature_cells(feature)])
        if expand:
            rows += [[f"  {part.name}", *map(entry_text, part.entries)] for part in feature.parts]
    counts = [each for each in coverage(table) if each.section == section.key]
    rows.append(["in all", *map(coverage_text, counts)])
    yield from _aligned(rows)
    yield from (f"  note: {note}" for note in helped_notes(section, table))


def _aligned(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(len(row[index]) for row in rows) for index in range(len(rows[0]))]
    for row in rows:
        cells = (f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True))
        yield f"  {'  '.join(cells)}".rstrip()


def _lacking(found: Lacking, table: Table) -> Iterator[str]:
    if next(column for column in table.columns if column.name == found.column).newest_at is None:
        yield f"what {found.column} lacks: it was not measured"
        return
    if len(table.columns) == 1:
        yield f"what {found.column} lacks that others have: there is no other column to compare with"
        return
    yield f"what {found.column} lacks that others have: {found.total or 'nothing that was measured'}"
    for group in found.groups[:GROUPS_SHOWN]:
        yield f"  {len(group.lacks):>4}  {group.name} ({group.section})"
        reasons = same_reasons(group.lacks)
        for lack, number in reasons[:REASONS_SHOWN]:
            more = f" (and {number - 1} more)" if number > 1 else ""
            yield f"        {lack_text(lack)}{more}"
            if lack.entry.link:
                yield f"        {lack.entry.link}"
        if len(reasons) > REASONS_SHOWN:
            yield f"        ... and {len(reasons) - REASONS_SHOWN} more reasons"
    if len(found.groups) > GROUPS_SHOWN:
        yield f"  ... and {len(found.groups) - GROUPS_SHOWN} more groups"
    if found.nowhere:
        yield f"  {nowhere_text(found)}"
    yield from (f"  {each}" for each in unknown_texts(found))
