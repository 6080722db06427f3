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
    required("case_key", STRING, "sixteen hex digits, equal across runs"),
)
_WORKLOAD = (
    required("suite", STRING, "name of the suite"),
    required("model", STRING, "name of the model"),
    required("mode", STRING, "inference, training or generate"),
    required("dtype", STRING, "element type of the computation"),
    required("batch", INTEGER, "batch size, items"),
    required("size", STRING, "size profile of the workload"),
    required("shape", STRING, "further sizes, a JSON object"),
    required("seed", INTEGER, "random seed"),
    required("weights", STRING, "`random`, or `pretrained` as the library publishes them"),
    required("declared_hash", STRING, "hash of the planned workload"),
)
_EXECUTION = (
    required("configuration", STRING, "name of the configuration"),
    required("backend", STRING, "`eager` or the dynamo backend"),
    required("device", STRING, "name of the device plugin"),
    required("device_index", INTEGER, "index of the device"),
)
_WHEN = (
    required("run_created_at", TIME, "time of the plan, UTC"),
    Column("started_at", TIME, "start of the case, UTC"),
)
_WHERE = (
    Column("environment_id", STRING, "key of `environments`"),
    Column("torch_version", STRING, "torch version of the environment"),
)

RESULTS = Table(
    "results",
    "one planned case of one run",
    (
        *_CASE_KEYS,
        *_WORKLOAD,
        *_EXECUTION,
        Column("configuration_options", STRING, "options of the backend, JSON"),
        Column("configuration_env", STRING, "environment variables of the configuration, JSON"),
        Column("configuration_compile", STRING, "mode, dynamic, fullgraph and memory format, JSON"),
        Column("configuration_pinning", STRING, "interop threads, CPUs and NUMA node, JSON"),
        Column("threads", INTEGER, "CPU threads of the configuration"),
        required("status", STRING, "one of the ten statuses"),
        required("phase", STRING, "last phase of the case"),
        Column("cause", STRING, "specific cause of the status"),
        Column("reason", STRING, "reason of the status"),
        Column("expected", STRING, "status that the data file expects"),
        required("unexpected", BOOLEAN, "whether the status differs from the expected status"),
        required("modifiers", STRINGS, "modifiers, such as `degraded`"),
        Column("error_type", STRING, "type of the exception"),
        Column("error_message", STRING, "message of the exception"),
        Column("error_frame", STRING, "first frame inside torch or the backend"),
        Column("missing_op", STRING, "missing operator"),
        Column("fingerprint", STRING, "hash of the failure"),
        Column("traceback", STRING, "traceback of the exception"),
        Column("realised_hash", STRING, "hash of the built workload"),
        Column("parameters", INTEGER, "number of parameters of the model"),
        Column("buffers", INTEGER, "number of buffer elements of the model"),
        Column("inputs", STRING, "shapes and dtypes of the inputs"),
        required("realised_notes", STRINGS, "notes of the worker on the model"),
        Column("accuracy_reference", STRING, "reference with which the result was compared"),
        Column("max_abs_error", NUMBER, "largest absolute difference from the reference"),
        Column("rmse", NUMBER, "root mean square error against the reference"),
        Column("rmse_eager", NUMBER, "root mean square error of eager"),
        Column("rmse_ratio", NUMBER, "`rmse` divided by `rmse_eager`"),
        Column("eager_spread", NUMBER, "largest difference of two eager runs from one seed"),
        Column("cosine", NUMBER, "cosine similarity with the reference"),
        Column("accuracy_detail", STRING, "reason of a missing number, or the deciding tensor"),
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
        Column("median", NUMBER, "median of the samples"),
        Column("low", NUMBER, "lower end of the interval of the median"),
        Column("high", NUMBER, "upper end of that interval"),
        required("confidence", NUMBER, "confidence of the interval"),
        required("method", STRING, "method of the [interval](#intervals)"),
        Column("provenance", STRING, "clock or counter"),
        Column("stopped", STRING, "reason why sampling ended"),
        Column("absent", STRING, "reason of a missing number"),
        Column("realised_hash", STRING, "hash of the built workload"),
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
        Column(
            "block", INTEGER, "number of the round; samples of one round are paired across configurations"
        ),
        required("index", INTEGER, "position in the series, from 0"),
        required("value", NUMBER, "value of the sample"),
    ),
)

ENVIRONMENTS = Table(
    "environments",
    "one fact about one environment of one run",
    (
        _RUN,
        required("environment_id", STRING, "hash of the environment's `identity` facts"),
        required("device", STRING, "name of the device plugin"),
        required("key", STRING, "name of the fact; for a note, its position"),
        required("value", STRING, "value of the fact, as JSON"),
        required("kind", STRING, "`identity` (hashed), `condition` or `note`"),
        required("observation", INTEGER, "number of the observation in the run, from 0"),
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
        Column("gemm_flops", NUMBER, "FLOP/s of one matrix multiplication"),
        Column("copy_bytes_per_s", NUMBER, "bytes per second of one copy"),
        Column("launch_s", NUMBER, "seconds of one kernel launch"),
        Column("absent", STRING, "reason of a missing number"),
        Column("node", STRING, "machine, if several measured the run"),
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
    shared = RESULTS.columns if table is SUMMARIES else ()
    lines = [f"### `{table.name}`", "", f"One row: {table.row}."]
    if shared:
        names = ", ".join(f"`{column.name}`" for column in table.columns if column in shared)
        lines += ["", f"As in `results`: {names}."]
    lines += ["", "| column | type | contents |", "|---|---|---|"]
    for column in table.columns:
        if column not in shared:
            lines.append(
                f"| `{column.name}` | {column.type}{'?' if column.nullable else ''} | {column.doc} |"
            )
    return "\n".join([*lines, ""])
