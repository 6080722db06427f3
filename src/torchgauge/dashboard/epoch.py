"""One epoch: of several rows of a case in one snapshot, the one that stands for it.

That is the newest that says something of the case, and the newest of all where none does. Epochs are read and
written one after another, so that a build needs the memory of one of them and not of the whole history.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from torchgauge.dashboard.arrow_columns import Bits, Integers
from torchgauge.dashboard.case_index import CaseIndex
from torchgauge.dashboard.history import MEDIAN, NOTHING_PLANNED, REBUILT, History
from torchgauge.dashboard.newest_rows import says_something
from torchgauge.dashboard.run_rows import Rows
from torchgauge.dashboard.snapshots import DatedRun, Snapshot
from torchgauge.results.latest import last_of
from torchgauge.results.store import Store


@dataclass(frozen=True)
class Epoch:
    """What the files of an epoch are made of: the rows that stand in it, and the same as a window.

    ``runs`` and ``case_index`` are all of ``store``; the rows name them by rank and by index. ``primaries``
    are the metrics that its scenarios measure for.
    """

    number: int
    store: Store
    rows: Rows
    window: History
    runs: Sequence[DatedRun]
    case_index: CaseIndex
    primaries: tuple[str, ...] = ()


def standing(rows: Rows, snapshot_of_run: Integers) -> Rows:
    """One row per case and snapshot; ``snapshot_of_run`` maps a run's rank to a snapshot's number."""
    if not len(rows):
        return _present(rows)
    snapshot = snapshot_of_run[rows.run]
    place = snapshot - snapshot.min()
    if planned_bits(place, rows.case, int(place.max()) + 1).sum() == len(rows):
        return _present(rows)
    order = [rows.run, rows.when, says_something(rows)]
    return _present(rows.take(last_of([snapshot, rows.case], order)))


def rebuilt(rows: Rows, snapshot_of_run: Integers) -> Rows:
    """Return ``rows`` with the mark :data:`REBUILT` where the snapshot before has another model."""
    known = np.flatnonzero(rows.built)
    last = np.zeros(int(rows.case.max(initial=-1)) + 1, np.int64)
    last[rows.case[known]] = rows.built[known]
    changed = np.unique(rows.case[known[last[rows.case[known]] != rows.built[known]]])
    places = known[np.isin(rows.case[known], changed)]
    places = places[np.lexsort((rows.run[places], rows.case[places]))]
    bits = np.zeros(len(rows), np.bool_)
    case = snapshot = before = now = -1
    for place in places.tolist():
        of_case, built = int(rows.case[place]), int(rows.built[place])
        if of_case != case:
            case, snapshot, now = of_case, -1, built
        if snapshot_of_run[rows.run[place]] != snapshot:
            snapshot, before = int(snapshot_of_run[rows.run[place]]), now
        now = built
        bits[place] = built != before
    return replace(rows, marks={**rows.marks, REBUILT: bits}) if len(changed) else rows


def _present(rows: Rows) -> Rows:
    """``rows`` without marks that no row has and metrics of which no row has a number."""
    return replace(
        rows,
        marks={name: bits for name, bits in sorted(rows.marks.items()) if bits.any()},
        values={n: array for n, array in sorted(rows.values.items()) if not np.isnan(array[MEDIAN]).all()},
    )


def planned_cases(rows: Rows, snapshot_of_run: Integers, snapshots: Sequence[Snapshot]) -> dict[str, int]:
    """How many cases were planned for each snapshot, counted apart from :func:`standing`."""
    place = snapshot_of_run[rows.run] - snapshots[0].number
    counts = planned_bits(place, rows.case, len(snapshots)).sum(axis=1).tolist()
    return {snapshot.id: count for snapshot, count in zip(snapshots, counts, strict=True)}


def planned_bits(place: Integers, case: Integers, snapshots: int) -> Bits:
    """Which cases have a row, by place of the snapshot and by case."""
    found = np.zeros((snapshots, int(case.max(initial=-1)) + 1), np.bool_)
    found[place, case] = True
    return found


def window(
    rows: Rows, snapshot_of_run: Integers, snapshots: Sequence[Snapshot], case_index: CaseIndex
) -> History:
    """``rows``, of which each stands for one case and snapshot, as a window over ``snapshots``."""
    present = np.unique(rows.case)
    cases = sorted(
        (case_index[index] for index in present.tolist()), key=lambda case: (case.device, case.number)
    )
    place = np.full(len(case_index), -1, np.int64)
    place[[case_index.index(case.key) for case in cases]] = np.arange(len(cases))
    shape = len(cases), len(snapshots)
    row, column = place[rows.case], snapshot_of_run[rows.run] - (snapshots[0].number if snapshots else 0)
    status = np.full(shape, NOTHING_PLANNED, np.uint8)
    status[row, column] = rows.status
    when = np.zeros(shape, np.int64)
    when[row, column] = rows.when
    marks = {}
    for name, bits in rows.marks.items():
        marks[name] = np.zeros(shape, np.bool_)
        marks[name][row, column] = bits
    values = {}
    for name, numbers in rows.values.items():
        values[name] = np.full((len(numbers), *shape), np.nan)
        values[name][:, row, column] = numbers
    return History(tuple(cases), tuple(snapshots), status, values, marks, when)
