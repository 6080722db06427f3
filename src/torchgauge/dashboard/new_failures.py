"""Cases that passed and then did not: what pages list, cells are marked with, and the feed and badges tell.

A pass by another path than the requested one is worse than a pass, and a failure is worse than either. A row
that says nothing of its case (``infra``, ``not_run``) neither makes a new failure nor ends one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from torchgauge.dashboard.arrow_columns import Bits, Integers
from torchgauge.dashboard.history import STATUSES, History
from torchgauge.dashboard.latest_results import LatestResults
from torchgauge.dashboard.names import CaseName
from torchgauge.dashboard.snapshots import Snapshot
from torchgauge.records import Status

MARK = "new"
"""The mark of a case whose failure stands: nothing was said of it since."""


@dataclass(frozen=True)
class NewFailure:
    """A case that failed in ``snapshot``, after its result before, in ``before``, was better.

    ``ended`` is its status, or ``degraded``.
    """

    case: CaseName
    status: Status
    ended: str
    snapshot: Snapshot
    before: Snapshot

    @property
    def against(self) -> str:
        """When it passed and when it broke, in words."""
        broke = self.ended if self.status is Status.PASS else "failed"
        return f"passed {self.before.date}, {broke} {self.snapshot.date}"


def standing_failures(history: History, latest: LatestResults) -> tuple[NewFailure, ...]:
    """The new failures of which nothing was said since, of the cases of ``latest``, by device and case."""
    hit, order, said = _changes(history)
    if not hit.shape[1]:
        return ()
    rows = np.flatnonzero(hit[:, -1] & said[:, -1]).tolist()
    current = {entry.newest["case_key"] for entry in latest.entries.values()}
    found = (_failure(history, row, order[row, -1], order[row, -2]) for row in rows)
    return tuple(each for each in found if each.case.key in current)


def recent_failures(history: History, most: int) -> tuple[NewFailure, ...]:
    """All new failures of the newest ``most`` snapshots that have any, newest first, then by device and case.

    Also those of cases that pass again: a feed tells of them as long as they are recent.
    """
    hit, order, _ = _changes(history)
    rows, places = np.nonzero(hit)
    columns = order[rows, places + 1]
    newest = np.unique(columns)[::-1][:most]
    kept = np.flatnonzero(np.isin(columns, newest))
    kept = kept[np.lexsort((rows[kept], -columns[kept]))]
    return tuple(
        _failure(history, int(rows[k]), columns[k], order[rows[k], places[k]]) for k in kept.tolist()
    )


def _changes(history: History) -> tuple[Bits, Integers, Bits]:
    """Where a case became worse at its next result, its snapshots in order of time, and whether it was said.

    In order of time and not of snapshots: two builds of torch that were measured alternately on one day are
    two snapshots, of which the first may hold the newest row.
    """
    when = np.where(history.said, history.when, -1)
    order = np.argsort(when, axis=1, kind="stable")
    said = np.take_along_axis(history.said, order, axis=1)
    if order.shape[1] < 2:
        return np.zeros((len(order), 0), np.bool_), order, said
    rows = np.arange(len(order))[:, None]
    hit = history.became_worse((rows, order[:, :-1]), (rows, order[:, 1:]))
    return hit & said[:, :-1], order, said


def _failure(history: History, row: int, now: int, before: int) -> NewFailure:
    return NewFailure(
        case=history.cases[row],
        status=STATUSES[history.status[row, now]],
        ended=history.ending(row, int(now)),
        snapshot=history.snapshots[now],
        before=history.snapshots[before],
    )
