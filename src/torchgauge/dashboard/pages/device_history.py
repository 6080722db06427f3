"""What the recent snapshots say of one device: how many passed, of how many."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from torchgauge.dashboard.history import NOTHING_PLANNED, History
from torchgauge.records import Subject


@dataclass(frozen=True)
class DeviceHistory:
    """One device over the snapshots of a window."""

    passed: tuple[int | None, ...]
    planned: tuple[int, ...]


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
    return DeviceHistory(
        passed=tuple(
            int(count) if there else None for count, there in zip(passes.sum(axis=0), said, strict=True)
        ),
        planned=tuple(int(n) for n in (status != NOTHING_PLANNED).sum(axis=0)),
    )
