"""Writing the files of a compacted month: rows of a series together in order of time, and the latest apart.

Why sorted by case: a reader of one series looks at one part of each file, and like values beside each other
take less room. What was written is read back before anybody relies on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from torchgauge.errors import InfrastructureError
from torchgauge.records import SCHEMA_VERSION
from torchgauge.results.atomic_file import fsync_path, publish, storage_errors, writing_aside
from torchgauge.results.compacted.manifest import table_name
from torchgauge.results.compacted.month_rows import PLACE, latest_of
from torchgauge.results.latest import in_time, standing
from torchgauge.results.publication import VERSION_KEY
from torchgauge.results.seal import SealedFile, sealed
from torchgauge.results.table_file import encoded_schema
from torchgauge.results.tables import TABLES

_CASE = ("case_id", "case_key")
"""By the id alone, which names the device too: were devices apart, one id would be looked for in each."""
_SORTED_BY = {
    "results": (*_CASE, "run_created_at", "run_id"),
    "summaries": (*_CASE, "metric", "run_created_at", "run_id"),
    "samples": ("case_key", "metric", "run_id", "index"),
    "environments": ("device", "kind", "key", "environment_id", "run_id"),
    "calibrations": ("device", "run_id", "index"),
    latest_of("results"): (*_CASE, "run_created_at"),
    latest_of("summaries"): ("metric", *_CASE, "run_created_at"),
}
"""What the rows of each file are in order of."""
_GROUP_ROWS = 16_384
"""Rows that are compressed together: what a reader of one series has to decode of a month."""
_LEVEL = 9
"""Of zstd: a month is written once."""


class MonthWriter:
    """The files of the manifest called ``name`` of ``month``, in the store at ``root``."""

    def __init__(self, root: Path, month: str, name: str) -> None:
        self.root, self.month, self.name = root, month, name
        self.files: list[SealedFile] = []

    def write(self, table: str, parts: Sequence[Any]) -> None:
        """Write the file of ``table`` from the tables of its runs, each in the order of its rows.

        Raises :class:`InfrastructureError` where the disk refuses or gives back something else.
        """
        placed = [part.append_column(PLACE, pa.array(np.arange(part.num_rows))) for part in parts]
        whole = pa.concat_tables(placed).unify_dictionaries().combine_chunks()
        if whole.num_rows:
            self._put(table, table, whole)

    def write_latest(self, parts: Sequence[Any], summaries: Sequence[Any]) -> None:
        """Write the rows of ``results`` that may stand for their case, and their ``summaries``."""
        plain = pa.concat_tables([part.cast(TABLES["results"].schema) for part in parts])
        table = in_time(plain)
        places = np.unique(np.concatenate(standing(table, "case_key")))
        rows = table.take(pa.array(places)).drop_columns("when")
        self._put("results", latest_of("results"), _encoded(rows, "results"))
        keys = rows.select(["run_id", "case_key"])
        numbers = [part.cast(TABLES["summaries"].schema) for part in summaries]
        theirs = pa.concat_tables(numbers).join(keys, ["run_id", "case_key"], join_type="left semi")
        self._put("summaries", latest_of("summaries"), _encoded(theirs, "summaries"))

    def _put(self, table: str, file: str, rows: Any) -> None:
        order = np.lexsort([_ranks(rows[name]) for name in reversed(_SORTED_BY[file])])
        rows = rows.take(pa.array(order.astype(np.int64)))
        path = self.root / table_name(self.month, file, self.name)
        schema = TABLES[table].schema
        plain = pa.schema([*schema, PLACE]) if PLACE.name in rows.schema.names else schema
        with storage_errors(path), writing_aside(path) as aside:
            _write(aside, rows)
            fsync_path(aside)
            if not pq.read_table(aside, use_threads=False).cast(plain).equals(rows.cast(plain)):
                raise InfrastructureError(
                    f"{path} reads back differently from the written data",
                    hint="check the disk; the tables of the runs are unchanged",
                )
            publish(aside, path)
            self.files.append(sealed(self.root, path))


def _encoded(rows: Any, table: str) -> Any:
    return rows.cast(encoded_schema(TABLES[table].schema)).unify_dictionaries().combine_chunks()


def _ranks(column: Any) -> npt.NDArray[Any]:
    """Numbers in the order of a column's values."""
    column = column.combine_chunks()
    if isinstance(column, pa.ChunkedArray):
        column = column.chunk(0) if column.num_chunks else pa.array([], column.type)
    if not pa.types.is_dictionary(column.type):
        return np.asarray(column.cast(pa.int64()).to_numpy(zero_copy_only=False))
    rank = np.empty(len(column.dictionary) + 1, np.int64)
    rank[np.asarray(pc.sort_indices(column.dictionary))] = np.arange(len(column.dictionary))
    rank[-1] = -1
    found: npt.NDArray[Any] = rank[np.asarray(column.indices.fill_null(len(column.dictionary)).to_numpy())]
    return found


def _write(path: Path, rows: Any) -> None:
    numbers = [field.name for field in rows.schema if pa.types.is_floating(field.type)]
    counted = [field.name for field in rows.schema if field.name in (PLACE.name, "started_at", "index")]
    words = [
        field.name
        for field in rows.schema
        if field.name not in (*numbers, *counted) and not pa.types.is_list(field.type)
    ]
    writer = pq.ParquetWriter(
        path,
        rows.schema,
        compression="zstd",
        compression_level=_LEVEL,
        use_dictionary=words,
        column_encoding={
            **dict.fromkeys(numbers, "BYTE_STREAM_SPLIT"),
            **dict.fromkeys(counted, "DELTA_BINARY_PACKED"),
        },
        write_page_checksum=True,
        store_schema=False,  # strings are strings to whoever reads it
    )
    with writer:
        writer.write_table(rows, row_group_size=_GROUP_ROWS)
        writer.add_key_value_metadata({VERSION_KEY: str(SCHEMA_VERSION).encode()})
