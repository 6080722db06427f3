"""Cases that passed and then did not, anywhere in the recent snapshots: what a feed tells of.

A pass by another path than the requested one is worse than a pass, and a failure is worse than either.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from torchgauge.dashboard.history import History
from torchgauge.dashboard.names import CaseName
from torchgauge.dashboard.snapshots import Snapshot


@dataclass(frozen=True)
class NewFailure:
    """A case that failed in ``snapshot`` after it passed in ``before``, the last one that said anything.

    ``ended`` is its status, or ``degraded``.
    """

    case: CaseName
    ended: str
    snapshot: Snapshot
    before: Snapshot


def newest_failures(history: History, most: int) -> tuple[NewFailure, ...]:
    """New failures of the newest ``most`` snapshots that have any, newest first, then by device and case."""
    if len(history.snapshots) < 2 or not len(history.cases):
        return ()
    status = history.status
    places = np.where(history.said, np.arange(status.shape[1]), -1)
    reached = np.maximum.accumulate(places, axis=1)[:, :-1]
    rows = np.arange(len(status))[:, None]
    hit = history.became_worse((rows, np.maximum(reached, 0)), (slice(None), slice(1, None)))
    hit &= reached >= 0
    columns = np.flatnonzero(hit.any(axis=0))[::-1][:most]
    found: list[NewFailure] = []
    for column in columns.tolist():
        found += [
            NewFailure(
                history.cases[row],
                history.ending(row, column + 1),
                history.snapshots[column + 1],
                history.snapshots[reached[row, column]],
            )
            for row in np.flatnonzero(hit[:, column]).tolist()
        ]
    return tuple(found)
