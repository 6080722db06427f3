"""Frames as plain Python rows, in which a missing or non-finite value is None and nothing else is."""

from __future__ import annotations

import math
from datetime import datetime
from typing import Any

import pandas as pd

Row = dict[str, Any]


def plain_rows(frame: pd.DataFrame) -> list[Row]:
    """One dict per row; timestamps become ``datetime``, NaN and infinities become None."""
    columns = [str(name) for name in frame.columns]
    lists = [[_plain(value) for value in frame[name].tolist()] for name in frame.columns]
    return [dict(zip(columns, values, strict=True)) for values in zip(*lists, strict=True)]


def _plain(value: Any) -> Any:
    if isinstance(value, str | list):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or value is pd.NA or value is pd.NaT:
        return None
    if isinstance(value, pd.Timestamp):
        return value.to_pydatetime(warn=False)
    return value


def json_value(value: Any) -> Any:
    """``value`` as JSON holds it: a time becomes ISO 8601 text."""
    return value.isoformat() if isinstance(value, datetime) else value
