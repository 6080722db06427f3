"""The rows of a store as a file that any program reads: CSV or Parquet, with the columns of the store."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from torchgauge.counted import counted
from torchgauge.errors import UsageError
from torchgauge.results.atomic_file import publish, storage_errors, write_atomically, writing_aside
from torchgauge.results.csv_text import csv_text
from torchgauge.results.query import query
from torchgauge.results.store import Store
from torchgauge.results.tables import TABLES

CSV, PARQUET = "csv", "parquet"
_HINT = "pass --csv FILE or --parquet FILE in an existing folder, or a folder for all tables"


@dataclass(frozen=True)
class Wanted:
    """What of a store is exported: rows of ``tables`` that meet ``conditions``, of one ``run`` or of all."""

    tables: tuple[str, ...] = ()
    conditions: tuple[str, ...] = ()
    run: str | None = None


def places(out: Path, form: str, wanted: Wanted) -> dict[str, Path]:
    """The file of each table: ``out`` where it is called ``*.csv`` or ``*.parquet``, else one each in it.

    Raises :class:`UsageError` where several tables would go into one file, where conditions would be asked of
    several, and where the place is of the wrong kind.
    """
    ending = f".{form}"
    if out.suffix.lower() in {f".{CSV}", f".{PARQUET}"} - {ending} and not out.is_dir():
        raise UsageError(f"--{form} {out} has the ending of another format", hint=f"--{form} FILE{ending}")
    one_file = out.suffix.lower() == ending and not out.is_dir()
    tables = wanted.tables or (("results",) if one_file or wanted.conditions else tuple(TABLES))
    if wanted.conditions and len(tables) > 1:
        raise UsageError("conditions require exactly one table", hint="pass --table NAME once")
    if one_file:
        if len(tables) > 1:
            raise UsageError(
                f"{counted(len(tables), 'table does', 'tables do')} not fit into {out}",
                hint=f"--{form} FOLDER",
            )
        if not out.parent.is_dir():
            raise UsageError(f"--{form} {out}: the folder {out.parent} does not exist", hint=_HINT)
        return {tables[0]: out}
    if out.exists() and not out.is_dir():
        raise UsageError(f"--{form} {out}: the existing file does not end in {ending}", hint=_HINT)
    return {table: out / f"{table}{ending}" for table in tables}


def export_table(store: Store, table: str, path: Path, form: str, wanted: Wanted) -> int:
    """Write the rows to ``path``; the number of them. Raises what :func:`query` raises."""
    frame = query(store, wanted.conditions, table, wanted.run)
    with storage_errors(path):
        path.parent.mkdir(exist_ok=True)
    if form == CSV:
        write_atomically(path, csv_text(list(frame.columns), _cells(frame)).encode())
    else:
        schema = TABLES[table].schema
        if "modifiers" in frame and "modifiers" not in schema.names:
            schema = schema.append(pa.field("modifiers", pa.list_(pa.string())))
        with writing_aside(path) as aside, storage_errors(path):
            pq.write_table(pa.Table.from_pandas(frame, schema=schema, preserve_index=False), aside)
            publish(aside, path)
    return len(frame)


def _cells(frame: pd.DataFrame) -> Iterator[Iterable[object]]:
    """Rows of text and numbers: nothing for null, times in ISO 8601, the words of a list joined by ``;``."""
    for row in frame.itertuples(index=False, name=None):
        yield map(_cell, row)


def _cell(value: Any) -> object:
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ";".join(map(str, value))
    if isinstance(value, pd.Timestamp):
        return value.isoformat()
    return None if pd.isna(value) else value
