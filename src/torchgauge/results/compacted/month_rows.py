"""Reading runs out of a compacted month: each run's rows as its own table gave them, in the same order.

Why a memory of what was read: rows of a month are sorted by case, so those of a run lie all over its file.
The file is read once and its rows put together by run.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from torchgauge.errors import DamagedTableError
from torchgauge.results.compacted.compacted_months import compact_command
from torchgauge.results.compacted.manifest import MonthManifest
from torchgauge.results.table_file import UNREADABLE, Asked, read_file

PLACE = pa.field("place_in_run", pa.int64(), nullable=False)
"""Column of a compacted file: the place of the row in the table of its run, from 0."""
_RUN = pa.field("run_id", pa.string(), nullable=False)
_MONTHS_AT_ONCE = 4
"""Tables of months that are held in memory: those of one night, of four tables."""


@dataclass(frozen=True)
class _ByRun:
    """Rows of a month, those of each run together; ``spans`` has begin and length by run."""

    table: Any
    spans: dict[str, tuple[int, int]]

    def of(self, runs: Sequence[str]) -> Any | None:
        """The rows of ``runs``, one after another; None for none."""
        spans = [self.spans[run] for run in runs if run in self.spans]
        if len(spans) == len(self.spans) and all(a < b for a, b in pairwise(spans)):
            return self.table
        if len(spans) == 1:
            return self.table.slice(*spans[0])
        places = [np.arange(begin, begin + length) for begin, length in spans]
        return self.table.take(pa.array(np.concatenate(places))) if places else None


@dataclass
class MonthRows:
    """The rows of compacted months of the store at ``root``."""

    root: Path
    _held: OrderedDict[tuple[Any, ...], _ByRun] = field(default_factory=OrderedDict)

    def of_runs(self, month: MonthManifest, runs: Sequence[str], asked: Asked) -> Any | None:
        """What is ``asked`` of the tables of ``runs``, one after another; None for no rows.

        Raises :class:`DamagedTableError` of the whole month.
        """
        file = month.file(asked.table)
        if file is None or (file.may_go and not (self.root / file.path).exists()):
            return None
        key = (file.path, asked.columns, asked.where)
        if key not in self._held:
            self._held[key] = self._read(month, self.root / file.path, asked)
            while len(self._held) > _MONTHS_AT_ONCE:
                self._held.popitem(last=False)
        self._held.move_to_end(key)
        rows = self._held[key].of(runs)
        if rows is None:
            return None
        plain = rows.cast(asked.schema)
        return plain.cast(asked.stored) if asked.encoded else plain

    def of_latest(self, month: MonthManifest, asked: Asked) -> Any:
        """What is ``asked`` of the rows of ``month`` that may stand for their case, in no order."""
        file = month.file(latest_of(asked.table))
        return asked.empty() if file is None else self._file(month, self.root / file.path, asked)

    def _read(self, month: MonthManifest, path: Path, asked: Asked) -> _ByRun:
        more = [each for each in (_RUN, PLACE) if each.name not in asked.schema.names]
        wide = replace(asked, schema=pa.schema([*asked.schema, *more]), encoded=True)
        return by_run(self._file(month, path, wide), asked.columns)

    def _file(self, month: MonthManifest, path: Path, asked: Asked) -> Any:
        try:
            return read_file(path, asked)
        except UNREADABLE as error:
            hint = compact_command(self.root, month.month)
            raise DamagedTableError(path, str(error), hint=hint, runs=tuple(month.by_run)) from error


def latest_of(table: str) -> str:
    """The name of the file with the rows of ``table`` that may stand for their case."""
    return f"latest_{table}"


def by_run(table: Any, columns: tuple[str, ...]) -> _ByRun:
    """The ``columns`` of ``table`` with the rows of each run together, in the order that they had there."""
    table = table.unify_dictionaries().combine_chunks()
    runs = table["run_id"].combine_chunks()
    if isinstance(runs, pa.ChunkedArray):
        runs = runs.chunk(0) if runs.num_chunks else pa.array([], pa.string()).dictionary_encode()
    codes = np.asarray(runs.indices.to_numpy(zero_copy_only=False))
    places: npt.NDArray[np.int64] = np.lexsort((np.asarray(table[PLACE.name].to_numpy()), codes))
    names = runs.dictionary.to_pylist()
    lengths = np.bincount(codes, minlength=len(names)) if len(codes) else np.zeros(len(names), np.int64)
    begins = np.concatenate([[0], np.cumsum(lengths)])[: len(names)]
    spans = {
        name: (begin, length)
        for name, begin, length in zip(names, begins.tolist(), lengths.tolist(), strict=True)
        if length
    }
    return _ByRun(table.select(columns).take(pa.array(places)), spans)
