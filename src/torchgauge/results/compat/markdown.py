"""A comparison of devices as GitHub's Markdown; nothing in a store's text acts in it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from torchgauge.results.compat.differences import Lacking, coverage, lacking, only_differences
from torchgauge.results.compat.table import Section, Table
from torchgauge.results.compat.words import (
    REASON_LIMIT,
    column_facts,
    coverage_text,
    entry_text,
    fallback_sentences,
    feature_cells,
    helped_notes,
    nowhere_text,
    reason_text,
    same_reasons,
    unknown_texts,
)
from torchgauge.results.markdown_text import code
from torchgauge.results.markdown_text import table as markdown_table

_ADDRESS = re.compile(r"https://[A-Za-z0-9._~:/?#=&%+-]+")
ROWS_OPEN = 40
"""Tables with more rows are folded."""
GROUPS_SHOWN, REASONS_SHOWN = 20, 8


def render(table: Table, *, differing: bool = False, expand: bool = False) -> str:
    """The whole comparison; ``expand`` adds a row per part, ``differing`` leaves equal rows out."""
    shown = only_differences(table) if differing else table
    lines = [f"# Devices compared: {', '.join(code(column.name) for column in table.columns)}", ""]
    for column in table.columns:
        facts = "; ".join(f"{name} {code(text, 400)}".strip() for name, text in column_facts(column, table))
        lines.append(f"- **{code(column.name)}**: {facts}")
    lines += [f"- note: {code(note, 400)}" for note in (*table.notes, *fallback_sentences(table))]
    lines += [f"- **gap**: {code(gap, 400)}" for gap in table.gaps]
    for section, whole in zip(shown.sections, table.sections, strict=True):
        lines += ["", *_section(section, whole, table, expand=expand)]
    for each in lacking(table):
        lines += ["", *_lacking(each, table)]
    return "\n".join(lines) + "\n"


def _section(section: Section, whole: Section, table: Table, *, expand: bool) -> Iterator[str]:
    yield f"## {section.title}"
    yield ""
    if not whole.features:
        yield "No device that is compared has rows of this kind: not measured."
        return
    left_out = len(whole.features) - len(section.features)
    if left_out:
        yield f"{left_out} of {len(whole.features)} rows without a difference are left out."
        yield ""
    counts = [each for each in coverage(table) if each.section == section.key]
    rows = [[code(feature.name), *feature_cells(feature)] for feature in section.features]
    if expand:
        rows = []
        for feature in section.features:
            rows.append([f"**{code(feature.name)}**", *feature_cells(feature)])
            rows += [[code(part.name), *map(entry_text, part.entries)] for part in feature.parts]
    rows.append(["**in all**", *map(coverage_text, counts)])
    body = markdown_table([section.feature, *(code(column.name) for column in table.columns)], rows)
    folded = len(rows) > ROWS_OPEN
    if folded:
        yield f"<details><summary>{len(section.features)} rows</summary>"
        yield ""
    yield from body
    if folded:
        yield ""
        yield "</details>"
    notes = helped_notes(section, table)
    if notes:
        yield ""
        yield from (f"- {code(note, 400)}" for note in notes)


def _lacking(found: Lacking, table: Table) -> Iterator[str]:
    yield f"## What {code(found.column)} lacks that others have"
    yield ""
    if next(column for column in table.columns if column.name == found.column).newest_at is None:
        yield "Not measured."
        return
    if len(table.columns) == 1:
        yield "There is no other column to compare with."
        return
    if not found.groups:
        yield "Nothing that was measured."
    for group in found.groups[:GROUPS_SHOWN]:
        yield f"- **{code(group.name)}** ({group.section}): {len(group.lacks)}"
        reasons = same_reasons(group.lacks)
        for lack, number in reasons[:REASONS_SHOWN]:
            more = f" and {number - 1} more" if number > 1 else ""
            link = f" {_link(lack.entry.link)}" if lack.entry.link else ""
            why = code(reason_text(lack.entry), REASON_LIMIT)
            yield f"  - {code(lack.part)}{more}: {lack.entry.word}: {why}{link}"
        if len(reasons) > REASONS_SHOWN:
            yield f"  - and {len(reasons) - REASONS_SHOWN} more reasons"
    if len(found.groups) > GROUPS_SHOWN:
        yield f"- and {len(found.groups) - GROUPS_SHOWN} more groups"
    if found.nowhere:
        yield f"- {code(nowhere_text(found), 400)}"
    yield from (f"- {each}" for each in unknown_texts(found))


def _link(address: str) -> str:
    """An address that a reader can follow; what is no plain one stays text."""
    return f"<{address}>" if _ADDRESS.fullmatch(address) else code(address)
