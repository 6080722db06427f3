"""Arrow tables as plain Python rows, in which a missing or non-finite value is None and nothing else is."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from math import isnan
from typing import Any

import pyarrow as pa

from torchgauge.dashboard.arrow_columns import NO_TIME, codes, floats, integers

Row = dict[str, Any]

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def plain_rows(table: Any) -> list[Row]:
    """One dict per row; times become ``datetime`` in UTC, NaN and infinities become None."""
    names = table.column_names
    if not names:
        return []
    columns = [plain_column(table.column(name)) for name in names]
    return [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]


def plain_column(column: Any) -> list[Any]:
    """The values of a column, in the same way."""
    if len(column) == 0:
        return []
    if pa.types.is_timestamp(column.type):  # pyarrow's own way imports pandas
        return [
            None if at == NO_TIME else _EPOCH + timedelta(microseconds=at) for at in integers(column).tolist()
        ]
    if pa.types.is_string(column.type):
        code, words = codes(column)
        return [words[at] if at >= 0 else None for at in code.tolist()]
    if pa.types.is_float64(column.type):
        return [None if isnan(value) else value for value in floats(column).tolist()]
    values: list[Any] = column.to_pylist()
    return values


def json_value(value: Any) -> Any:
    """``value`` as JSON holds it: a time becomes ISO 8601 text."""
    return value.isoformat() if isinstance(value, datetime) else value
