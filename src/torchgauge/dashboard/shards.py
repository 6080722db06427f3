"""Columnar JSON by access path: one file per device and model, and per snapshot and device.

Every file is strict JSON; what is missing is null, never 0. A case is named by its number in the
``cases/`` file of its device; the second file of a snapshot has further metrics of the cases in its first.
``low`` and ``high`` are left out where a metric has no interval at all, and a metric where a case has no
number in the whole file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from torchgauge.dashboard.arrow_columns import Floats, rounded
from torchgauge.dashboard.context import SiteContext
from torchgauge.dashboard.epoch import Epoch
from torchgauge.dashboard.history import HIGH, LOW, MEDIAN, NOTHING_PLANNED, STATUSES, History
from torchgauge.dashboard.names import CaseName, device_id, model_id
from torchgauge.dashboard.pages import links
from torchgauge.dashboard.statuses import LOOKS
from torchgauge.dashboard.statuses import NOTHING_PLANNED as NOTHING
from torchgauge.records import View, in_view

SCHEMA = 1
CORE = in_view(View.CORE)
"""Metrics of a snapshot's first file; the others are in its second, by the cases of the first."""

DRAWN = 4
"""Significant digits of a series, which is drawn; what is compared has six, in the snapshots."""

_LETTERS = np.full(256, ord(NOTHING), np.uint8)
_LETTERS[: len(STATUSES)] = [ord(LOOKS[status].letter) for status in STATUSES]


def build(context: SiteContext) -> Iterator[tuple[str, bytes]]:
    """The lists of cases."""
    cases = sorted(context.case_index, key=lambda case: (case.device, case.number))
    for device, members in groupby(cases, key=lambda case: case.device):
        listed = {"schema": SCHEMA, "device": device, "cases": [_case(case) for case in members]}
        yield f"cases/{device_id(device)}.json", msgspec.json.encode(listed)


def files(epoch: Epoch) -> Iterator[tuple[str, bytes]]:
    """The series and the snapshots of an epoch."""
    for device, cases, first in _by_device(epoch.window):
        yield from _series(device, epoch.number, cases, first, epoch.window)
        yield from _snapshots(device, first, cases, epoch.window)


def _case(case: CaseName) -> dict[str, Any]:
    workload = case.workload
    return {
        "key": case.key,
        "suite": workload.suite,
        "model": workload.model,
        "model_id": model_id(workload.group),
        "variant": workload.variant,
        "mode": workload.mode,
        "dtype": workload.dtype,
        "configuration": case.column.configuration,
        "compiled": case.column.compiled,
        "file": links.model_page(workload.group),
        "anchor": links.case_anchor_of(workload, case.column),
    }


def _by_device(window: History) -> Iterator[tuple[str, tuple[CaseName, ...], int]]:
    """Device, its cases and the row of the first of them: cases of a window are sorted by device."""
    first = 0
    for device, members in groupby(window.cases, key=lambda case: case.device):
        cases = tuple(members)
        yield device, cases, first
        first += len(cases)


def _series(
    device: str, epoch: int, cases: Sequence[CaseName], first: int, window: History
) -> Iterator[tuple[str, bytes]]:
    groups: dict[tuple[str, str], list[int]] = {}
    for row, case in enumerate(cases, first):
        groups.setdefault(case.workload.group, []).append(row)
    ids = [snapshot.id for snapshot in window.snapshots]
    letters = _LETTERS[window.status]
    numbers = _Lists.of(window, slice(first, first + len(cases)))
    for group, rows in groups.items():
        data = {
            "schema": SCHEMA,
            "device": device,
            "suite": group[0],
            "model": group[1],
            "epoch": epoch,
            "snapshots": ids,
            "cases": [_one_series(window, letters, numbers, row, row - first) for row in rows],
        }
        yield f"series/{device_id(device)}/{model_id(group)}/{epoch}.json", msgspec.json.encode(data)


@dataclass(frozen=True)
class _Lists:
    """The numbers of a device as nested lists, and which of them there are, by metric."""

    values: dict[str, list[list[list[float]]]]
    there: dict[str, list[list[bool]]]

    @staticmethod
    def of(window: History, rows: slice) -> _Lists:
        """Of the cases ``rows`` of ``window``."""
        arrays = {name: rounded(array[:, rows, :], DRAWN) for name, array in window.values.items()}
        return _Lists(
            {name: array.tolist() for name, array in arrays.items()},
            {name: _any(array) for name, array in arrays.items()},
        )

    def series(self, metric: str, place: int) -> dict[str, list[float]]:
        """Median, low and high of one case as lists in which NaN will be null."""
        values, there = self.values[metric], self.there[metric]
        if not there[MEDIAN][place]:
            return {}
        found = {"median": values[MEDIAN][place]}
        if there[LOW][place] or there[HIGH][place]:
            found |= {"low": values[LOW][place], "high": values[HIGH][place]}
        return found


def _one_series(
    window: History, letters: npt.NDArray[np.uint8], numbers: _Lists, row: int, place: int
) -> dict[str, Any]:
    """The case in ``row`` of the window, which is the case ``place`` of ``numbers``."""
    case = window.cases[row]
    marks = {name: np.flatnonzero(bits[row]).tolist() for name, bits in window.marks.items()}
    metrics = {name: numbers.series(name, place) for name in window.values}
    return {
        "case": case.number,
        "variant": case.workload.variant,
        "configuration": case.column.configuration,
        "status": letters[row].tobytes().decode(),
        "marks": {name: places for name, places in marks.items() if places},
        "metrics": {name: found for name, found in metrics.items() if found},
    }


def _any(numbers: Floats) -> list[Any]:
    """Whether there is any number along the last axis, as lists."""
    found: Any = np.isfinite(numbers).any(axis=-1)
    lists: list[Any] = found.tolist()
    return lists


def _three(numbers: Floats) -> dict[str, list[float]]:
    """Median, low and high as lists in which NaN will be null."""
    there = _any(numbers)
    if not there[MEDIAN]:
        return {}
    found = {"median": numbers[MEDIAN].tolist()}
    if there[LOW] or there[HIGH]:
        found |= {"low": numbers[LOW].tolist(), "high": numbers[HIGH].tolist()}
    return found


def _snapshots(
    device: str, first: int, cases: Sequence[CaseName], window: History
) -> Iterator[tuple[str, bytes]]:
    rows = slice(first, first + len(cases))
    numbers = np.array([case.number for case in cases], np.int64)
    for place, snapshot in enumerate(window.snapshots):
        status = window.status[rows, place]
        planned = np.flatnonzero(status != NOTHING_PLANNED)
        if not len(planned):
            continue
        marks = {name: np.flatnonzero(bits[rows, place][planned]) for name, bits in window.marks.items()}
        metrics = {
            name: found
            for name, array in window.values.items()
            if (found := _three(array[:, rows, place][:, planned]))
        }
        head = {
            "schema": SCHEMA,
            "snapshot": snapshot.id,
            "device": device,
            "marks": {name: places.tolist() for name, places in marks.items() if len(places)},
        }
        core = head | {
            "cases": numbers[planned].tolist(),
            "status": _LETTERS[status[planned]].tobytes().decode(),
            "metrics": {name: metrics[name] for name in CORE if name in metrics},
        }
        extra = head | {"metrics": {name: metrics[name] for name in metrics if name not in CORE}}
        folder = f"snapshots/{snapshot.id}/{device_id(device)}"
        yield f"{folder}.core.json", msgspec.json.encode(core)
        yield f"{folder}.extra.json", msgspec.json.encode(extra)
