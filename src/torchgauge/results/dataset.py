"""Reading the store's tables as Arrow, whatever schema version wrote each file.

Why: frames, queries, pages and publishers want the same rows; here missing values are nulls (``None`` in
``to_pylist``), never NaN. Only published runs are read, and only Parquet.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from torchgauge.errors import DamagedJournalError, UnknownNameError
from torchgauge.records import SCHEMA_VERSION
from torchgauge.results.migrations import check_version, migrate_table
from torchgauge.results.publication import VERSION_KEY
from torchgauge.results.store import Store
from torchgauge.results.tables import TABLES

Runs = str | Sequence[str] | None
"""One run id, several, or None for all published runs."""


def read_table(store: Store, name: str, runs: Runs = None, columns: Sequence[str] | None = None) -> Any:
    """The ``pyarrow.Table`` called ``name`` over ``runs``, with the columns of today or only ``columns``.

    Raises :class:`UnknownNameError` for a table or run that is not there and
    :class:`DamagedJournalError` for a file that cannot be read.
    """
    if name not in TABLES:
        raise UnknownNameError("table", name, TABLES)
    schema = _schema(name, columns)
    parts = [_read_part(path, name, schema) for path in _paths(store, name, runs)]
    return pa.concat_tables(parts) if parts else schema.empty_table()


def _paths(store: Store, name: str, runs: Runs) -> list[Path]:
    published = store.published()
    wanted = published if runs is None else [runs] if isinstance(runs, str) else runs
    for run_id in wanted:
        if run_id not in published:
            raise UnknownNameError("published run", run_id, published)
    paths = [store.table_path(name, run_id) for run_id in wanted]
    return [path for path in paths if path.is_file()]


def _schema(name: str, columns: Sequence[str] | None) -> Any:
    schema = TABLES[name].schema
    return schema if columns is None else pa.schema([schema.field(column) for column in columns])


def _read_part(path: Path, name: str, schema: Any) -> Any:
    try:
        file = pq.ParquetFile(path)
        version = check_version(int((file.metadata.metadata or {}).get(VERSION_KEY, b"-1")), str(path))
        part = file.read(schema.names if version == SCHEMA_VERSION else None)
        return migrate_table(name, part, version).select(schema.names).cast(schema)
    except (pa.ArrowException, OSError, KeyError) as error:
        raise DamagedJournalError(
            f"{path} cannot be read: {error}",
            hint="remove the run's files under tables/ and publish it again from its journal",
        ) from error
