"""The numbers behind the pages as files: exactly the rows that are shown, safe to open in a spreadsheet."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict

from torchgauge.dashboard.board import Board, Entry
from torchgauge.dashboard.plain_rows import Row, json_value
from torchgauge.results.hostile_text import csv_cell
from torchgauge.results.tables import RESULTS

FILES = ("results.csv", "summaries.csv", "results.json")
"""The downloads, relative to the site's root."""

_KNOWN = ("known_status", "known_run_id", "known_age_s")
_CASE = ("run_id", "case_id", "case_key", "suite", "model", "mode", "dtype", "batch", "size", "shape", "seed")
_WHERE = ("configuration", "device", "device_index", "environment_id", "torch_version")
_LONG = ("traceback", "log_excerpt")
_NUMBER = (
    "metric", "unit", "n", "median", "low", "high", "confidence", "method", "provenance", "stopped", "absent",
)  # fmt: skip


def downloads(board: Board, now: float) -> dict[str, str]:
    """The text of every download by file name."""
    entries = [board.entries[key] for key in sorted(board.entries, key=lambda key: (key[0], key[1].order))]
    results = [_result(entry) for entry in entries]
    summaries = [row for entry in entries for row in _summaries(entry)]
    columns = [name for name in RESULTS.names if name not in _LONG]
    return {
        "results.csv": _csv([*columns, "marks", "age_s", *_KNOWN], results),
        "summaries.csv": _csv([*_CASE, *_WHERE, "status", "stands_in", *_NUMBER], summaries),
        "results.json": _json(entries, results, now),
    }


def _result(entry: Entry) -> Row:
    row = {name: json_value(entry.newest[name]) for name in RESULTS.names if name not in _LONG}
    known = entry.known
    return {
        **row,
        "marks": list(entry.marks),
        "age_s": round(entry.age_s, 3),
        "known_status": known["status"] if known else None,
        "known_run_id": known["run_id"] if known else None,
        "known_age_s": round(entry.known_age_s, 3) if known else None,
    }


def _summaries(entry: Entry) -> Iterator[Row]:
    shown = entry.shown
    for metric in sorted(entry.numbers):
        yield {
            **{name: shown[name] for name in (*_CASE, *_WHERE)},
            "status": shown["status"],
            "stands_in": entry.stands_in,
            **asdict(entry.numbers[metric]),
        }


def _csv(columns: Sequence[str], rows: Sequence[Row]) -> str:
    target = io.StringIO()
    writer = csv.writer(target, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        writer.writerow([csv_cell(_flat(row[name])) for name in columns])
    return target.getvalue()


def _flat(value: object) -> object:
    return " ".join(map(str, value)) if isinstance(value, list) else value


def _json(entries: Sequence[Entry], results: Sequence[Row], now: float) -> str:
    """One case per line, with its numbers; they belong to ``known_run_id`` where that differs."""
    rows = [
        {**row, "numbers": [asdict(entry.numbers[metric]) for metric in sorted(entry.numbers)]}
        for entry, row in zip(entries, results, strict=True)
    ]
    lines = ",\n".join(json.dumps(row, allow_nan=False, separators=(",", ":")) for row in rows)
    return f'{{"generated_at":{json.dumps(now)},"results":[\n{lines}\n]}}\n'
