"""The numbers behind the pages as files: exactly the rows that are shown, safe to open in a spreadsheet.

One row per case: the columns of the store's ``results`` without the long texts, what the page says beside
them, and the metrics of the row whose numbers are shown (``known_run_id``) as NAME.median, NAME.low and
NAME.high. The JSON has all that is known of every number.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from torchgauge.dashboard import arrow_columns
from torchgauge.dashboard.arrow_columns import parquet
from torchgauge.dashboard.context import SiteContext
from torchgauge.dashboard.latest_results import Entry
from torchgauge.dashboard.plain_rows import json_value
from torchgauge.results.hostile_text import csv_cell
from torchgauge.results.tables import RESULTS

FILES = ("data/latest.csv", "data/latest.json", "data/latest.parquet")
"""The downloads of what is shown, relative to the site's root."""

_LONG = ("traceback", "log_excerpt")
_COLUMNS = tuple(column for column in RESULTS.columns if column.name not in _LONG)
_KEYS = ("run_id", "case_key")
_PARTS = ("median", "low", "high")


def build(context: SiteContext) -> Iterator[tuple[str, bytes]]:
    """The downloads."""
    latest = context.latest
    entries = [latest.entries[key] for key in sorted(latest.entries, key=lambda key: (key[0], key[1].order))]
    columns = _columns(entries, context.primary)
    metrics = sorted({metric for entry in entries for metric in entry.numbers})
    numbers = {f"{metric}.{part}": _values(entries, metric, part) for metric in metrics for part in _PARTS}
    yield "data/latest.csv", _csv(columns, numbers)
    yield "data/latest.json", _json(entries, columns, context.now)
    yield "data/latest.parquet", parquet(_table(columns, numbers))


def _columns(entries: Sequence[Entry], primary: Mapping[str, str]) -> dict[str, list[Any]]:
    """What is told of every entry beside its numbers, by column."""
    newest, known = [entry.newest for entry in entries], [entry.known for entry in entries]
    columns: dict[str, list[Any]] = {
        column.name: list(map(itemgetter(column.name), newest)) for column in _COLUMNS
    }
    ages = [round(entry.known_age_s, 3) if entry.known else None for entry in entries]
    return columns | {
        "marks": [list(entry.marks) for entry in entries],
        "step_times": [entry.doubt(primary[entry.workload.mode]) or "count" for entry in entries],
        "age_s": [round(entry.age_s, 3) for entry in entries],
        "known_status": [row["status"] if row else None for row in known],
        "known_run_id": [row["run_id"] if row else None for row in known],
        "known_age_s": ages,
        "origin": [entry.origin.kind.value for entry in entries],
        "origin_name": [entry.origin.text for entry in entries],
    }


def _values(entries: Sequence[Entry], metric: str, part: str) -> list[float | None]:
    numbers = [entry.numbers.get(metric) for entry in entries]
    return [number[part] if number else None for number in numbers]


def _csv(columns: Mapping[str, list[Any]], numbers: Mapping[str, list[float | None]]) -> bytes:
    target = io.StringIO()
    writer = csv.writer(target, lineterminator="\n")
    writer.writerow([*columns, *(csv_cell(name) for name in numbers)])
    cells = [_cells(values) for values in columns.values()]
    writer.writerows(zip(*cells, *numbers.values(), strict=True))
    return target.getvalue().encode(errors="replace")


def _cells(values: list[Any]) -> list[Any]:
    """A column as cells; each word is looked at once, since most columns repeat a few."""
    plain = [" ".join(map(str, value)) if isinstance(value, list) else value for value in values]
    cells = {value: csv_cell(json_value(value)) for value in set(plain)}
    return [cells[value] for value in plain]


def _json(entries: Sequence[Entry], columns: Mapping[str, list[Any]], now: float) -> bytes:
    """One case per line, with its numbers; what is not known is left out."""
    names, encode = tuple(columns), msgspec.json.Encoder().encode
    lines = []
    for entry, values in zip(entries, zip(*columns.values(), strict=True), strict=True):
        told = {name: value for name, value in zip(names, values, strict=True) if value is not None}
        told["numbers"] = [
            {name: value for name, value in number.items() if name not in _KEYS and value not in (None, "")}
            for _, number in sorted(entry.numbers.items())
        ]
        lines.append(encode(told))
    head = b'{"generated_at":' + msgspec.json.encode(now) + b',"results":[\n'
    return head + b",\n".join(lines) + b"\n]}\n"


def _table(columns: Mapping[str, list[Any]], numbers: Mapping[str, list[float | None]]) -> dict[str, Any]:
    found: dict[str, Any] = {column.name: _column(columns[column.name], column.type) for column in _COLUMNS}
    found["marks"] = arrow_columns.of_words([" ".join(marks) for marks in columns["marks"]])
    for name in ("step_times", "known_status", "known_run_id", "origin", "origin_name"):
        found[name] = arrow_columns.of_words(columns[name])
    for name in ("age_s", "known_age_s"):
        found[name] = _floats(columns[name])
    return found | {name: _floats(values) for name, values in numbers.items()}


def _column(values: Sequence[Any], kind: Any) -> Any:
    if pa.types.is_list(kind):
        return arrow_columns.of_words([" ".join(value or ()) for value in values])
    if pa.types.is_string(kind):
        return arrow_columns.of_words(values)
    if pa.types.is_floating(kind):
        return _floats(values)
    if pa.types.is_boolean(kind):
        return arrow_columns.of_booleans(np.array([bool(value) for value in values], np.bool_))
    if pa.types.is_timestamp(kind):
        microseconds = [None if value is None else round(value.timestamp() * 1e6) for value in values]
        return arrow_columns.of_integers(_integers(microseconds), kind)
    return arrow_columns.of_integers(_integers(values))


def _floats(values: Sequence[float | None]) -> Any:
    return arrow_columns.of_floats(np.array(values, np.float64))  # None becomes NaN


def _integers(values: Sequence[int | None]) -> arrow_columns.Integers:
    return np.array([arrow_columns.NO_TIME if v is None else v for v in values], np.int64)
