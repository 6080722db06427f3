"""``data/<epoch>.parquet``: every row of an epoch, for pandas.

One row per case and snapshot, numbers with six significant digits. A modifier NAME is the column
``mark.NAME``; a metric NAME has the columns ``NAME.median``, ``NAME.low`` and ``NAME.high``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from torchgauge.dashboard import arrow_columns
from torchgauge.dashboard.arrow_columns import Integers, parquet
from torchgauge.dashboard.epoch import Epoch
from torchgauge.dashboard.history import STATUSES
from torchgauge.results.row_case import WORKLOAD, columns_of

_MARK = "mark."
_PARTS = ("median", "low", "high")


def files(epoch: Epoch) -> Iterator[tuple[str, bytes]]:
    """The rows that stand in the epoch, by case and then by time."""
    cases = epoch.window.cases
    place = np.full(len(epoch.case_index), -1, np.int64)
    place[[epoch.case_index.index(case.key) for case in cases]] = np.arange(len(cases))
    rows = epoch.rows
    rows = rows.take(np.lexsort((rows.run, place[rows.case])))
    code = place[rows.case]
    ranks, run = np.unique(rows.run, return_inverse=True)  # words of other epochs would make the file differ
    runs = [epoch.runs[rank] for rank in ranks.tolist()]
    number = {snapshot.id: place for place, snapshot in enumerate(epoch.window.snapshots)}
    of_run = np.array([number[each.snapshot] for each in runs], np.int32)
    columns: dict[str, Any] = {
        "snapshot": arrow_columns.of_codes(of_run[run], list(number)),
        "run_id": arrow_columns.of_codes(run, [each.run_id for each in runs]),
        "case_key": arrow_columns.of_codes(code, [case.key for case in cases]),
        "when": arrow_columns.of_integers(rows.when, pa.timestamp("us", tz="UTC")),
        "on_device": _named([case.column.device for case in cases], code),
        "configuration": _named([case.column.configuration for case in cases], code),
    }
    workloads = [columns_of(case.workload) for case in cases]
    for name in WORKLOAD:
        values = [workload[name] for workload in workloads]
        if name in ("batch", "seed"):
            columns[name] = arrow_columns.of_integers(np.array(values, np.int64)[code])
        else:
            columns[name] = _named(values, code)
    columns["status"] = arrow_columns.of_codes(rows.status, [status.value for status in STATUSES])
    for mark in sorted(rows.marks):
        columns[_MARK + mark] = arrow_columns.of_booleans(rows.marks[mark])
    for metric in sorted(rows.values):
        for part, numbers in zip(_PARTS, rows.values[metric], strict=True):
            columns[f"{metric}.{part}"] = arrow_columns.of_floats(numbers)
    yield f"data/{epoch.number}.parquet", parquet(columns)


def _named(values: Sequence[str], code: Integers) -> Any:
    indices, words = arrow_columns.codes(arrow_columns.of_words(values))
    return arrow_columns.of_codes(indices[code], words)
