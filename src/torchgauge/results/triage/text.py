"""Triage for a terminal, a page, a spreadsheet and a program; no text of a row acts in any of them."""

from __future__ import annotations

from operator import attrgetter
from typing import Any

from torchgauge.records import to_plain
from torchgauge.results import document
from torchgauge.results.csv_text import csv_text
from torchgauge.results.triage.findings import Change, Cluster, Known, Triage

_COLUMNS = {
    name: path or name
    for name, _, path in (
        column.partition("=")
        for column in (
            "id", "kind", "title", "change=change.value", "places", "cases", "unexpected", "arrived", "left",
            "statuses", "models", "devices", "configurations", "error_type", "where", "missing_op",
            "expected=known.status", "expected_cause=known.cause", "link=known.link",
            "first_seen_run=first_seen.run_id", "first_seen=first_seen.date",
            "last_seen_run=last_seen.run_id", "last_seen=last_seen.date",
            "example=example.case_id", "example_seconds=example.duration_s",
            "example_parameters=example.parameters", "command=example.command",
        )
    )
}  # fmt: skip
"""Columns of the CSV with where in a cluster they stand."""


def terminal_of(found: Triage, most: int = 0) -> str:
    """The clusters for a person; ``most`` of them, or all where it is 0."""
    return document.terminal("results/triage/triage", **_data(found, most))


def markdown_of(found: Triage, most: int = 0) -> str:
    """The same for a page or an issue."""
    return document.markdown("results/triage/triage", **_data(found, most))


def csv_of(found: Triage) -> str:
    """One line per cluster, those that are gone at the end."""
    return csv_text(tuple(_COLUMNS), map(_cells, (*found.clusters, *found.gone)))


def as_plain(found: Triage) -> dict[str, Any]:
    """Plain values for JSON; times are seconds since the epoch. Text is as the rows hold it."""
    return {
        "schema": "torchgauge.triage",
        "version": 1,
        "failing": found.failing,
        **to_plain(found),
        "clusters": [_plain(each) for each in found.clusters],
        "gone": [_plain(each) for each in found.gone],
        "skipped": dict(found.skipped),
    }


def _data(found: Triage, most: int) -> dict[str, Any]:
    changes = [
        (number, change)
        for change in (Change.NEW, Change.RETURNED, Change.GROWN, Change.SHRUNK)
        if (number := sum(each.change is change for each in found.clusters))
    ]
    return {"found": found, "most": most or None, "changes": changes, "Change": Change}


def _plain(cluster: Cluster) -> dict[str, Any]:
    return {**to_plain(cluster), "statuses": dict(cluster.statuses), "left_as": dict(cluster.left_as)}


def _cells(cluster: Cluster) -> list[Any]:
    known = cluster.known[0] if cluster.known else Known("", "", "", "", 0)
    cells = []
    for path in _COLUMNS.values():
        begin, _, field = path.partition(".")
        found = getattr(known, field) if begin == "known" else attrgetter(path)(cluster)
        if path == "statuses":
            found = tuple(f"{status}={n}" for status, n in found)
        if path in ("cases", "arrived", "left"):
            found = len(found)
        cells.append(" ".join(found) if isinstance(found, tuple) else found)
    return cells
