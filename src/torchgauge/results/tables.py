"""The Parquet tables of a store: names, columns, types and what each column means.

Why: one list that the writer, the readers, the query language and ``docs/reference/store.md`` share. A null
means "nothing to say"; where a number is missing, a column beside it says why. There is never a NaN.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa

STRING = pa.string()
NUMBER = pa.float64()
INTEGER = pa.int64()
BOOLEAN = pa.bool_()
TIME = pa.timestamp("us", tz="UTC")
STRINGS = pa.list_(pa.string())


@dataclass(frozen=True)
class Column:
    """A column: its name, its Arrow type, what it holds and whether it may be null."""

    name: str
    type: Any
    doc: str
    nullable: bool = True


@dataclass(frozen=True)
class Table:
    """A table: its name, what one row is, and its columns in order."""

    name: str
    row: str
    columns: tuple[Column, ...]

    @cached_property
    def schema(self) -> Any:
        """The ``pyarrow.Schema`` of the table."""
        return pa.schema([pa.field(c.name, c.type, nullable=c.nullable) for c in self.columns])

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns in order."""
        return tuple(column.name for column in self.columns)


def required(name: str, kind: Any, doc: str) -> Column:
    """A column that is never null."""
    return Column(name, kind, doc, nullable=False)


_RUN = required("run_id", STRING, "the run")
_CASE_KEYS = (
    _RUN,
    required("case_id", STRING, "the case as a person types it"),
    required("case_key", STRING, "sixteen hex digits that identify the case across runs"),
)
_WORKLOAD = (
    required("suite", STRING, "name of the suite"),
    required("model", STRING, "name of the model in its suite"),
    required("mode", STRING, "inference, training or generate"),
    required("dtype", STRING, "element type of the computation"),
    required("batch", INTEGER, "batch size, items"),
    required("size", STRING, "size profile of the workload"),
    required("shape", STRING, "further sizes and words, a JSON object of integers and strings"),
    required("seed", INTEGER, "random seed"),
    required("weights", STRING, "`random`, or `pretrained` as the library publishes them"),
    required("declared_hash", STRING, "hash of the workload as planned; unequal hashes are never compared"),
)
_EXECUTION = (
    required("configuration", STRING, "name of the configuration"),
    required("backend", STRING, "`eager` or the dynamo backend"),
    required("device", STRING, "name of the device plugin"),
    required("device_index", INTEGER, "index of the device on its machine"),
)
_WHEN = (
    required("run_created_at", TIME, "when the run was planned, UTC"),
    Column("started_at", TIME, "when the case started, UTC; null where it never did"),
)
_WHERE = (
    Column("environment_id", STRING, "hash of the environment's identity, a key of `environments`"),
    Column("torch_version", STRING, "torch of that environment; null where it is not known"),
)

RESULTS = Table(
    "results",
    "one planned case of one run; a run is published once it has this file",
    (
        *_CASE_KEYS,
        *_WORKLOAD,
        *_EXECUTION,
        Column("configuration_options", STRING, "options of the backend, a JSON object"),
        Column("configuration_env", STRING, "environment variables of the configuration, a JSON object"),
        Column("configuration_compile", STRING, "mode, dynamic, fullgraph and memory format, JSON"),
        Column("configuration_pinning", STRING, "interop threads, CPUs and NUMA node asked for, JSON"),
        Column("threads", INTEGER, "CPU threads that the configuration asks for"),
        required("status", STRING, "one of the ten statuses"),
        required("phase", STRING, "the last phase that was reached"),
        Column("cause", STRING, "what refines the status"),
        Column("reason", STRING, "why, in words"),
        Column("expected", STRING, "the status that the data file expects; null where it says nothing"),
        required("unexpected", BOOLEAN, "whether the status differs from what is expected"),
        required("modifiers", STRINGS, "what is counted apart from the statuses, such as `degraded`"),
        Column("error_type", STRING, "type of the exception"),
        Column("error_message", STRING, "its message"),
        Column("error_frame", STRING, "first frame inside torch or the backend"),
        Column("missing_op", STRING, "the operator, where a missing one is the failure"),
        Column("fingerprint", STRING, "hash that equal failures share"),
        Column("traceback", STRING, "the traceback"),
        Column("realised_hash", STRING, "hash of what the worker really built"),
        Column("parameters", INTEGER, "number of parameters of the model"),
        Column("buffers", INTEGER, "number of buffer elements of the model"),
        Column("inputs", STRING, "shapes and dtypes of the inputs"),
        required("realised_notes", STRINGS, "what the worker said of the model that it built"),
        Column("accuracy_reference", STRING, "what the result was compared with"),
        Column("max_abs_error", NUMBER, "largest absolute difference from the reference"),
        Column("rmse", NUMBER, "root mean square error against the reference"),
        Column("rmse_eager", NUMBER, "the same for eager"),
        Column("rmse_ratio", NUMBER, "`rmse` divided by `rmse_eager`"),
        Column("eager_spread", NUMBER, "largest difference of two eager runs from one seed"),
        Column("cosine", NUMBER, "cosine similarity with the reference"),
        Column("accuracy_detail", STRING, "why an accuracy number is missing, or which tensor decided"),
        *_WHERE,
        *_WHEN,
        required("duration_s", NUMBER, "wall time of the case, seconds"),
        Column("exit", STRING, "how the worker's process ended"),
        Column("teardown", STRING, "what went wrong after the case was done"),
        Column("log", STRING, "the case's log, relative to the run's folder"),
        Column("log_excerpt", STRING, "the log's last lines, where the case did not pass"),
        Column("reproduce", STRING, "a command that runs the case again"),
        Column("facts", STRING, "further facts, a JSON object"),
        required("attempt", INTEGER, "the number of the attempt that this row is of, from 1"),
        Column("attempts", STRING, "all attempts where there were several, a JSON array of objects"),
        required("schema_version", INTEGER, "version of the record"),
    ),
)

SUMMARIES = Table(
    "summaries",
    "one metric of one case of one run",
    (
        *_CASE_KEYS,
        *_WORKLOAD,
        *_EXECUTION,
        required("status", STRING, "status of the case"),
        required("metric", STRING, "name of the metric"),
        required("unit", STRING, "its base unit"),
        required("better", STRING, "`lower`, `higher` or `neither`"),
        required("n", INTEGER, "number of samples"),
        Column("median", NUMBER, "median of the samples; null where `absent` says why"),
        Column("low", NUMBER, "lower end of the interval of the median; null for a single sample"),
        Column("high", NUMBER, "its upper end"),
        required("confidence", NUMBER, "confidence that was asked of the interval"),
        required("method", STRING, "how the interval was found: see `results/stats.py`"),
        Column("provenance", STRING, "the clock or counter that was read"),
        Column("stopped", STRING, "why sampling ended"),
        Column("absent", STRING, "why there is no number"),
        Column("realised_hash", STRING, "hash of what the worker really built"),
        *_WHERE,
        *_WHEN,
    ),
)

SAMPLES = Table(
    "samples",
    "one raw sample, in the metric's base unit",
    (
        _RUN,
        required("case_key", STRING, "the case"),
        required("metric", STRING, "name of the metric"),
        Column("block", INTEGER, "round that pairs the configurations of a group; null where unpaired"),
        required("index", INTEGER, "position among the samples of the case and metric, from 0"),
        required("value", NUMBER, "the sample"),
    ),
)

ENVIRONMENTS = Table(
    "environments",
    "one fact about one environment of one run",
    (
        _RUN,
        required("environment_id", STRING, "hash of the identity"),
        required("device", STRING, "name of the device plugin"),
        required("key", STRING, "what is said; the position for a note"),
        required("value", STRING, "its value as JSON"),
        required("kind", STRING, "`identity` (hashed), `condition` or `note`"),
        required("observation", INTEGER, "0 for the first look at this environment in the run, then counted"),
    ),
)

CALIBRATIONS = Table(
    "calibrations",
    "one calibration of one device in one run",
    (
        _RUN,
        required("device", STRING, "name of the device plugin"),
        required("at", STRING, "`start` or `end` of the shard"),
        required("index", INTEGER, "position in the run, from 0"),
        Column("gemm_flops", NUMBER, "FLOP/s of one matrix product"),
        Column("copy_bytes_per_s", NUMBER, "bytes per second of one copy"),
        Column("launch_s", NUMBER, "seconds of one launch"),
        Column("absent", STRING, "why a number is missing"),
        Column("node", STRING, "the machine, where several measured one run"),
    ),
)

TABLES: dict[str, Table] = {
    table.name: table for table in (SAMPLES, SUMMARIES, ENVIRONMENTS, CALIBRATIONS, RESULTS)
}
"""All tables in the order in which they are published: ``results`` last, since it publishes the run."""


def render_reference() -> str:
    """The tables in Markdown, as ``docs/reference/store.md`` holds them."""
    return "\n".join(_render(table) for table in reversed(TABLES.values()))


def _render(table: Table) -> str:
    lines = [f"### `{table.name}`", "", f"One row: {table.row}.", "", "| column | type | null | holds |"]
    lines.append("|---|---|---|---|")
    for column in table.columns:
        may = "yes" if column.nullable else "no"
        lines.append(f"| `{column.name}` | {column.type} | {may} | {column.doc} |")
    return "\n".join([*lines, ""])
