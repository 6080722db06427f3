"""What becomes of a result set at the door: why it is refused, or the row that a store has of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from campaign_sets import Files, Night, bytes_of, import_sets, write_folder

from torchgauge.records import METRICS, Measurement, to_plain
from torchgauge.results.journal import results
from torchgauge.results.stats import summarise
from torchgauge.results.store import Store
from torchgauge.workflows.ingest.refusal import Reason

Row = dict[str, Any]
Edit = Callable[[Row], object]

STEADY = [1e-3 * (1 + 0.001 * (i * 7 % 10)) for i in range(20)]


def refused(night: Night, files: Files, folder: Path) -> tuple[Reason, str]:
    """Why ``files`` are refused; fails where they are taken or leave anything in the store."""
    before = bytes_of(night.store.path)
    taken, found = import_sets(night.store, [write_folder(folder / "set", files)], night.expected)
    assert not taken
    assert bytes_of(night.store.path) == before
    return found[0].reason, found[0].detail


def kept(night: Night, files: Files, folder: Path) -> Row:
    """The first row that a new store has of ``files``, by its journal; fails where they are refused."""
    store = Store.open(folder / "store", create=True)
    taken, found = import_sets(
        store, [write_folder(folder / "set", files)], night.expected, clock=night.clock
    )
    assert not found
    plain: Row = to_plain(next(results(store.path / "runs" / taken[0].run_id / "journal.jsonl")))
    return plain


def measured(row: Row, **series: Any) -> None:
    """Give ``row`` samples, each with the summary that follows from them: ``series`` is by metric."""
    made = {
        name: Measurement(name, METRICS[name].unit, tuple(found), tuple(range(len(found))), "clock")
        for name, found in series.items()
    }
    row["measurements"] = [to_plain(each) for each in made.values()]
    row["summaries"] = [to_plain(summarise(each, METRICS[name])) for name, each in made.items()]


def said(**changes: object) -> Edit:
    return lambda row: row.update(changes)


def failed(status: str, **changes: object) -> Edit:
    """A row that ended with ``status`` and measured nothing."""
    return said(status=status, phase="start", measurements=[], summaries=[], accuracy=None, **changes)
