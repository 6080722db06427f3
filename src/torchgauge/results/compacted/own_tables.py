"""The tables of a single run, which a compacted month takes in: whether it may, and how they go.

Why a mark: a run may be published again while its month is written, and then its own tables count.
"""

from __future__ import annotations

from contextlib import suppress

from torchgauge.errors import DamagedJournalError, UsageError
from torchgauge.results.atomic_file import fsync_path
from torchgauge.results.held import held, is_held
from torchgauge.results.journal import Kind, RunState, is_being_written, read
from torchgauge.results.seal import read_seal
from torchgauge.results.store import RunFolder, RunInfo, Store
from torchgauge.results.tables import TABLES

Mark = tuple[tuple[str, int, int, int], ...]
"""Name, inode, size and time of change of each table."""


def why_not(store: Store, info: RunInfo) -> str:
    """Why a run with tables of its own is not compacted; empty where it can be."""
    folder = RunFolder(store.path / "runs" / info.run_id)
    if not folder.plan_path.is_file() or not folder.journal_path.is_file():
        return "the plan or the journal, from which tables are rebuilt, is missing"
    if is_held(folder.plan_path) or is_being_written(folder.journal_path):
        return "the run is being measured or published"
    if info.problem:
        return f"the tables of the run are damaged: {info.problem}"
    try:
        found = read_seal(folder)
        for file in found.files if found else ():
            if differs := file.differs_within(store.path):
                return f"{file.path} {differs}"
        if found is None and not _has_ended(folder):
            return "the journal has no end record"
    except (DamagedJournalError, UsageError) as error:
        return error.message
    return ""


def _has_ended(folder: RunFolder) -> bool:
    """Whether the journal of a run without a seal is sound, and says how it ended."""
    state: RunState | None = None
    for record in read(folder.journal_path):
        state = RunState(record.data["state"]) if record.kind is Kind.END else None
    return state is not None


def mark_of(store: Store, run: str) -> Mark:
    """What tells the tables of a run from those that are published again."""
    paths = (store.table_path(table, run) for table in TABLES)
    found = ((path.name, path.stat()) for path in paths if path.is_file())
    return tuple((name, stat.st_ino, stat.st_size, stat.st_mtime_ns) for name, stat in found)


def remove_own(store: Store, run: str, mark: Mark | None) -> None:
    """Remove the tables of a compacted run, ``results`` first, unless they changed since ``mark``."""
    plan = store.path / "runs" / run / "plan.json"
    with suppress(BlockingIOError, FileNotFoundError), held(plan, _in_use):
        there = store.table_path("results", run).is_file()
        if there and mark_of(store, run) != mark:
            return
        for table in reversed(TABLES):
            store.table_path(table, run).unlink(missing_ok=True)
            if table == "results":
                fsync_path(store.table_path(table, run).parent)


def _in_use() -> None:
    raise BlockingIOError
