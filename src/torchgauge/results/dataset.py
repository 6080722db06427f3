"""Reading the store's tables as Arrow, whatever schema version wrote each file.

Why: frames, queries, pages and publishers want the same rows; here missing values are nulls (``None`` in
``to_pylist``), never NaN. Only published runs are read, and only Parquet.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from torchgauge.errors import DamagedTableError, UnknownNameError
from torchgauge.results.migrations import appended_since, check_version, migrate_table
from torchgauge.results.publication import VERSION_KEY
from torchgauge.results.seal import publish_command, was_published
from torchgauge.results.store import Store
from torchgauge.results.tables import TABLES

Read = TypeVar("Read")
Runs = str | Sequence[str] | None
"""One run id, several, or None for all published runs."""


def read_table(store: Store, name: str, runs: Runs = None, columns: Sequence[str] | None = None) -> Any:
    """The ``pyarrow.Table`` called ``name`` over ``runs``, with the columns of today or only ``columns``.

    Raises :class:`UnknownNameError` for a table or run that is not there and
    :class:`DamagedTableError` for a file that cannot be read.
    """
    if name not in TABLES:
        raise UnknownNameError("table", name, TABLES)
    schema = _schema(name, columns)
    parts = [read_part(path, name, schema) for path in _paths(store, name, runs)]
    return pa.concat_tables(parts) if parts else pa.Table.from_batches([], schema=schema)


def read_run(store: Store, name: str, run_id: str, columns: Sequence[str] | None = None) -> Any:
    """The part of the table ``name`` that belongs to one run; without rows where the run has none.

    For walking through many runs: unlike :func:`read_table` it does not look up which runs are published.
    Raises :class:`DamagedTableError` for a file that cannot be read.
    """
    schema = _schema(name, columns)
    path = store.table_path(name, run_id)
    return read_part(path, name, schema) if _is_there(path) else pa.Table.from_batches([], schema=schema)


def read_encoded(
    store: Store, name: str, runs: Sequence[str], columns: Sequence[str]
) -> tuple[Any, list[int]]:
    """The table over ``runs`` with its strings as dictionaries, and how many rows each of ``runs`` has.

    For reading millions of rows: a word is decoded once, not once per row. Raises what :func:`read_table`
    raises.
    """
    schema = _schema(name, columns)
    strings = [field.name for field in schema if pa.types.is_string(field.type)]
    encoded = pa.schema(
        [
            pa.field(field.name, pa.dictionary(pa.int32(), pa.string())) if field.name in strings else field
            for field in schema
        ]
    )
    parts, lengths = [], []
    for run_id in runs:
        path = store.table_path(name, run_id)
        there = _is_there(path)
        if there:
            parts.append(read_part(path, name, encoded, strings))
        lengths.append(parts[-1].num_rows if there else 0)
    whole = pa.concat_tables(parts) if parts else pa.Table.from_batches([], schema=encoded)
    return whole.unify_dictionaries().combine_chunks(), lengths


def around_damage(store: Store, read: Callable[[], Read]) -> Read:
    """What ``read`` makes of ``store`` without runs whose tables are damaged: ``store.left_out`` has these.

    ``read`` is called again when it comes upon one. Whoever asks says what was left out.
    """
    while True:
        try:
            return read()
        except DamagedTableError as error:
            if error.run_id in store.left_out:
                raise
            why = f"{error.path.relative_to(store.path)} cannot be read: {error.problem}"
            store.leave_out(error.run_id, why)


def gaps_of(store: Store) -> list[str]:
    """A sentence on each run of ``store`` that was left out, with what mends it."""
    return [
        f"run {run_id} is damaged and left out: {why}; try: {publish_command(run_id, store.path)}"
        for run_id, why in sorted(store.left_out.items())
    ]


def row_count(store: Store, name: str, run_id: str) -> int:
    """Rows of table ``name`` that belong to the published ``run_id``; raises :class:`DamagedTableError`."""
    path = store.table_path(name, run_id)
    try:
        return int(pq.read_metadata(path).num_rows)
    except (pa.ArrowException, OSError) as error:
        raise damaged(path, error) from error


def _paths(store: Store, name: str, runs: Runs) -> list[Path]:
    published = store.published()
    wanted = published if runs is None else [runs] if isinstance(runs, str) else runs
    for run_id in frozenset(wanted).difference(published):
        raise UnknownNameError("published run", run_id, published)
    paths = [store.table_path(name, run_id) for run_id in wanted]
    return [path for path in paths if _is_there(path)]


def _is_there(path: Path) -> bool:
    """Whether a table has the file ``path``; raises :class:`DamagedTableError` where it was lost."""
    if path.is_file():
        return True
    if was_published(path.parents[2], path):
        raise damaged(path, FileNotFoundError("the file is missing, and was published"))
    return False


def _schema(name: str, columns: Sequence[str] | None) -> Any:
    schema = TABLES[name].schema
    return schema if columns is None else pa.schema([schema.field(column) for column in columns])


def _opened(path: Path, dictionaries: Sequence[str] | None) -> Any:
    if dictionaries is None:
        return pq.ParquetFile(path, page_checksum_verification=True)
    try:
        return pq.ParquetFile(path, read_dictionary=dictionaries, page_checksum_verification=True)
    except KeyError:
        return pq.ParquetFile(path, page_checksum_verification=True)  # older: columns had other names


def read_part(path: Path, name: str, schema: Any, dictionaries: Sequence[str] | None = None) -> Any:
    """The columns of ``schema`` in the file ``path`` of table ``name``, of whatever version it is.

    Raises :class:`DamagedTableError`.
    """
    try:
        file = _opened(path, dictionaries)
        version = check_version(int((file.metadata.metadata or {}).get(VERSION_KEY, b"-1")), str(path))
        there = set(file.schema_arrow.names)
        some = version >= appended_since(name)
        wanted = [column for column in schema.names if column in there] if some else None
        part = file.read(wanted, use_threads=False)
        return migrate_table(name, part, version).select(schema.names).cast(schema)
    except (pa.ArrowException, OSError, KeyError, ValueError) as error:
        raise damaged(path, error) from error


def damaged(path: Path, error: Exception) -> DamagedTableError:
    """The error of a table at ``path`` that cannot be read."""
    return DamagedTableError(path, str(error), hint=publish_command(path.stem, path.parents[2]))
