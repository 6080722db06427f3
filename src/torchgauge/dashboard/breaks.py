"""Cases that passed and then did not, anywhere in the recent snapshots: what a feed tells of."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from torchgauge.dashboard.history import STATUSES, History
from torchgauge.dashboard.names import CaseName
from torchgauge.dashboard.snapshots import Snapshot
from torchgauge.dashboard.statuses import SAYS_NOTHING
from torchgauge.records import ATTEMPTED, Status

_OTHERS = [False] * (256 - len(STATUSES))
_FAILED = np.array([s in ATTEMPTED and s is not Status.PASS for s in STATUSES] + _OTHERS)
_SAID = np.array([s not in SAYS_NOTHING for s in STATUSES] + _OTHERS)


@dataclass(frozen=True)
class Break:
    """A case that failed in ``snapshot`` after it passed in ``before``, the last one that said anything."""

    case: CaseName
    status: Status
    snapshot: Snapshot
    before: Snapshot


def breaks(history: History, most: int) -> tuple[Break, ...]:
    """The breaks in the newest ``most`` snapshots that have any, newest first, then by device and case."""
    if len(history.snapshots) < 2 or not len(history.cases):
        return ()
    status = history.status
    places = np.where(_SAID[status], np.arange(status.shape[1]), -1)
    reached = np.maximum.accumulate(places, axis=1)[:, :-1]
    rows = np.arange(len(status))[:, None]
    before = history.passed[rows, np.maximum(reached, 0)]
    hit = _FAILED[status[:, 1:]] & (reached >= 0) & before
    columns = np.flatnonzero(hit.any(axis=0))[::-1][:most]
    found: list[Break] = []
    for column in columns.tolist():
        found += [
            Break(
                history.cases[row],
                STATUSES[status[row, column + 1]],
                history.snapshots[column + 1],
                history.snapshots[reached[row, column]],
            )
            for row in np.flatnonzero(hit[:, column]).tolist()
        ]
    return tuple(found)
