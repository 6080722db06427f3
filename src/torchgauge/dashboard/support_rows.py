"""The newest rows of checks and operators of a site, as the support table is made of them.

Why not from the store again: the latest results hold these rows already, and reading all runs of a store of
nightly results a second time would cost more than the rest of the site.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from torchgauge.counted import counted
from torchgauge.dashboard.context import SiteContext
from torchgauge.dashboard.latest_results import Entry
from torchgauge.dashboard.plain_rows import Row
from torchgauge.records import DeviceTarget, Environment, Status, Subject
from torchgauge.records.codec import Scalar
from torchgauge.results.compat.gathering import gather
from torchgauge.results.compat.reading import Reading
from torchgauge.results.compat.table import Table

_STATUSES = {status.value for status in Status}


def support_table_of(context: SiteContext, subject: Subject, what: tuple[str, ...]) -> Table:
    """The table of all devices over the cases about ``subject``, of which there is one at least."""
    entries = [entry for entry in context.latest.entries.values() if entry.workload.subject is subject]
    rows, notes = _one_torch(_rows(entries))
    reading = Reading(tuple(rows), _environments(context, rows), tuple(notes), ())
    return gather(reading, (), what)


def _rows(entries: Iterable[Entry]) -> list[Row]:
    """The newest row of every case and the last that says something, oldest first."""
    found = []
    for entry in entries:
        known = [entry.known] if entry.known is not None and entry.stands_in else []
        found += [_row(row) for row in (*known, entry.newest)]
    return sorted(found, key=lambda row: (row["at"], row["run_created_at"], row["run_id"], row["case_id"]))


def _row(row: Row) -> Row:
    """``row`` as a support table reads it, without what only a strange store would hold."""
    return {
        **row,
        "target": str(DeviceTarget(row["device"], row["device_index"])),
        "at": row["when"].timestamp(),
        "store": "",
        "torch_version": row["torch_version"] or "",
        "shape": _shape(row["shape"]),
        "facts": row["facts"] if isinstance(_value(row["facts"]), dict) else "{}",
        "expected": row["expected"] if row["expected"] in _STATUSES else None,
    }


def _shape(text: str) -> str:
    """The extents in ``text``; none where it holds anything else."""
    values = _value(text)
    whole = isinstance(values, dict) and all(type(value) is int for value in values.values())
    return text if whole else "{}"


def _one_torch(rows: list[Row]) -> tuple[list[Row], list[str]]:
    """``rows`` with the newest torch of each device: what no newer torch measured must not vanish."""
    newest = {row["target"]: row["torch_version"] for row in rows if row["torch_version"]}
    older: dict[str, dict[str, int]] = {}
    for row in rows:
        target, torch = row["target"], row["torch_version"]
        if torch and torch != newest[target]:
            count = older.setdefault(target, {})
            count[torch] = count.get(torch, 0) + 1
    notes = []
    for target, found in sorted(older.items()):
        parts = [f"{counted(number, 'result')} with torch {torch}" for torch, number in found.items()]
        notes.append(f"{target}: measured with torch {newest[target]}, but {', '.join(parts)}")
    return [{**row, "torch_version": newest.get(row["target"], "")} for row in rows], notes


def _environments(context: SiteContext, rows: list[Row]) -> dict[str, Environment]:
    facts: dict[tuple[str, str], dict[str, Scalar]] = {}
    for run in dict.fromkeys(row["run_id"] for row in rows):
        for fact in context.environments.get(run, ()):
            value = _value(fact["value"])
            if fact["kind"] == "identity" and isinstance(value, (str, int, float, bool, type(None))):
                key = fact["environment_id"], fact["device"]
                facts.setdefault(key, {})[fact["key"]] = value
    return {key: Environment(device, tuple(sorted(found.items()))) for (key, device), found in facts.items()}


def _value(text: str | None) -> object:
    try:
        return json.loads(text or "null")
    except (ValueError, RecursionError):
        return text
