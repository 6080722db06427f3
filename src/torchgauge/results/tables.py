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


_RUN = required("run_id", STRING, "id of the run")
_CASE_KEYS = (
    _RUN,
    required("case_id", STRING, "readable id of the case"),
    required("case_key", STRING, "id of the case that joins tables, sixteen hex digits"),
)
_WORKLOAD = (
    required("suite", STRING, "name of the suite"),
    required("model", STRING, "name of the model"),
    required("mode", STRING, "`inference`, `training` or `generate`"),
    required("dtype", STRING, "element type of the computation"),
    required("batch", INTEGER, "batch size, items"),
    required("size", STRING, "`small` or `full`"),
    required("shape", STRING, "further sizes of the input, JSON"),
    required("seed", INTEGER, "random seed"),
    required("weights", STRING, "`random` or `pretrained`"),
    required("declared_hash", STRING, "hash of the planned model and sizes"),
)
_EXECUTION = (
    required("configuration", STRING, "name of the configuration"),
    required("backend", STRING, "`eager` or the backend of `torch.compile`"),
    required("device", STRING, "name of the device plugin"),
    required("device_index", INTEGER, "index of the device"),
)
_WHEN = (
    required("run_created_at", TIME, "time of the plan, UTC"),
    Column("started_at", TIME, "start of the case, UTC"),
)
_WHERE = (
    Column("environment_id", STRING, "key of the row in `environments`"),
    Column("torch_version", STRING, "torch version of the environment"),
)

RESULTS = Table(
    "results",
    "one case (a model in one configuration on one device) of one run",
    (
        *_CASE_KEYS,
        *_WORKLOAD,
        *_EXECUTION,
        Column("configuration_options", STRING, "options of the backend, JSON"),
        Column("configuration_env", STRING, "environment variables of the configuration, JSON"),
        Column("configuration_compile", STRING, "arguments of `torch.compile` and memory format, JSON"),
        Column("configuration_pinning", STRING, "CPUs, NUMA node and interop threads, JSON"),
        Column("threads", INTEGER, "CPU threads of the configuration"),
        required("status", STRING, "[status](statuses.md), such as `pass`"),
        required("phase", STRING, "last [phase](statuses.md#phases) of the case"),
        Column("cause", STRING, "[cause](statuses.md#causes) of the status"),
        Column("reason", STRING, "reason of the status, in words"),
        Column("expected", STRING, "status that a file of expected failures declares"),
        required("unexpected", BOOLEAN, "whether the status differs from the expected status"),
        required("modifiers", STRINGS, "[remarks](statuses.md#modifiers) on the result, such as `unsteady`"),
        Column("error_type", STRING, "type of the exception"),
        Column("error_message", STRING, "message of the exception"),
        Column("error_frame", STRING, "first frame inside torch or the backend"),
        Column("missing_op", STRING, "operator that the device lacks"),
        Column("fingerprint", STRING, "hash that equal failures share"),
        Column("traceback", STRING, "traceback of the exception"),
        Column("realised_hash", STRING, "hash of the built model and its inputs"),
        Column("parameters", INTEGER, "number of parameters of the model"),
        Column("buffers", INTEGER, "number of buffer elements of the model"),
        Column("inputs", STRING, "shapes and dtypes of the inputs"),
        required("realised_notes", STRINGS, "remarks on the built model"),
        Column("accuracy_reference", STRING, "reference with which the result was compared"),
        Column("max_abs_error", NUMBER, "largest absolute difference from the reference"),
        Column("rmse", NUMBER, "root mean square error against the reference"),
        Column("rmse_eager", NUMBER, "`rmse` of eager"),
        Column("rmse_ratio", NUMBER, "`rmse` divided by `rmse_eager`"),
        Column("eager_spread", NUMBER, "largest difference between two eager runs"),
        Column("cosine", NUMBER, "cosine similarity with the reference"),
        Column("accuracy_detail", STRING, "deciding tensor, or reason of a missing number"),
        *_WHERE,
        *_WHEN,
        required("duration_s", NUMBER, "wall time of the case, seconds"),
        Column("exit", STRING, "how the worker process ended"),
        Column("teardown", STRING, "crash, hang or leftover process after the case"),
        Column("log", STRING, "path of the log in the folder of the run"),
        Column("log_excerpt", STRING, "last lines of the log after a failure"),
        Column("reproduce", STRING, "command that repeats the case"),
        Column("facts", STRING, "further facts, JSON"),
        required("attempt", INTEGER, "number of the attempt, from 1"),
        Column("attempts", STRING, "all attempts if several, JSON"),
        required("schema_version", INTEGER, "version of the format of the record"),
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
        required("unit", STRING, "base unit of the metric"),
        required("better", STRING, "`lower`, `higher` or `neither`"),
        required("n", INTEGER, "number of samples"),
        Column("median", NUMBER, "median of the samples"),
        Column("low", NUMBER, "lower end of the interval of the median"),
        Column("high", NUMBER, "upper end of the interval of the median"),
        required("confidence", NUMBER, "confidence of the interval"),
        required("method", STRING, "method of the [interval](#intervals)"),
        Column("provenance", STRING, "clock or counter that was read"),
        Column("stopped", STRING, "reason why sampling ended"),
        Column("absent", STRING, "reason of a missing number"),
        Column("realised_hash", STRING, "hash of the built model and its inputs"),
        *_WHERE,
        *_WHEN,
    ),
)

SAMPLES = Table(
    "samples",
    "one raw sample, in the metric's base unit",
    (
        _RUN,
        required("case_key", STRING, "key of the case"),
        required("metric", STRING, "name of the metric"),
        Column("block", INTEGER, "number of the round, in which each configuration is timed once"),
        required("index", INTEGER, "position of the sample, from 0"),
        required("value", NUMBER, "value of the sample"),
    ),
)

ENVIRONMENTS = Table(
    "environments",
    "one fact about an environment (machine and software)",
    (
        _RUN,
        required("environment_id", STRING, "hash of all facts of kind `identity`"),
        required("device", STRING, "name of the device plugin"),
        required("key", STRING, "name of the fact"),
        required("value", STRING, "value of the fact, as JSON"),
        required("kind", STRING, "`identity`, `condition` (such as load) or `note`"),
        required("observation", INTEGER, "when in the run: 0 is first"),
    ),
)

CALIBRATIONS = Table(
    "calibrations",
    "one calibration (fixed small measurements of a device) in one run",
    (
        _RUN,
        required("device", STRING, "name of the device plugin"),
        required("at", STRING, "`start` or `end` of the run"),
        required("index", INTEGER, "position in the run, from 0"),
        Column("gemm_flops", NUMBER, "FLOP/s of one matrix multiplication"),
        Column("copy_bytes_per_s", NUMBER, "bytes per second of one copy"),
        Column("launch_s", NUMBER, "seconds of one kernel launch"),
        Column("absent", STRING, "reason of a missing number"),
        Column("node", STRING, "name of the machine, if several measured the run"),
    ),
)

TABLES: dict[str, Table] = {
    table.name: table for table in (SAMPLES, SUMMARIES, ENVIRONMENTS, CALIBRATIONS, RESULTS)
}
"""All tables in the order in which they are published: ``results`` last, since it publishes the run."""


_PARTS = {
    "run_id": "The case:",
    "configuration": "Configuration of the case:",
    "status": "Result of the case:",
    "error_type": "Failure of the case:",
    "realised_hash": "The built model:",
    "accuracy_reference": "Accuracy of the case:",
    "environment_id": "Place, time and process:",
}
"""Columns of ``results`` before which the reference begins a new list, with the line above it."""


def render_reference() -> str:
    """The tables in Markdown, as ``docs/reference/store.md`` holds them."""
    return "\n".join(_render(table) for table in reversed(TABLES.values()))


def _render(table: Table) -> str:
    shared = RESULTS.columns if table is SUMMARIES else ()
    lines = [f"### `{table.name}`", "", f"One row: {table.row}."]
    if shared:
        names = ", ".join(f"`{column.name}`" for column in table.columns if column in shared)
        lines += ["", f"Columns as in table `results`: {names}."]
    parts = _PARTS if table is RESULTS else {next(c.name for c in table.columns if c not in shared): ""}
    for column in (each for each in table.columns if each not in shared):
        if column.name in parts:
            lines += ["", parts[column.name]] if parts[column.name] else []
            lines += ["", "| column | type | contents |", "|---|---|---|"]
        lines.append(f"| `{column.name}` | {column.type}{'?' if column.nullable else ''} | {column.doc} |")
    return "\n".join([*lines, ""])
