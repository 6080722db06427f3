"""A comparison of devices as one JSON object with a schema and a version."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from torchgauge.records import to_plain
from torchgauge.results.compat.differences import Lacking, coverage, lacking, only_differences
from torchgauge.results.compat.table import NOT_MEASURED, Cell, Entry, Section, Table

SCHEMA, VERSION = "torchgauge.compat", 1


def render(table: Table, *, differing: bool = False) -> str:
    """``table`` as JSON; times are in seconds since the epoch, ages in seconds before the newest row."""
    shown = only_differences(table) if differing else table
    return json.dumps(_plain(shown, table, differing), indent=1, allow_nan=False, sort_keys=False) + "\n"


def _plain(shown: Table, table: Table, differing: bool) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "version": VERSION,
        "newest_at": table.newest_at,
        "only_differences": differing,
        "columns": [to_plain(column) for column in table.columns],
        "sections": [_section(section, shown) for section in shown.sections],
        "lacking": [_lacking(each) for each in lacking(table)],
        "coverage": [{**asdict(each), "statuses": dict(each.statuses)} for each in coverage(table)],
        "notes": list(table.notes),
        "gaps": list(table.gaps),
    }


def _section(section: Section, table: Table) -> dict[str, Any]:
    names = [column.name for column in table.columns]
    return {
        "key": section.key,
        "title": section.title,
        "features": [
            {
                "name": feature.name,
                "cells": {
                    name: {
                        "status": _status(cell),
                        "passed": cell.passed,
                        "said": cell.said,
                        "others": dict(cell.others),
                        "not_measured": cell.missing,
                        "degraded": cell.degraded,
                        "marks": list(cell.marks),
                    }
                    for name, cell in zip(names, feature.cells, strict=True)
                },
                "parts": [
                    {
                        "name": part.name,
                        "doc": part.doc,
                        "api": part.api,
                        "entries": {
                            name: _entry(entry) for name, entry in zip(names, part.entries, strict=True)
                        },
                    }
                    for part in feature.parts
                ],
            }
            for feature in section.features
        ],
    }


def _status(cell: Cell) -> str:
    if cell.worst is not None:
        return cell.worst.value
    return cell.others[0][0] if cell.measured else NOT_MEASURED


def _entry(entry: Entry | None) -> dict[str, Any]:
    if entry is None:
        return {"status": NOT_MEASURED}
    plain: dict[str, Any] = to_plain(entry)
    return {**plain, "applicable": entry.applicable, "age_s": round(entry.age_s, 3)}


def _lacking(found: Lacking) -> dict[str, Any]:
    return {
        "column": found.column,
        "total": found.total,
        "not_measured": dict(found.unknown),
        "nowhere": dict(found.nowhere),
        "groups": [
            {
                "section": group.section,
                "name": group.name,
                "parts": [
                    {
                        "feature": lack.feature,
                        "part": lack.part,
                        "status": lack.entry.status.value,
                        "reason": lack.entry.reason,
                        "link": lack.entry.link,
                        "others": list(lack.others),
                    }
                    for lack in group.lacks
                ],
            }
            for group in found.groups
        ],
    }
