"""What is known of every case over a stretch of the time axis, as numpy arrays.

A window holds the cases that were planned in it; numbers have six significant digits, which is what the
site's snapshots hold, so that pages and what a reader computes from those files agree. Series have four.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from torchgauge.dashboard.arrow_columns import Bits, Floats
from torchgauge.dashboard.names import CaseName
from torchgauge.dashboard.snapshots import Snapshot
from torchgauge.dashboard.statuses import SAYS_NOTHING
from torchgauge.records import ATTEMPTED, UNCOUNTED, UNTIMED, Modifier, Status, apart, is_of_a_step
from torchgauge.suites.toy.suite import toy

STATUSES: tuple[Status, ...] = tuple(Status)
"""The statuses by their index in the arrays."""

_PASS = STATUSES.index(Status.PASS)

NOTHING_PLANNED = 255
"""What stands in the array of statuses where no case was planned."""

_OTHERS = [False] * (256 - len(STATUSES))
_FAILED = np.array([each in ATTEMPTED and each is not Status.PASS for each in STATUSES] + _OTHERS)
_SAID = np.array([each not in SAYS_NOTHING for each in STATUSES] + _OTHERS)

REBUILT = "rebuilt"
"""The mark of a result whose model has other names, shapes or dtypes than in the snapshot before."""

MEDIAN, LOW, HIGH = 0, 1, 2
"""Places in the first axis of ``values``."""


@dataclass(frozen=True)
class History:
    """A stretch of the time axis.

    ``status`` is ``uint8[cases, snapshots]``, an index into :data:`STATUSES` or :data:`NOTHING_PLANNED`;
    ``values`` maps a metric to ``float64[3, cases, snapshots]`` (median, low, high in the metric's base
    unit; NaN where there is no number), or to ``float64[1, cases, snapshots]`` where only the median is asked
    for; metrics without any number are left out; ``marks`` maps a modifier, ``rebuilt`` or
    ``unexpected`` to ``bool[cases, snapshots]``, those that occur (see :meth:`mark`); ``when`` is
    ``int64[cases, snapshots]``, microseconds since the epoch at which the case started or was planned, 0
    where nothing was.
    """

    cases: tuple[CaseName, ...]
    snapshots: tuple[Snapshot, ...]
    status: npt.NDArray[np.uint8]
    values: Mapping[str, Floats]
    marks: Mapping[str, Bits]
    when: npt.NDArray[np.int64]

    @cached_property
    def _places(self) -> dict[str, int]:
        return {case.key: place for place, case in enumerate(self.cases)}

    def number_of(self, case_key: str) -> int | None:
        """The row of a case in the arrays; None where it was not planned in this window."""
        return self._places.get(case_key)

    def of_cases(self, rows: Sequence[int]) -> History:
        """The same stretch of the time axis for the cases in ``rows`` alone."""
        return History(
            tuple(self.cases[row] for row in rows),
            self.snapshots,
            self.status[rows],
            {name: values[:, rows] for name, values in self.values.items()},
            {name: bits[rows] for name, bits in self.marks.items()},
            self.when[rows],
        )

    @cached_property
    def toys(self) -> Bits:
        """Return which cases are toys, and so excluded from every mean."""
        return np.array([bool(toy(case.workload)) for case in self.cases], np.bool_)

    @cached_property
    def planned(self) -> npt.NDArray[np.int64]:
        """Cases planned per snapshot."""
        found: npt.NDArray[np.int64] = (self.status != NOTHING_PLANNED).sum(axis=0)
        return found

    def mark(self, name: str) -> Bits:
        """Where a modifier or ``unexpected`` is set."""
        found = self.marks.get(name)
        return np.zeros(self.status.shape, np.bool_) if found is None else found

    @cached_property
    def passed(self) -> Bits:
        """Where a case passed as what it is: another model that passes under its name says nothing of it."""
        found: Bits = (self.status == _PASS) & ~self.mark(Modifier.OTHER_MODEL.value)
        return found

    @cached_property
    def said(self) -> Bits:
        """Where a result says something of its case."""
        found: Bits = _SAID[self.status]
        return found

    @cached_property
    def failed(self) -> Bits:
        """Where a case was attempted and did not pass."""
        found: Bits = _FAILED[self.status]
        return found

    @cached_property
    def worse(self) -> Bits:
        """Where a case failed, or ran by another path than the requested one."""
        found: Bits = self.failed | ((self.status == _PASS) & self.mark(Modifier.DEGRADED.value))
        return found

    def became_worse(self, before: tuple[Any, Any], now: tuple[Any, Any]) -> Bits:
        """Where a case at the places ``now`` is worse than at ``before``, which hold rows and snapshots.

        A pass by another path is worse than a pass, and a failure is worse than either.
        """
        degraded = self.worse[now] & (self.passed & ~self.worse)[before]
        found: Bits = degraded | (self.failed[now] & self.passed[before])
        return found

    def ending(self, row: int, place: int) -> str:
        """How a case ended: its status, or ``degraded`` where it passed by another path."""
        status = STATUSES[self.status[row, place]]
        marks = self.marks.get(Modifier.DEGRADED.value)
        degraded = status is Status.PASS and marks is not None and marks[row, place]
        return Modifier.DEGRADED.value if degraded else status.value

    @cached_property
    def timed(self) -> Bits:
        """Where step times may enter a mean, a trend or a comparison, by the rule of :func:`times_count`."""
        found: Bits = self.status == _PASS
        for modifier in sorted(UNTIMED):
            found = found & ~self.mark(modifier.value)
        return found

    def comparable(self, metric: str) -> Bits:
        """Where a number of ``metric`` may be compared, by the rule of :func:`number_counts`."""
        found: Bits = self.timed if is_of_a_step(metric) else ~self.mark(Modifier.OTHER_MODEL.value)
        return found

    def numbers(self, metric: str) -> Floats | None:
        """``values`` of ``metric`` with NaN where they may not be compared; None where there are none."""
        values = self.values.get(metric)
        return None if values is None else np.where(self.comparable(metric), values, np.nan)

    def apart(self, metric: str, row: int, place: int) -> str:
        """The modifier for which a pass has no number of ``metric`` that counts; empty where none does."""
        return apart(metric, [name for name, bits in self.marks.items() if bits[row, place]])

    @cached_property
    def counted(self) -> Bits:
        """Where a case is counted among the passes, by the rule of :func:`counts_as_pass`."""
        found: Bits = self.status == _PASS
        for modifier in sorted(UNCOUNTED):
            found = found & ~self.mark(modifier.value)
        return found

    def count(self, status: Status) -> npt.NDArray[np.int64]:
        """Cases of ``status`` per snapshot."""
        found: npt.NDArray[np.int64] = (self.status == STATUSES.index(status)).sum(axis=0)
        return found


def joined(parts: tuple[History, ...]) -> History:
    """Consecutive windows as one, also of none; cases in order of device and number."""
    if len(parts) == 1:
        return parts[0]
    found = {case.key: case for part in parts for case in part.cases}
    cases = tuple(sorted(found.values(), key=lambda case: (case.device, case.number)))
    places = {case.key: place for place, case in enumerate(cases)}
    snapshots = tuple(snapshot for part in parts for snapshot in part.snapshots)
    shape = len(cases), len(snapshots)
    status = np.full(shape, NOTHING_PLANNED, np.uint8)
    when = np.zeros(shape, np.int64)
    lengths = {name: len(array) for part in parts for name, array in part.values.items()}
    values = {name: np.full((length, *shape), np.nan) for name, length in sorted(lengths.items())}
    marks = {name: np.zeros(shape, np.bool_) for name in sorted({n for p in parts for n in p.marks})}
    start = 0
    for part in parts:
        rows = np.array([places[case.key] for case in part.cases], np.int64)
        window = slice(start, start + len(part.snapshots))
        status[rows, window] = part.status
        when[rows, window] = part.when
        for name, array in part.values.items():
            values[name][:, rows, window] = array
        for name, bits in part.marks.items():
            marks[name][rows, window] = bits
        start = window.stop
    return History(cases, snapshots, status, values, marks, when)
