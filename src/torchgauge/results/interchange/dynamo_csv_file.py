"""One CSV file of PyTorch's dynamo runner as checked rows: strict, and with the place of every mistake."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from torchgauge.counted import counted
from torchgauge.errors import DataFileError
from torchgauge.results.interchange import upstream_names as names
from torchgauge.results.interchange.dynamo_columns import (
    ACCURACY,
    COLUMNS,
    EXPECTED,
    MORE,
    PERFORMANCE,
    REQUIRED,
)
from torchgauge.results.interchange.imported_run import Source, decoded, read_bytes, source_of
from torchgauge.results.interchange.upstream_names import Context


@dataclass(frozen=True)
class Row:
    """One row of a file, with what is needed to say where a mistake stands."""

    path: Path
    line: int
    cells: Mapping[str, str]

    def refuse(self, column: str, problem: str, hint: str) -> DataFileError:
        """The error for ``problem`` in ``column`` of this row."""
        return DataFileError(str(self.path), problem, line=self.line, field=column, hint=hint)

    def number(self, column: str) -> float | None:
        """The finite number in ``column``; None where the file has no such column or an empty cell."""
        text = self.cells.get(column, "")
        if not text:
            return None
        try:
            value = float(text)
        except ValueError:
            raise self.refuse(column, f"{text!r} is not a number", "fix the cell, or empty it") from None
        if not math.isfinite(value):
            raise self.refuse(
                column,
                f"{text!r} is not a finite number",
                "remove the row, or write 0.0 as speed-up and latency of a failed run",
            )
        if value < 0:
            raise self.refuse(column, f"{text} is negative", "fix the cell")
        return value

    def needed(self, column: str) -> float:
        """The number in ``column``; raises :class:`DataFileError` where the cell is empty."""
        value = self.number(column)
        if value is None:
            raise self.refuse(column, "the cell is empty", "write 0.0 for a failed run, or remove the row")
        return value


@dataclass(frozen=True)
class CsvFile:
    """A file of one ``kind``: its rows, what it and its name say of them, and where it came from."""

    path: Path
    kind: str
    rows: tuple[Row, ...]
    context: Context
    source: Source


def read_csv_file(path: Path, given: Context, ignore: frozenset[str]) -> CsvFile:
    """The file ``path``, with ``given`` over what its name says; raises :class:`DataFileError`."""
    data = read_bytes(path)
    header, rows = _table(path, decoded(path, data))
    context = names.context_of_name(path.name)
    aliases = [name for name in header if name.startswith("speedup_") and name != "speedup_vs_baseline"]
    if aliases and "speedup" not in header and aliases[0] not in ignore:
        header[header.index(aliases[0])] = "speedup"
        context = replace(context, configuration=context.configuration or aliases[0].partition("_")[2])
    kind = _kind(path, header)
    _check_header(path, kind, header, ignore)
    found = []
    for line, cells in rows:
        if len(cells) != len(header):
            raise DataFileError(
                str(path),
                f"the row has {counted(len(cells), 'cell')} and the header {counted(len(header), 'column')}",
                line=line,
                hint="the file may be truncated: copy it again, or remove the row",
            )
        stripped = (cell.strip() for cell in cells)
        found.append(Row(path, line, dict(zip(header, stripped, strict=True))))
    if not found:
        raise DataFileError(
            str(path), "has a header but no rows", line=1, hint="repeat the run that wrote it"
        )
    return CsvFile(path, kind, tuple(found), given.over(context), source_of(path, f"dynamo {kind} CSV", data))


def _table(path: Path, text: str) -> tuple[list[str], list[tuple[int, list[str]]]]:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        lines = [(reader.line_num, cells) for cells in reader if cells]
    except csv.Error as error:
        raise DataFileError(
            str(path),
            f"is not a CSV: {error}",
            line=reader.line_num,
            hint="separate cells with commas and close all quotes",
        ) from error
    header = [cell.strip() for cell in lines[0][1]]
    if len(header) == 1:
        other = next((name for sign, name in _DELIMITERS if sign in header[0]), None)
        if other:
            raise DataFileError(
                str(path), f"cells are separated by {other}", line=1, hint="save it with commas between cells"
            )
    return header, lines[1:]


_DELIMITERS = ((";", "semicolons"), ("\t", "tabs"), ("|", "bars"))


def _kind(path: Path, header: Sequence[str]) -> str:
    if "speedup" in header:
        return PERFORMANCE
    if "accuracy" in header:
        return ACCURACY if "dev" in header else EXPECTED
    raise DataFileError(
        str(path),
        f"has neither a column 'speedup' nor a column 'accuracy', but {', '.join(header[:8])}",
        line=1,
        hint="pass a performance, accuracy or expected file of the dynamo runner",
    )


def _check_header(path: Path, kind: str, header: Sequence[str], ignore: frozenset[str]) -> None:
    columns = COLUMNS[kind]
    for name in columns[: REQUIRED[kind]]:
        if name not in header:
            raise DataFileError(
                str(path), f"the column {name!r} is missing", line=1, field=name,
                hint=f"a {kind} file begins with {','.join(columns[: REQUIRED[kind]])}",
            )  # fmt: skip
    for position, name in enumerate(header):
        if name in header[:position]:
            raise DataFileError(
                str(path), f"the column {name!r} is listed twice", line=1, field=name, hint="keep one"
            )
        if name not in {*columns, *MORE[kind], *ignore}:
            raise DataFileError(
                str(path), f"a {kind} file must not have the column {name!r}", line=1, field=name,
                hint=f"to skip the column: --ignore-columns {name or 'NAME'}",
            )  # fmt: skip
