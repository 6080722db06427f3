"""How far ordinary runs of unchanged things lie apart: the noise of a comparison of two runs.

Why beside the ledger of A/B runs: there base and head alternate, so what differs between hours is not in
their spread. Between two runs it is, and the only place where it can be seen is other runs of the same case
in the same environment.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from torchgauge.records import number_counts
from torchgauge.results.comparing.noise import MAX_PRIOR_DF, Prior
from torchgauge.results.dataset import read_table
from torchgauge.results.store import Store

_COLUMNS = ("run_id", "case_key", "metric", "environment_id", "median")


@dataclass
class RunHistory:
    """Log medians of earlier runs: by environment and case key, then by run; those that may be compared."""

    metric: str
    logs: dict[tuple[str, str], dict[str, float]] = field(default_factory=dict)

    def of_one(self, environment: str, case_key: str) -> Prior | None:
        """The spread of the log ratio of two runs of a case in ``environment``; None below three runs."""
        values = list(self.logs.get((environment, case_key), {}).values())
        return _prior(values, math.sqrt(2))

    def of_two(self, environment: str, base_key: str, head_key: str) -> Prior | None:
        """The spread of the log ratio of two cases that ran in one run, over runs."""
        base, head = self.logs.get((environment, base_key), {}), self.logs.get((environment, head_key), {})
        return _prior([head[run] - base[run] for run in base.keys() & head.keys()], 1.0)


def read_run_history(
    store: Store, metric: str, environments: Collection[str], without: Iterable[str] = ()
) -> RunHistory:
    """The history of ``metric`` in ``environments``, from all published runs but ``without``."""
    runs = [run for run in store.published() if run not in set(without)]
    history = RunHistory(metric)
    found: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
    if runs:
        table = read_table(store, "summaries", runs, _COLUMNS)
        rows = read_table(store, "results", runs, ("run_id", "case_key", "status", "modifiers")).to_pylist()
        apart = {
            (row["run_id"], row["case_key"])
            for row in rows
            if not number_counts(metric, row["status"], row["modifiers"])
        }
        for row in table.filter(_of_metric(table, metric, environments)).to_pylist():
            if (row["run_id"], row["case_key"]) not in apart and (row["median"] or 0) > 0:
                found[row["environment_id"], row["case_key"]][row["run_id"]] = math.log(row["median"])
    history.logs = dict(found)
    return history


def _of_metric(table: object, metric: str, environments: Collection[str]) -> object:
    import pyarrow as pa
    import pyarrow.compute as pc

    columns: object = table
    wanted = pa.array(sorted(environments), pa.string())
    return pc.and_(
        pc.equal(columns["metric"], metric),  # type: ignore[index]
        pc.is_in(columns["environment_id"], value_set=wanted),  # type: ignore[index]
    )


def _prior(values: list[float], factor: float) -> Prior | None:
    if len(values) < 3:
        return None
    mean = sum(values) / len(values)
    variance = sum((value - mean) ** 2 for value in values) / (len(values) - 1)
    if variance <= 0:
        return None  # equal to the last digit is a copy, not a history
    return Prior(factor * math.sqrt(variance), min(MAX_PRIOR_DF, len(values) - 1.0))
