"""The A/B runs of a store in a line each: how they stand, and what their verdicts are."""

from __future__ import annotations

import json
import os
from collections import Counter
from dataclasses import dataclass
from typing import Any

from torchgauge.errors import DamagedJournalError, UsageError
from torchgauge.results.comparing.comparison_store import (
    ComparisonFolder,
    comparison_ids,
    read_comparisons,
)
from torchgauge.results.journal import Kind, RunState, is_being_written
from torchgauge.results.json_file import read_object
from torchgauge.results.schema_version import check_version
from torchgauge.results.store import Store

_END_BYTES = 4096
"""The line that ends a journal is far shorter."""


@dataclass(frozen=True)
class ComparisonInfo:
    """One A/B run; ``created_at`` is in seconds since the epoch, UTC.

    ``counts`` maps each verdict to its number, over all metrics of all pairs but A/A pairs. ``problem`` says
    what cannot be read.
    """

    run_id: str
    state: RunState
    created_at: float
    pairs: int
    base: str
    head: str
    counts: dict[str, int]
    published: bool
    problem: str = ""


def comparison_infos(store: Store) -> list[ComparisonInfo]:
    """All A/B runs of ``store``, finished or not, oldest first."""
    return [_info(store, run_id) for run_id in comparison_ids(store)]


def _info(store: Store, run_id: str) -> ComparisonInfo:
    folder = ComparisonFolder(store.path / "comparisons" / run_id)
    published = store.table_path("verdicts", run_id).is_file()
    problem, counts, data = "", Counter[str](), dict[str, Any]()
    try:
        data = read_object(folder.plan_path)
        check_version(data.get("schema_version"), str(folder.plan_path))
        if published:
            table = read_comparisons(store, "verdicts", [run_id], ("verdict", "control"))
            rows = zip(table["verdict"].to_pylist(), table["control"].to_pylist(), strict=True)
            counts.update(verdict for verdict, control in rows if not control)
    except (DamagedJournalError, UsageError) as error:
        problem = error.message
    return ComparisonInfo(
        run_id,
        _state(folder),
        float(data.get("created_at", 0.0)),
        len(data.get("pairs", ())),
        str(data.get("base", {}).get("label", "base")),
        str(data.get("head", {}).get("label", "head")),
        dict(sorted(counts.items())),
        published,
        problem,
    )


def _state(folder: ComparisonFolder) -> RunState:
    """As the last line of the journal says; all lines of thousands of launches need not be read for it."""
    path = folder.journal_path
    if not path.is_file():
        return RunState.INTERRUPTED
    with path.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - _END_BYTES))
        last = file.read().rstrip(b"\n").rpartition(b"\n")[2]
    try:
        record = json.loads(last)
        if record["kind"] == Kind.END.value:
            return RunState(record["data"]["state"])
    except (ValueError, KeyError, TypeError):
        pass  # a line that was torn off, or no end
    return RunState.RUNNING if is_being_written(path) else RunState.INTERRUPTED
