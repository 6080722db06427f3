"""A comparison of devices as CSV: one line per part and column, safe to open in a spreadsheet."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

from torchgauge.results.compat.differences import only_differences
from torchgauge.results.compat.table import NOT_MEASURED, Column, Entry, Table
from torchgauge.results.hostile_text import csv_cell

COLUMNS = (
    "section", "feature", "part", "column", "device", "torch_version", "status", "applicable", "expected",
    "unexpected", "reason", "missing_op", "link", "modifiers", "instead_of", "fallback_ops", "fallback_share",
    "age_s", "run_id", "case_id",
)  # fmt: skip


def render(table: Table, *, differing: bool = False) -> str:
    """``table`` as CSV; a part without a row has the status ``not measured``."""
    shown = only_differences(table) if differing else table
    target = io.StringIO()
    writer = csv.writer(target, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in _rows(shown):
        writer.writerow([csv_cell(row.get(name)) for name in COLUMNS])
    return target.getvalue()


def _rows(table: Table) -> Iterator[dict[str, object]]:
    for section in table.sections:
        for feature in section.features:
            for part in feature.parts:
                for column, entry in zip(table.columns, part.entries, strict=True):
                    place = {"section": section.key, "feature": feature.name, "part": part.name}
                    yield {**place, **_where(column), **_entry(entry)}


def _where(column: Column) -> dict[str, object]:
    return {"column": column.name, "device": column.device, "torch_version": column.torch}


def _entry(entry: Entry | None) -> dict[str, object]:
    if entry is None:
        return {"status": NOT_MEASURED}
    return {
        "status": entry.status.value,
        "applicable": entry.applicable,
        "expected": entry.expected.value if entry.expected else None,
        "unexpected": entry.unexpected,
        "reason": entry.reason,
        "missing_op": entry.missing_op,
        "link": entry.link,
        "modifiers": " ".join(entry.modifiers),
        "instead_of": entry.instead_of.value if entry.instead_of else None,
        "fallback_ops": entry.fallback.operators if entry.fallback else None,
        "fallback_share": entry.fallback.share if entry.fallback else None,
        "age_s": round(entry.age_s, 3),
        "run_id": entry.run_id,
        "case_id": entry.case_id,
    }
