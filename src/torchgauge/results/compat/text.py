"""A comparison of devices for a terminal, a page, a spreadsheet and a program; no text of a store acts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import Any

from torchgauge.records import to_plain
from torchgauge.results import document
from torchgauge.results.compat import words
from torchgauge.results.compat.differences import Lack, Lacking, coverage, lacking, only_differences
from torchgauge.results.compat.table import NOT_MEASURED, Cell, Entry, Section, Table
from torchgauge.results.csv_text import csv_text

SCHEMA, VERSION = "torchgauge.compat", 1
COLUMNS = (
    "section", "feature", "part", "column", "device", "torch_version", "status", "applicable", "expected",
    "unexpected", "reason", "missing_op", "link", "modifiers", "instead_of", "fallback_ops", "fallback_share",
    "age_s", "run_id", "case_id",
)  # fmt: skip


def terminal_of(table: Table, *, differing: bool = False, expand: bool = False) -> str:
    """The whole comparison; ``expand`` adds a line per part, ``differing`` leaves equal rows out."""
    return document.terminal("results/compat/compat", **_data(table, differing, expand))


def markdown_of(table: Table, *, differing: bool = False, expand: bool = False) -> str:
    """The same for a page or an issue."""
    return document.markdown("results/compat/compat", **_data(table, differing, expand))


def csv_of(table: Table, *, differing: bool = False) -> str:
    """One line per part and column; a part without a row has the status ``not measured``."""
    rows = rows_of(only_differences(table) if differing else table)
    return csv_text(COLUMNS, ([row.get(name) for name in COLUMNS] for row in rows))


def json_of(table: Table, *, differing: bool = False) -> str:
    """One JSON object; times are in seconds since the epoch, ages in seconds before the newest row."""
    shown = only_differences(table) if differing else table
    plain = {
        "schema": SCHEMA,
        "version": VERSION,
        **to_plain(replace(table, sections=())),
        "only_differences": differing,
        "sections": [_section(section, shown) for section in shown.sections],
        "lacking": [_lacking(each) for each in lacking(table)],
        "coverage": [{**asdict(each), "statuses": dict(each.statuses)} for each in coverage(table)],
    }
    return json.dumps(plain, indent=1, allow_nan=False) + "\n"


def _data(table: Table, differing: bool, expand: bool) -> dict[str, Any]:
    shown = only_differences(table) if differing else table
    return {
        "table": table,
        "sections": list(zip(shown.sections, table.sections, strict=True)),
        "coverage": coverage(table),
        "lacking": list(zip(lacking(table), table.columns, strict=True)),
        "expand": expand,
        "words": words,
    }


def rows_of(table: Table) -> Iterator[dict[str, object]]:
    """Yield a row for each part of a feature and each column, as the CSV form has it."""
    for section in table.sections:
        for feature in section.features:
            for part in feature.parts:
                for column, entry in zip(table.columns, part.entries, strict=True):
                    place = {"section": section.key, "feature": feature.name, "part": part.name}
                    where = {"column": column.name, "device": column.device, "torch_version": column.torch}
                    yield {**place, **where, **_entry(entry), **_of_fallback(entry)}


def _of_fallback(entry: Entry | None) -> dict[str, object]:
    """What a spreadsheet has of an entry in cells of their own."""
    if entry is None:
        return {}
    found: dict[str, object] = {"modifiers": " ".join(entry.modifiers)}
    if entry.fallback is None:
        return found
    return {**found, "fallback_ops": entry.fallback.operators, "fallback_share": entry.fallback.share}


def _entry(entry: Entry | None) -> dict[str, Any]:
    if entry is None:
        return {"status": NOT_MEASURED}
    return {**to_plain(entry), "applicable": entry.applicable, "age_s": round(entry.age_s, 3)}


def _section(section: Section, table: Table) -> dict[str, Any]:
    names = [column.name for column in table.columns]
    features = [
        {
            "name": feature.name,
            "cells": dict(zip(names, map(_cell, feature.cells), strict=True)),
            "parts": [
                {**asdict(part), "entries": dict(zip(names, map(_entry, part.entries), strict=True))}
                for part in feature.parts
            ],
        }
        for feature in section.features
    ]
    return {"key": section.key, "title": section.title, "features": features}


def _cell(cell: Cell) -> dict[str, Any]:
    word = cell.others[0][0] if cell.others else NOT_MEASURED
    return {
        "status": cell.worst.value if cell.worst is not None else word,
        "passed": cell.passed,
        "said": cell.said,
        "others": dict(cell.others),
        "not_measured": cell.missing,
        "degraded": cell.degraded,
        "marks": list(cell.marks),
    }


def _lacking(found: Lacking) -> dict[str, Any]:
    return {
        "column": found.column,
        "total": found.total,
        "not_measured": dict(found.unknown),
        "nowhere": dict(found.nowhere),
        "groups": [
            {"section": group.section, "name": group.name, "parts": [_lack(lack) for lack in group.lacks]}
            for group in found.groups
        ],
    }


def _lack(lack: Lack) -> dict[str, Any]:
    entry = lack.entry
    said = {"status": entry.status.value, "reason": entry.reason, "link": entry.link}
    return {"feature": lack.feature, "part": lack.part, **said, "others": list(lack.others)}
