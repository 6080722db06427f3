"""The cases of a store in order of first appearance: what their numbers in files mean.

A new case gets the next number of its device, so that files of closed epochs stay the same.
"""

from __future__ import annotations

from collections.abc import Iterator

from torchgauge.dashboard.names import CaseName, Column
from torchgauge.records import Workload


class CaseIndex:
    """All cases that were seen, by index and by key."""

    def __init__(self) -> None:
        """No case yet."""
        self._cases: list[CaseName] = []
        self._index: dict[str, int] = {}
        self._on_device: dict[str, int] = {}
        self._workloads: dict[Workload, Workload] = {}
        self._columns: dict[Column, Column] = {}

    def __len__(self) -> int:
        """Number of cases."""
        return len(self._cases)

    def __iter__(self) -> Iterator[CaseName]:
        """The cases by index."""
        return iter(self._cases)

    def __getitem__(self, index: int) -> CaseName:
        """The case of ``index``."""
        return self._cases[index]

    def index(self, key: str | None) -> int:
        """The index of a case key, -1 where it was never seen."""
        return self._index.get(key or "", -1)

    def add(self, key: str, workload: Workload, column: Column) -> None:
        """Give a case the next number of its device; equal names become the same object."""
        number = self._on_device.get(column.device, 0)
        self._on_device[column.device] = number + 1
        self._index[key] = len(self._cases)
        same_workload = self._workloads.setdefault(workload, workload)
        same_column = self._columns.setdefault(column, column)
        self._cases.append(CaseName(key, same_workload, same_column, number))
