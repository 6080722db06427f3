"""One line for a case that somebody should look at: its status and its reason are of one row."""

from __future__ import annotations

from dataclasses import dataclass

from torchgauge.dashboard.latest_results import LatestResults
from torchgauge.dashboard.new_failures import NewFailure
from torchgauge.dashboard.pages import links
from torchgauge.dashboard.plain_rows import Row
from torchgauge.dashboard.statuses import LOOKS, Look
from torchgauge.records import Modifier, Status, why_marked
from torchgauge.results.hostile_text import first_line
from torchgauge.results.row_case import json_object


@dataclass(frozen=True)
class Finding:
    """A case that somebody should look at; ``against`` says what was expected, or when it passed."""

    href: str
    workload: str
    column: str
    look: Look
    against: str
    detail: str


def failure_finding(latest: LatestResults, found: NewFailure) -> Finding:
    """A new failure: the newest row of its case that says anything, whatever was lost since."""
    entry = latest.entries[found.case.workload, found.case.column]
    return Finding(
        href=links.case_link(entry),
        workload=found.case.workload.name,
        column=found.case.column.name,
        look=LOOKS[found.status],
        against=found.against,
        detail=reason_of(entry.shown),
    )


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
