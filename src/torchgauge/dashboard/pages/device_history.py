"""What the recent snapshots say of one device: pass counts, new failures, and whether it still reports."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from torchgauge.dashboard.history import NOTHING_PLANNED, STATUSES, History
from torchgauge.dashboard.names import CaseName
from torchgauge.records import Status, Subject


@dataclass(frozen=True)
class NewFailure:
    """A case whose newest result is a failure and whose result before passed.

    ``ended`` is its status, or ``degraded``: to pass by another path than the requested one is not to pass.
    """

    case: CaseName
    status: Status
    ended: str
    failed: str
    passed: str


@dataclass(frozen=True)
class DeviceHistory:
    """One device over the snapshots of a window.

    ``missed`` counts the newest ones in which only others spoke.
    """

    passed: tuple[int | None, ...]
    planned: tuple[int, ...]
    missed: int
    last: str


def rows_of(history: History, device: str, subject: Subject) -> npt.NDArray[np.int64]:
    """The rows of ``history`` that are cases of ``device`` about ``subject``."""
    found = [
        i
        for i, case in enumerate(history.cases)
        if case.column.device == device and case.workload.subject is subject
    ]
    return np.array(found, np.int64)


def device_history(history: History, rows: npt.NDArray[np.int64]) -> DeviceHistory:
    """What the window says of the cases in ``rows``."""
    status = history.status[rows]
    passes = history.counted[rows]
    said: npt.NDArray[np.bool_] = np.any(history.said[rows], axis=0)
    others: npt.NDArray[np.bool_] = np.any(history.said, axis=0)
    spoke = np.flatnonzero(said)
    last = int(spoke[-1]) if len(spoke) else -1
    return DeviceHistory(
        passed=tuple(
            int(count) if there else None for count, there in zip(passes.sum(axis=0), said, strict=True)
        ),
        planned=tuple(int(n) for n in (status != NOTHING_PLANNED).sum(axis=0)),
        missed=int(others[last + 1 :].sum()),
        last=history.snapshots[last].date if last >= 0 else "",
    )


def new_failures(history: History, rows: npt.NDArray[np.int64]) -> Iterator[NewFailure]:
    """The cases in ``rows`` whose newest result is a failure while the result before it passed."""
    if not len(rows) or len(history.snapshots) < 2:
        return
    status = history.status[rows]
    said = history.said[rows]
    places = np.maximum.accumulate(np.where(said, np.arange(status.shape[1]), -1), axis=1)
    newest = places[:, -1]
    at = np.arange(len(rows))
    before = np.where(newest > 0, places[at, np.maximum(newest - 1, 0)], -1)
    hit = (newest >= 0) & (before >= 0) & history.became_worse((rows, before), (rows, newest))
    for i in np.flatnonzero(hit).tolist():
        yield NewFailure(
            case=history.cases[rows[i]],
            status=STATUSES[status[i, newest[i]]],
            ended=history.ending(int(rows[i]), int(newest[i])),
            failed=history.snapshots[newest[i]].date,
            passed=history.snapshots[before[i]].date,
        )
