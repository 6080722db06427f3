"""Columns of another torch or another age than the rest: a reader must not take two builds for one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from torchgauge.clock import DAY_S
from torchgauge.dashboard.names import Column
from torchgauge.results import units
from torchgauge.results.hostile_text import first_line

if TYPE_CHECKING:
    from torchgauge.dashboard.latest_results import Entry

MISSED_S = 1.5 * DAY_S
"""By how much the newest result of a column is older than that of all before its date is said: a night."""


def set_apart(entries: Iterable[Entry]) -> Mapping[Column, str]:
    """What sets a column apart: its torch where most have another, its date where it is older or stale."""
    members = _youngest_first(entries)
    youngest_first = sorted(members, key=lambda column: members[column][0].known_age_s)
    torch = {column: usual_torch(members[column]) for column in youngest_first}
    versions = Counter(filter(None, torch.values())).most_common(1)  # of equals the youngest column's
    said = {}
    for column in youngest_first:
        newest, other = members[column][0], torch[column] not in ("", *(name for name, _ in versions))
        behind = newest.known_age_s - members[youngest_first[0]][0].known_age_s
        parts = [f"torch {first_line(torch[column], 40)}"] if other else []
        if behind > MISSED_S or "stale" in newest.marks:
            parts.append(units.day(newest.known_at))
        if parts:
            said[column] = ", ".join(parts)
    return said


def stale_days(entries: Iterable[Entry]) -> Mapping[Column, str]:
    """The day of the newest result of each column of which no result is any newer than stale.

    It stands above the column, and a cell beneath it says a day only where it is of another one.
    """
    members = _youngest_first(entries).items()
    return {column: units.day(found[0].known_at) for column, found in members if "stale" in found[0].marks}


def _youngest_first(entries: Iterable[Entry]) -> Mapping[Column, list[Entry]]:
    """The entries of each column of which anything is known."""
    members: dict[Column, list[Entry]] = {}
    for entry in sorted(entries, key=lambda entry: entry.known_age_s):
        if entry.known is not None:
            members.setdefault(entry.column, []).append(entry)
    return members


def usual_torch(youngest_first: Sequence[Entry]) -> str:
    """The version of torch that most entries have, of equals the youngest; empty where none is known."""
    known = Counter(version for entry in youngest_first if (version := entry.shown["torch_version"]))
    return known.most_common(1)[0][0] if known else ""
