"""What the next build starts from: runs, cases and the hashes of all files, under ``state/`` of a site."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from torchgauge.dashboard import arrow_columns
from torchgauge.dashboard.case_book import CaseBook
from torchgauge.dashboard.names import Column, Workload
from torchgauge.dashboard.newest_rows import NONE, NewestRows
from torchgauge.dashboard.run_rows import WORKLOAD, MetricName
from torchgauge.dashboard.site_data import SiteData
from torchgauge.dashboard.site_folder import SiteWriter
from torchgauge.dashboard.snapshots import DatedRun, TorchBuild

RUNS = "state/runs.json"
CASES = "state/cases.parquet"
FILES_AT_ONCE = 1_000
"""Files that one list of hashes names."""


class RunState(msgspec.Struct, array_like=True):
    """A published run as ``state/runs.json`` holds it."""

    run_id: str
    created_at: float
    torch_version: str
    commit: str
    fingerprint: str


class RunsState(msgspec.Struct):
    """The content of ``state/runs.json``."""

    runs: list[RunState]
    metrics: list[tuple[str, str, str]]


FilesState = dict[str, tuple[str, int]]
"""SHA-256 and size by name: the content of one ``state/files-N.json``."""


def files(data: SiteData, prints: dict[str, str], writer: SiteWriter) -> Iterator[tuple[str, bytes]]:
    """The files by name; ``prints`` are the fingerprints of the published runs."""
    listed = {name: (writer.digests[name], writer.sizes[name]) for name in sorted(writer.digests)}
    runs = RunsState(
        [
            RunState(run.run_id, run.created_at, run.build.version, run.build.commit, prints[run.run_id])
            for run in data.dated
        ],
        [(metric.name, metric.unit, metric.better) for metric in data.metrics.values()],
    )
    yield RUNS, msgspec.json.encode(runs)
    yield CASES, _cases(data)
    names = list(listed)
    for number, start in enumerate(range(0, len(names), FILES_AT_ONCE)):
        chunk = {name: listed[name] for name in names[start : start + FILES_AT_ONCE]}
        yield f"state/files-{number}.json", msgspec.json.encode(chunk)


def read_runs(content: bytes) -> RunsState:
    """What ``state/runs.json`` holds."""
    return msgspec.json.decode(content, type=RunsState)


def read_files(content: bytes) -> FilesState:
    """What a ``state/files-N.json`` holds."""
    return msgspec.json.decode(content, type=FilesState)


def dated_runs(state: RunsState) -> tuple[DatedRun, ...]:
    """The runs on the time axis."""
    return tuple(
        DatedRun(run.run_id, run.created_at, TorchBuild(run.torch_version, run.commit)) for run in state.runs
    )


def metric_names(state: RunsState) -> dict[str, MetricName]:
    """The metrics by name."""
    return {name: MetricName(name, unit, better) for name, unit, better in state.metrics}


def read_cases(content: bytes, ranks: dict[str, int]) -> tuple[CaseBook, NewestRows]:
    """The cases with their numbers, and where their newest rows are; ``ranks`` are those of the runs."""
    table = pq.ParquetFile(pa.BufferReader(content)).read(use_threads=False)
    columns = {name: table.column(name).to_pylist() for name in table.column_names}
    book = CaseBook()
    for place in range(table.num_rows):
        workload = Workload(*(columns[name][place] for name in WORKLOAD))
        column = Column(*(columns[name][place] for name in ("on_device", "configuration", "compiled")))
        book.add(columns["case_key"][place], workload, column)

    def of_runs(name: str) -> arrow_columns.Integers:
        found = [NONE if run is None else ranks[run] for run in columns[name]]
        return np.array(found, np.int64)

    newest = NewestRows(
        of_runs("run"),
        arrow_columns.integers(table.column("when")).copy(),
        of_runs("known_run"),
        arrow_columns.integers(table.column("known_when")).copy(),
    )
    return book, newest


def _cases(data: SiteData) -> bytes:
    order = sorted(
        range(len(data.book)), key=lambda index: (data.book[index].device, data.book[index].number)
    )
    cases = [data.book[index] for index in order]
    newest = data.newest
    runs = [run.run_id for run in data.dated]
    table: dict[str, Any] = {"case_key": arrow_columns.of_strings([case.key for case in cases])}
    for name in WORKLOAD:
        values = [getattr(case.workload, name) for case in cases]
        whole = name in ("batch", "seed")
        table[name] = (
            arrow_columns.of_integers(np.array(values, np.int64)) if whole else arrow_columns.of_words(values)
        )
    table["on_device"] = arrow_columns.of_words([case.column.device for case in cases])
    table["configuration"] = arrow_columns.of_words([case.column.configuration for case in cases])
    table["compiled"] = arrow_columns.of_booleans(
        np.array([case.column.compiled for case in cases], np.bool_)
    )
    for prefix, run, when in (("", newest.run, newest.when), ("known_", newest.known_run, newest.known_when)):
        table[f"{prefix}run"] = arrow_columns.of_codes(run[order], runs)
        table[f"{prefix}when"] = arrow_columns.of_integers(when[order])
    return parquet(table)


def parquet(columns: dict[str, Any]) -> bytes:
    """``columns`` as a Parquet file; the same columns give the same bytes."""
    target = io.BytesIO()
    names, arrays = list(columns), list(columns.values())
    plain = [array.dictionary_decode() if pa.types.is_dictionary(array.type) else array for array in arrays]
    schema = pa.schema([pa.field(name, array.type) for name, array in zip(names, plain, strict=True)])
    pq.write_table(pa.Table.from_arrays(plain, schema=schema), target, compression="zstd")
    return target.getvalue()
