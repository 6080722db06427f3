"""Rows of several stores as plain values: each run once, damaged ones named and left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torchgauge.records import Environment, Status
from torchgauge.results.latest import Row, read_rows
from torchgauge.results.row_case import WORKLOAD

_COLUMNS = (
    "case_id", *WORKLOAD, "configuration", "backend", "reason", "expected", "unexpected", "modifiers",
    "missing_op", "fingerprint", "environment_id", "torch_version", "facts",
)  # fmt: skip
_STATUSES = {status.value for status in Status}


@dataclass(frozen=True)
class Reading:
    """Rows as :meth:`StoredRows.whole` has them, in order of time.

    ``environments`` are by id. ``notes`` and ``gaps`` are sentences.
    """

    rows: tuple[Row, ...]
    environments: dict[str, Environment]
    notes: tuple[str, ...]
    gaps: tuple[str, ...]


def read_stores(paths: Sequence[str]) -> Reading:
    """Of the stores at ``paths`` and of each case and torch the row that stands, and the newest of all.

    A run that is in several stores counts once, and a run whose tables cannot be read is a gap. Raises
    :class:`UsageError` where there is no store, or none is named.
    """
    stored = read_rows(paths, ("torch_version",)).standing_and_newest("case_key", "torch_version")
    reading = stored.reading
    rows: list[Row] = []
    environments: dict[str, Environment] = {}
    for run, found in stored.whole(_COLUMNS):
        known = reading.environments(run)
        if known is None:
            continue
        environments.update(known)
        strange = sorted({row["status"] for row in found} - _STATUSES)
        if strange:
            told = f"run {run.run_id} of {run.path}: rows with unknown statuses are left out: {strange}"
            reading.gaps.append(told)
        rows += [row for row in found if row["status"] in _STATUSES]
    rows.sort(key=lambda row: (row["at"], row["run_created_at"], row["run_id"]))
    return Reading(tuple(rows), environments, tuple(reading.notes), tuple(reading.gaps))
