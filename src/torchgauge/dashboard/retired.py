"""Cases that nobody plans any more: a model that was renamed or dropped stands in no denominator.

A snapshot *misses* a case if it planned at least half of what was planned with it last, and not it; smaller
runs by hand miss nothing. A case is retired by more misses in a row than it ever had, or than an epoch has
snapshots, so that what is measured weekly stays between its weeks: by the first one where a new case came
since, which is a rename, or where it is retired on another device, else by the third. Where a whole suite
has new names, nothing that was planned with a case is planned again: a snapshot that is as large, half of it
new since the case was, *replaces* it, and eight in a row retire it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from torchgauge.counted import counted
from torchgauge.dashboard.arrow_columns import Bits, Integers
from torchgauge.dashboard.latest_results import LatestResults
from torchgauge.dashboard.names import CaseName
from torchgauge.dashboard.snapshots import EPOCH_LENGTH, Snapshot
from torchgauge.records import Subject

MARK = "retired"
"""The mark of a retired case on the page of its model, which stays."""

DROPPED_AFTER = 3
"""Misses in a row after which a case is retired for which nothing new came."""

REPLACED_AFTER = 7
"""Snapshots that miss or replace a case after which it is retired: fewer may be the first round of a rota."""

MOST_NAMED = 4
"""Models that the note on retired cases names."""


def retired_cases(
    cases: Iterable[CaseName], planned: Bits, snapshots: Sequence[Snapshot]
) -> Mapping[str, str]:
    """Return the keys of retired cases of models, with the day since which they are not planned.

    ``planned`` is ``bool[cases, snapshots]`` over all of the store: what was dropped before the recent
    snapshots stays retired.
    """
    cases, groups = tuple(cases), dict[tuple[str, str], list[int]]()
    for row, case in enumerate(cases):
        if case.workload.subject is Subject.MODELS:
            groups.setdefault((case.device, case.workload.suite), []).append(row)
    found: dict[CaseName, str] = {}
    missing: dict[CaseName, str] = {}
    for rows in groups.values():
        gone, misses, since = _retired(planned[rows])
        for place in np.flatnonzero(gone | misses).tolist():
            (found if gone[place] else missing)[cases[rows[place]]] = snapshots[since[place]].date
    elsewhere = {(case.workload, case.column.configuration) for case in found}
    found |= {c: day for c, day in missing.items() if (c.workload, c.column.configuration) in elsewhere}
    return {case.key: day for case, day in found.items()}


def _retired(planned: Bits) -> tuple[Bits, Bits, Integers]:
    """Return which cases of a suite on a device are retired, which miss, and the first miss of each."""
    cases, snapshots = planned.shape
    together = planned.T.astype(np.float32) @ planned.astype(np.float32)  # whole numbers, and fast
    misses = 2 * together >= np.maximum(np.diag(together), 1)[:, None]
    first = planned.argmax(axis=1)
    replaces = _replaces(planned, first)
    last, since = np.full(cases, -1, np.int64), np.zeros(cases, np.int64)
    missed, gone, longest = (np.zeros(cases, np.int64) for _ in range(3))
    for place in range(snapshots):
        here = planned[:, place]
        miss = ~here & (last >= 0) & misses[last, place]
        away = miss | (~here & (last >= 0) & replaces[last, place])
        since[away & (gone == 0)] = place
        longest = np.where(here, np.maximum(longest, gone), longest)
        missed, gone = (np.where(here, 0, row + more) for row, more in ((missed, miss), (gone, away)))
        last[here] = place
    renamed = (missed > 0) & (first.max(initial=0) > last)
    longest = np.minimum(longest, EPOCH_LENGTH)
    missing = missed > longest
    retired = missing & (renamed | (missed >= DROPPED_AFTER))
    return retired | (gone > np.maximum(longest, REPLACED_AFTER)), missing, since


def _replaces(planned: Bits, first: Integers) -> Bits:
    """By two snapshots: whether the second is as large as the first, and half of it is new since then."""
    snapshots = planned.shape[1]
    planned_at = [np.bincount(first[planned[:, place]], minlength=snapshots) for place in range(snapshots)]
    came = np.array(planned_at).reshape(snapshots, snapshots)
    size = came.sum(axis=1)
    new = size[:, None] - came.cumsum(axis=1)  # [place, last]
    found: Bits = ((2 * new >= size[:, None]) & (size[:, None] >= size[None, :]) & (new > 0)).T
    return found


def retired_text(latest: LatestResults) -> str:
    """How many cases nobody plans any more, of which models and since when; empty where there is none."""
    if not latest.retired:
        return ""
    since: dict[str, str] = {}
    for entry, day in latest.retired:
        name = "/".join(entry.workload.group)
        since[name] = min(since.get(name, day), day)
    named = sorted(since.items(), key=lambda each: each[::-1], reverse=True)
    listed = ", ".join(f"{name} since {day}" for name, day in named[:MOST_NAMED])
    more = f" and {counted(len(named) - MOST_NAMED, 'other model')}" if len(named) > MOST_NAMED else ""
    cases = "1 case is" if len(latest.retired) == 1 else f"{len(latest.retired)} cases are"
    return f"{cases} no longer planned and left out: {listed}{more}."
