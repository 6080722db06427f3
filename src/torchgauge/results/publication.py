"""A finished journal to immutable Parquet: written aside, fsynced, renamed, ``results`` last, then sealed.

Why the order: readers believe a run once its ``results`` file is there, so a kill or a full disk leaves
either an unpublished run, which can be published again, or a whole one. The seal, with the size and the
digest of each file, comes after all of them: what it names was there.
"""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from torchgauge.counted import counted
from torchgauge.errors import InfrastructureError, UsageError
from torchgauge.records import (
    SCHEMA_VERSION,
    Cause,
    Phase,
    Plan,
    PlannedCase,
    Result,
    Status,
    to_plain,
)
from torchgauge.results import rows as to_rows
from torchgauge.results.atomic_file import (
    FREE,
    TEMPORARY_SUFFIX,
    fsync_path,
    publish,
    storage_errors,
    write_atomically,
    writing_aside,
)
from torchgauge.results.attempts import Attempts
from torchgauge.results.fast_json import loads
from torchgauge.results.held import held
from torchgauge.results.journal import Kind, RunState, is_being_written, read
from torchgauge.results.json_file import object_if_any
from torchgauge.results.possible import impossible
from torchgauge.results.rows import Row, RunContext
from torchgauge.results.seal import publish_command, seal, unseal
from torchgauge.results.store import RunFolder, Store
from torchgauge.results.tables import TABLES, Table
from torchgauge.results.uncollected import uncollected

VERSION_KEY = b"torchgauge.schema_version"
"""Key of a Parquet file's metadata that holds the schema version which wrote it."""

CUT_SHORT = {
    RunState.INTERRUPTED: (Cause.CANCELLED, "the run was interrupted before this case"),
    RunState.OUT_OF_BUDGET: (Cause.BUDGET, "the budget of the run was spent before this case"),
}
"""Ends that leave cases unreached: their cause, and the reason in the rows."""

_CHUNK_ROWS = 2_000
"""Rows that are held in memory per table while a run is published."""

_CHUNK_BYTES = 8 << 20
"""Bytes of logs, tracebacks and messages that are held, where they are long."""


def publish_run(store: Store, folder: RunFolder, plan: Plan | None = None, *, again: bool = False) -> None:
    """Write the tables of the run in ``folder``, unless they are there, or ``again``.

    A run that was interrupted is published with ``not_run`` rows for the cases that were never reached, and
    published anew once it was resumed: only a complete run is immutable. Raises
    :class:`InfrastructureError` where a planned case has no row or a row has no planned case.
    """
    with held(folder.plan_path):  # a second process waits, and then finds the run published
        plan = plan or folder.plan()
        there = store.has_tables(folder.run_id)
        if there and not again and not _interrupted_before(folder):
            return
        with uncollected():
            found = _survey(folder)
        if found.state in CUT_SHORT:
            # Rows for the planned cases that a run did not reach, or of which it made too few attempts.
            cause, reason = CUT_SHORT[found.state or RunState.INTERRUPTED]
            rows = [
                found.attempts.give_up(planned.case.key) or unreached_row(plan, planned, cause, reason)
                for planned in plan.cases
                if planned.case.key not in found.statuses
            ]
            found.statuses.update({row.case.key: row.status.value for row in rows})
            found.never_reached = rows
        _check_complete(plan, found)
        hint = f"{FREE}, then: {publish_command(folder.run_id, store.path)}"
        with uncollected(), ExitStack() as stack, storage_errors(store.path / "tables", hint):
            writers = {
                name: stack.enter_context(writing_table(store, table, plan.run_id))
                for name, table in TABLES.items()
            }
            _fill(writers, folder, plan, found)
            for writer in writers.values():
                writer.close()
            unseal(folder)
            write_atomically(folder.info_path, _info(plan, found), hint)
            for writer in writers.values():
                publish(writer.aside, writer.path)
            seal(store.path, folder, [writer.path for writer in writers.values()], hint)


def publish_again(store: Store, run_id: str) -> None:
    """Write the tables of the run called ``run_id`` anew from its journal, whatever is there of them.

    Raises what :func:`publish_run` raises, :class:`UnknownNameError` for a run that is not there, and
    :class:`UsageError` where it is being measured or its journal is gone.
    """
    folder = store.run(run_id)
    if is_being_written(folder.journal_path):
        raise UsageError(
            f"run {run_id} is being measured", hint="wait until the run ends; it is then published"
        )
    if not folder.journal_path.is_file():
        raise UsageError(
            f"run {run_id} has no journal to write tables from", hint=f"restore {folder.journal_path}"
        )
    publish_run(store, folder, again=True)


class TableWriter:
    """One Parquet file that is being written aside, a chunk of rows at a time."""

    def __init__(self, table: Table, path: Path, aside: Path) -> None:
        """``aside`` is written, ``path`` is where it will be."""
        self.table, self.path, self.aside = table, path, aside
        metadata = {VERSION_KEY: str(SCHEMA_VERSION).encode()}
        self._schema = table.schema.with_metadata(metadata)
        self._writer = pq.ParquetWriter(aside, self._schema, compression="zstd", write_page_checksum=True)
        self._rows: list[Row] = []
        self._columns: dict[str, list[Any]] = {column.name: [] for column in table.columns}
        self._held = 0

    def add(self, new_rows: Iterable[Row], size: int = 0) -> None:
        """Append rows, of ``size`` bytes of text; raises ``ValueError`` for a non-finite number."""
        self._rows.extend(new_rows)
        self._held += size
        if len(self._rows) >= _CHUNK_ROWS or self._held >= _CHUNK_BYTES:
            self._flush()

    def add_columns(self, new: Mapping[str, Sequence[Any]]) -> None:
        """Append rows that are given by column; raises as :meth:`add`, beside which it is not used."""
        for name, values in self._columns.items():
            values.extend(new[name])
        if len(self._columns[self.table.columns[0].name]) >= _CHUNK_ROWS:
            self._flush()

    def close(self) -> None:
        """Write what is left and fsync the file."""
        self._flush()
        self._writer.close()
        fsync_path(self.aside)

    def abandon(self) -> None:
        """Close the file without a care for what it holds."""
        with suppress(OSError, pa.ArrowException):
            self._writer.close()

    def _flush(self) -> None:
        if any(self._columns.values()):
            try:
                chunk = pa.Table.from_pydict(self._columns, schema=self._schema)
            except UnicodeEncodeError:
                said = {name: list(map(_sayable, values)) for name, values in self._columns.items()}
                chunk = pa.Table.from_pydict(said, schema=self._schema)
            check_finite(self.table, chunk)
            self._writer.write_table(chunk)
            self._columns = {column.name: [] for column in self.table.columns}
        if not self._rows:
            return
        self._writer.write_table(chunk_of(self.table, self._rows, self._schema))
        self._rows, self._held = [], 0


def chunk_of(table: Table, rows: Sequence[Row], schema: Any = None) -> Any:
    """``rows`` as a ``pyarrow.Table`` of ``table``, with its schema or the given one.

    Raises ``ValueError``, ``TypeError`` or ``OverflowError`` for a value that its column cannot hold.
    """
    schema = schema or table.schema
    try:
        chunk = pa.Table.from_pylist(rows, schema=schema)
    except UnicodeEncodeError:
        chunk = pa.Table.from_pylist([_storable(row) for row in rows], schema=schema)
    check_finite(table, chunk)
    return chunk


def _storable(row: Row) -> Row:
    """``row`` with lone surrogates, which UTF-8 cannot say, written as their escapes."""
    return {name: _sayable(value) for name, value in row.items()}


def _sayable(value: Any) -> Any:
    return value.encode(errors="backslashreplace").decode() if isinstance(value, str) else value


def check_finite(table: Table, chunk: Any) -> None:
    """Raise ``ValueError`` where a number in ``chunk`` is infinite or not a number."""
    for column in table.columns:
        if pa.types.is_floating(column.type):
            finite = pc.all(pc.is_finite(chunk.column(column.name))).as_py()
            if finite is False:
                raise ValueError(
                    f"{table.name}.{column.name}: a non-finite number; record a missing value as null"
                )


@dataclass
class _Survey:
    """What the first pass over a journal finds; ``versions`` of torch are by environment.

    ``lines`` has the case key of each line that is the first result of its case.
    """

    lines: dict[int, str] = field(default_factory=dict)
    statuses: dict[str, str] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    state: RunState | None = None
    never_reached: list[Result] = field(default_factory=list)
    attempts: Attempts = field(default_factory=Attempts)


def _survey(folder: RunFolder) -> _Survey:
    found = _Survey()
    for record in read(folder.journal_path, loads):
        found.state = None
        if record.kind is Kind.RESULT:
            key = record.case_key
            if key not in found.statuses:
                found.statuses[key], found.lines[record.n] = record.data["status"], key
        elif record.kind is Kind.ATTEMPT:
            found.attempts.restore(record.payload())
        elif record.kind is Kind.ENVIRONMENT:
            environment = record.payload()
            if name := to_rows.torch_version(environment):
                found.versions[environment.id] = name
        elif record.kind is Kind.END:
            found.state = record.payload().state
    return found


def _interrupted_before(folder: RunFolder) -> bool:
    """Whether the tables were written of an interrupted run, which a resumed one may replace."""
    return object_if_any(folder.info_path).get("state") in {state.value for state in CUT_SHORT}


def unreached_row(plan: Plan, planned: PlannedCase, cause: Cause, reason: str) -> Result:
    """The row of a planned case that a run which was cut short did not reach."""
    return Result(
        run_id=plan.run_id,
        case_id=planned.case.id,
        case=planned.case,
        status=Status.NOT_RUN,
        phase=Phase.START,
        expected=planned.expectation.status if planned.expectation else None,
        cause=cause,
        reason=reason,
        reproduce=shlex.join(["torchgauge", "repro", planned.case.id]),
    )


def _check_complete(plan: Plan, found: _Survey) -> None:
    planned = {planned.case.key: planned.case.id for planned in plan.cases}
    missing = [case_id for key, case_id in planned.items() if key not in found.statuses]
    if missing:
        listed = ", ".join(missing[:5]) + (", ..." if len(missing) > 5 else "")
        raise InfrastructureError(
            f"run {plan.run_id} cannot be published: {len(missing)} "
            f"of {counted(len(planned), 'planned case')} have no "
            f"row: {listed}",
            hint="resume the run",
        )
    foreign = found.statuses.keys() - planned.keys()
    if foreign:
        raise InfrastructureError(
            f"run {plan.run_id} cannot be published: its journal "
            f"holds {counted(len(foreign), 'case')} missing in its "
            f"plan, the first with the key {min(foreign)}",
            hint="restore plan.json and journal.jsonl from the same run",
        )


def _fill(writers: dict[str, TableWriter], folder: RunFolder, plan: Plan, found: _Survey) -> None:
    context = RunContext(plan.run_id, plan.created_at, found.versions)
    seen: Counter[str] = Counter()
    planned = {each.case.key: each.case for each in plan.cases}
    calibrations = 0
    for record in read(folder.journal_path, loads):
        if key := found.lines.get(record.n):
            # the plan's case is the same, and has its hashes ready: they take as long as the rest of a row
            _add_result(writers, record.payload({"case": planned[key]}), context)
        elif record.kind is Kind.ENVIRONMENT:
            environment = record.payload()
            observation = seen[environment.id]
            seen[environment.id] += 1
            columns = to_rows.environment_columns(plan.run_id, environment, observation)
            writers["environments"].add_columns(columns)
        elif record.kind is Kind.CALIBRATION:
            row = to_rows.calibration_row(plan.run_id, record.payload(), calibrations)
            writers["calibrations"].add([row])
            calibrations += 1
    for result in found.never_reached:
        _add_result(writers, result, context)


def _add_result(writers: dict[str, TableWriter], result: Result, context: RunContext) -> None:
    said = result.failure
    long = len(result.log_excerpt) + len(result.reason) + len(result.teardown)
    long += len(said.traceback) + len(said.message) if said else 0
    writers["results"].add([to_rows.result_row(result, context)], long)
    writers["summaries"].add(to_rows.summary_rows(result, context))
    if result.measurements:
        writers["samples"].add_columns(to_rows.sample_columns(result))
    if problem := impossible(result):
        raise InfrastructureError(
            f"run {result.run_id} cannot be published: {result.case_id}: {problem}",
            hint="measure the case again, or fix the suite or device that reported this number",
        )


def _info(plan: Plan, found: _Survey) -> bytes:
    state = found.state or RunState.COMPLETE
    counts = dict(sorted(Counter(found.statuses.values()).items()))
    data = {
        "schema_version": SCHEMA_VERSION,
        "run_id": plan.run_id,
        "created_at": plan.created_at,
        "state": state,
        "planned": len(found.statuses),
        "counts": counts,
    }
    return json.dumps(to_plain(data), indent=1).encode() + b"\n"


@contextmanager
def writing_table(store: Store, table: Table, run_id: str) -> Iterator[TableWriter]:
    """Yield the writer of the part of ``table`` of the run ``run_id``; remove what is stale there."""
    path = store.table_path(table.name, run_id)
    if not path.parent.is_dir():
        path.parent.mkdir(parents=True, exist_ok=True)
        fsync_path(path.parent.parent)
    for stale in path.parent.glob(f".{path.name}.*{TEMPORARY_SUFFIX}"):
        stale.unlink(missing_ok=True)
    with writing_aside(path) as aside:
        writer = TableWriter(table, path, aside)
        try:
            yield writer
        finally:
            writer.abandon()
