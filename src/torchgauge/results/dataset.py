"""Reading the store's tables as Arrow.

Why: frames, queries, pages and publishers want the same rows; here missing values are nulls (``None`` in
``to_pylist``), never NaN. Only published runs are read, and only Parquet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from torchgauge.counted import counted
from torchgauge.errors import DamagedTableError, OtherSchemaError, UnknownNameError
from torchgauge.results.compacted.compacted_months import compact_command
from torchgauge.results.compacted.manifest import MonthManifest
from torchgauge.results.seal import publish_command, was_published
from torchgauge.results.store import Store
from torchgauge.results.table_file import UNREADABLE, Asked, Where, read_file
from torchgauge.results.tables import TABLES

Read = TypeVar("Read")
Runs = str | Sequence[str] | None
"""One run id, several, or None for all published runs."""


def read_table(
    store: Store, name: str, runs: Runs = None, columns: Sequence[str] | None = None, where: Where = ()
) -> Any:
    """The ``pyarrow.Table`` called ``name`` over ``runs``, with the columns of today or only ``columns``.

    ``where`` reads only rows that meet it, and of large files only their parts that may hold such rows.
    Raises :class:`UnknownNameError` for a table or run that is not there and :class:`DamagedTableError` for
    a file that cannot be read.
    """
    if name not in TABLES:
        raise UnknownNameError("table", name, TABLES)
    asked = Asked(name, _schema(name, columns), where)
    there = list(_parts(store, _wanted(store, runs), asked))
    return pa.concat_tables(there) if there else asked.empty()


def read_run(store: Store, name: str, run_id: str, columns: Sequence[str] | None = None) -> Any:
    """The part of the table ``name`` that belongs to one run; without rows where the run has none.

    For walking through many runs: unlike :func:`read_table` it does not look up which runs are published.
    Raises :class:`DamagedTableError` for a file that cannot be read.
    """
    asked = Asked(name, _schema(name, columns))
    part = part_of(store, run_id, asked)
    return asked.empty() if part is None else part


def read_encoded(
    store: Store, name: str, runs: Sequence[str], columns: Sequence[str]
) -> tuple[Any, list[int]]:
    """The table over ``runs`` with its strings as dictionaries, and how many rows each of ``runs`` has.

    For reading millions of rows: a word is decoded once, not once per row. Raises what :func:`read_table`
    raises.
    """
    asked = Asked(name, _schema(name, columns), encoded=True)
    parts = [part_of(store, run_id, asked) for run_id in runs]
    there = [part for part in parts if part is not None]
    whole = pa.concat_tables(there) if there else asked.empty()
    return whole.unify_dictionaries().combine_chunks(), [0 if p is None else p.num_rows for p in parts]


def read_latest(store: Store, name: str, columns: Sequence[str], where: Where = ()) -> Any:
    """Rows of ``results`` or ``summaries``, in no order: all that may stand for their case, and some others.

    Of a compacted month only a few rows are looked at, unless a run of it was published again, withdrawn or
    left out since: then one of its other rows may stand. Raises what :func:`read_table` raises.
    """
    asked = Asked(name, _schema(name, columns), where)
    whole, own = set(store.published()), store.with_own_tables()
    parts = []
    for month in store.compacted.manifests():
        runs = month.by_run.keys()
        if runs <= whole and not runs & own and all(store.compacted.of(run) is month for run in runs):
            whole -= runs
            parts.append(store.month_rows.of_latest(month, asked))
    parts += _parts(store, sorted(whole), asked)
    return pa.concat_tables(parts) if parts else asked.empty()


def part_of(store: Store, run_id: str, asked: Asked) -> Any | None:
    """What is ``asked`` of a run's table; None where the run has no rows in it."""
    return next(_parts(store, [run_id], asked), None)


def _parts(store: Store, runs: Sequence[str], asked: Asked) -> Iterator[Any]:
    """What is ``asked`` of the tables of ``runs``, in their order."""
    own = store.with_own_tables() if len(runs) > 1 else None

    def where(run_id: str) -> MonthManifest | None:
        if own is None:
            return store.month_of(run_id)
        return None if run_id in own else store.compacted.of(run_id)

    for month, group in groupby(runs, where):
        for names in [list(group)] if month else ([run_id] for run_id in group):
            if (part := _part(store, names, asked, month)) is not None:
                yield part


def _part(store: Store, runs: Sequence[str], asked: Asked, month: MonthManifest | None) -> Any | None:
    """What is ``asked`` of the runs of a ``month``, or of one run with tables of its own.

    It may be compacted, or its month be compacted anew, while it is read: then it is read where it is now.
    """
    try:
        if month is not None:
            return store.month_rows.of_runs(month, runs, asked)
        path = store.table_path(asked.table, runs[0])
        return _own(path, asked) if _is_there(path) else None
    except DamagedTableError:
        store.compacted.look()
        if all(store.month_of(run_id) is month for run_id in runs):
            raise
    parts = [part for run_id in runs if (part := part_of(store, run_id, asked)) is not None]
    return pa.concat_tables(parts) if parts else None


def around_damage(store: Store, read: Callable[[], Read]) -> Read:
    """Return what ``read`` makes of ``store`` without the runs whose tables cannot be read.

    ``store.left_out`` has these runs. ``read`` is called again when it comes upon one. The caller reports
    what was left out.
    """
    while True:
        try:
            return read()
        except DamagedTableError as error:
            why = left_out_because(store, error)
            runs = [run for run in error.runs if run not in store.left_out]
            if len(error.runs) > 1:  # of a month, of which single runs may have been published again
                runs = [run for run in runs if store.month_of(run) is not None]
            if not runs:
                raise
            for run_id in runs:
                store.leave_out(run_id, why)


def left_out_because(store: Store, error: DamagedTableError) -> str:
    """Return the file of ``store`` that cannot be read, its problem, and the command that mends it."""
    return f"{error.path.relative_to(store.path)} cannot be read: {error.problem}; try: {error.hint}"


def gaps_of(store: Store) -> list[str]:
    """Return a sentence on each file of ``store`` that cannot be read: its runs, and what mends it."""
    gaps: dict[str, list[str]] = {}
    for run_id, why in sorted(store.left_out.items()):
        gaps.setdefault(why, []).append(run_id)
    sentences = list(store.unfinished)
    for why, runs in gaps.items():
        who = f"run {runs[0]} is" if len(runs) == 1 else counted(len(runs), "run is", "runs are")
        if runs[0] in store.compacted.unreadable:
            who = "runs of a month are"
        sentences.append(f"{who} left out: {why}")
    return sentences


def row_count(store: Store, name: str, run_id: str) -> int:
    """Rows of table ``name`` that belong to the published ``run_id``; raises :class:`DamagedTableError`."""
    if month := store.month_of(run_id):
        if problem := store.compacted.damage(month):
            hint = compact_command(store.path, month.month)
            raise DamagedTableError(store.path / month.path, problem, hint=hint, runs=tuple(month.by_run))
        return month.by_run[run_id].rows.get(name, 0)
    path = store.table_path(name, run_id)
    try:
        return int(pq.read_metadata(path).num_rows)
    except (pa.ArrowException, OSError) as error:
        raise damaged(path, error) from error


def _wanted(store: Store, runs: Runs) -> Sequence[str]:
    published = store.published()
    wanted = published if runs is None else [runs] if isinstance(runs, str) else runs
    for run_id in frozenset(wanted).difference(published):
        raise UnknownNameError("published run", run_id, published)
    return wanted


def _is_there(path: Path) -> bool:
    """Whether a table has the file ``path``; raises :class:`DamagedTableError` where it was lost."""
    if path.is_file():
        return True
    if was_published(path.parents[2], path):
        raise damaged(path, FileNotFoundError("the published file is missing"))
    return False


def _schema(name: str, columns: Sequence[str] | None) -> Any:
    schema = TABLES[name].schema
    return schema if columns is None else pa.schema([schema.field(column) for column in columns])


def _own(path: Path, asked: Asked) -> Any:
    try:
        return read_file(path, asked)
    except UNREADABLE as error:
        raise damaged(path, error) from error


def read_part(path: Path, name: str, schema: Any) -> Any:
    """Return the columns of ``schema`` in the file ``path`` of table ``name``.

    Raises :class:`DamagedTableError`.
    """
    return _own(path, Asked(name, schema))


def damaged(path: Path, error: Exception) -> DamagedTableError:
    """Return the error of a table at ``path`` that cannot be read."""
    if isinstance(error, OtherSchemaError):
        return DamagedTableError(path, error.message, hint=error.hint)
    return DamagedTableError(path, str(error), hint=publish_command(path.stem, path.parents[2]))
