"""Why a row is no pass, in one line that is of that row alone."""

from __future__ import annotations

from torchgauge.dashboard.plain_rows import Row
from torchgauge.records import Modifier, Status, why_marked
from torchgauge.results.hostile_text import first_line
from torchgauge.results.row_case import json_object


def reason_of(row: Row) -> str:
    """Why ``row`` is no pass, in one line."""
    if row["status"] == Status.PASS.value:
        why = why_marked(Modifier.DEGRADED, row["modifiers"] or (), json_object(row["facts"] or "{}"))
        if why:
            return first_line(why)
    message = first_line(
        row["error_message"] or row["reason"] or row["accuracy_detail"] or row["cause"] or ""
    )
    return ": ".join(part for part in (row["error_type"], message) if part) or f"in phase {row['phase']}"
