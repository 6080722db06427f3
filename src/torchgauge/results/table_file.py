"""Reading one Parquet file of a store: all rows, or those asked for.

Why apart: a run's own file and that of a compacted month are read by the same rules.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from torchgauge.errors import OtherSchemaError
from torchgauge.results.publication import VERSION_KEY
from torchgauge.results.schema_version import check_version

Where = tuple[tuple[str, frozenset[str]], ...]
"""Columns of strings with the words of which a row has one; a row has to meet all."""

MOST_BYTES, ALWAYS_BYTES, MOST_RATIO = 8 << 30, 256 << 20, 1000
"""Most bytes that the columns of a file may unpack to, what is always allowed, and the most for each byte."""

UNREADABLE = (pa.ArrowException, OSError, KeyError, ValueError, OtherSchemaError)
"""What reading a file raises that is damaged or of another schema version."""


@dataclass(frozen=True)
class Asked:
    """What is read of a table: columns with their types, rows ``where``, strings as words or ``encoded``."""

    table: str
    schema: Any
    where: Where = ()
    encoded: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(self.schema.names)

    @cached_property
    def stored(self) -> Any:
        """The schema with strings as dictionaries, where that is asked for."""
        return encoded_schema(self.schema) if self.encoded else self.schema

    def empty(self) -> Any:
        """The table without rows."""
        return pa.Table.from_batches([], schema=self.stored)


def encoded_schema(schema: Any) -> Any:
    """``schema`` with its strings as dictionaries: a word is decoded once, not once per row."""
    return pa.schema(
        [
            field.with_type(pa.dictionary(pa.int32(), pa.string()))
            if pa.types.is_string(field.type)
            else field
            for field in schema
        ]
    )


def read_file(path: Path, asked: Asked) -> Any:
    """Return the rows that are ``asked`` of the table in the file ``path``; raises one of :data:`UNREADABLE`.

    Strings are read as dictionaries first, so that a file that unpacks to more than it may is refused before.
    """
    metadata = pq.read_metadata(path)
    check_version(int((metadata.metadata or {}).get(VERSION_KEY, b"-1")), "the file")
    leaves = [metadata.schema.column(place) for place in range(metadata.num_columns)]
    words = [leaf.path for leaf in leaves if leaf.physical_type == "BYTE_ARRAY"]
    file = pq.ParquetFile(path, metadata=metadata, read_dictionary=words, page_checksum_verification=True)
    needed = [*asked.columns, *(name for name, _ in asked.where if name not in asked.columns)]
    _check_size(path, _declared(metadata, needed))
    if asked.where:
        part = file.read_row_groups(_groups(file, asked.where), needed, use_threads=False)
    else:
        part = file.read(needed, use_threads=False)
    _check_size(path, sum(_length(chunk) for column in part.columns for chunk in column.chunks))
    if asked.where:
        part = part.filter(_mask(part, asked.where))
    return part.select(asked.columns).cast(asked.stored)


def _check_size(path: Path, size: int) -> None:
    most = min(MOST_BYTES, max(ALWAYS_BYTES, MOST_RATIO * path.stat().st_size))
    if size > most:
        raise pa.ArrowInvalid(f"its columns unpack to {size:,} bytes; at most {most:,} are read")


def _declared(metadata: Any, wanted: Sequence[str]) -> int:
    """Return the bytes that the columns ``wanted`` take by what the file says, before strings."""
    size = 0
    for group in range(metadata.num_row_groups):
        for place in range(metadata.num_columns):
            column = metadata.row_group(group).column(place)
            if column.path_in_schema.partition(".")[0] in wanted:
                size += 8 * int(column.num_values) + int(column.total_uncompressed_size)
    return size


def _length(chunk: Any) -> int:
    """Return the bytes of the strings of ``chunk``, one for each row; raises where one is not UTF-8."""
    if pa.types.is_list(chunk.type):
        return _length(chunk.flatten())
    if not pa.types.is_dictionary(chunk.type):
        return 0
    chunk.dictionary.validate(full=True)
    return int(pc.sum(pc.binary_length(chunk.dictionary).take(chunk.indices)).as_py() or 0)


def _groups(file: Any, where: Where) -> list[int]:
    """The row groups that may hold rows ``where``, by the smallest and largest word of each."""
    places = {file.metadata.schema.column(i).path: i for i in range(file.metadata.num_columns)}
    asked = [(places[name], words) for name, words in where if name in places]

    def may(group: int) -> bool:
        row_group = file.metadata.row_group(group)
        for place, words in asked:
            found = row_group.column(place).statistics
            if (
                found is not None
                and found.has_min_max
                and not any(found.min <= w <= found.max for w in words)
            ):
                return False
        return True

    return [group for group in range(file.metadata.num_row_groups) if may(group)]


def _mask(table: Any, where: Where) -> Any:
    found = None
    for name, words in where:
        met = _is_one_of(table[name], pa.array(sorted(words), pa.string()))
        found = met if found is None else pc.and_(found, met)
    return found


def _is_one_of(column: Any, words: Any) -> Any:
    """Which elements of a column are among ``words``; of a column of codes each word is looked at once."""
    if not pa.types.is_dictionary(column.type):
        return pc.is_in(column, value_set=words)
    parts = [pc.is_in(part.dictionary, value_set=words).take(part.indices) for part in column.chunks]
    return pc.fill_null(pa.chunked_array(parts, pa.bool_()), False)
