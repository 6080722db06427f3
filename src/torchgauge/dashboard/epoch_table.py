"""``data/<epoch>.parquet``: every row of an epoch, for pandas.

One row per case and snapshot, numbers with four significant digits. A modifier NAME is the column
``mark.NAME``; a metric NAME has the columns ``NAME.median``, ``NAME.low`` and ``NAME.high``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from torchgauge.dashboard import arrow_columns
from torchgauge.dashboard.arrow_columns import Integers, parquet
from torchgauge.dashboard.case_book import CaseBook
from torchgauge.dashboard.history import STATUSES
from torchgauge.dashboard.run_rows import Rows
from torchgauge.dashboard.snapshots import DatedRun
from torchgauge.results.row_case import WORKLOAD, columns_of

_MARK = "mark."
_PARTS = ("median", "low", "high")


def file_name(epoch: int) -> str:
    """The file of ``epoch``, relative to the root."""
    return f"data/{epoch}.parquet"


def write(rows: Rows, runs: Sequence[DatedRun], book: CaseBook) -> bytes:
    """``rows``, of which each stands for one case and snapshot, by case and then by time."""
    present = np.unique(rows.case).tolist()
    cases = sorted((book[index] for index in present), key=lambda case: (case.device, case.number))
    place = np.full(len(book), -1, np.int64)
    place[[book.index(case.key) for case in cases]] = np.arange(len(cases))
    rows = rows.take(np.lexsort((rows.run, place[rows.case])))
    code = place[rows.case]
    snapshots = list(dict.fromkeys(run.snapshot for run in runs))
    number = {name: i for i, name in enumerate(snapshots)}
    of_run = np.array([number[run.snapshot] for run in runs], np.int32)
    columns: dict[str, Any] = {
        "snapshot": arrow_columns.of_codes(of_run[rows.run], snapshots),
        "run_id": arrow_columns.of_codes(rows.run, [run.run_id for run in runs]),
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
    return parquet(columns)


def _named(values: Sequence[str], code: Integers) -> Any:
    indices, words = arrow_columns.codes(arrow_columns.of_words(values))
    return arrow_columns.of_codes(indices[code], words)
