"""A/B runs in the store: a plan, a journal of launches and verdicts, and Parquet tables made of it.

::

    comparisons/<run_id>/plan.json          written before anything runs
    comparisons/<run_id>/journal.jsonl      appended while it runs: every launch with every step
    comparisons/<run_id>/logs/
    tables/<verdicts|launches|steps>/<run_id>.parquet

Beside ``runs/`` and not among them: an A/B run has pairs where a run has cases.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from torchgauge.errors import DamagedTableError, OtherSchemaError, UnknownNameError, UsageError
from torchgauge.records import Environment
from torchgauge.records.comparison import ComparisonPlan, Launch, MetricVerdict
from torchgauge.results.atomic_file import FREE, publish, storage_errors
from torchgauge.results.comparing.comparison_tables import (
    COMPARISON_TABLES,
    launch_row,
    step_rows,
    verdict_row,
)
from torchgauge.results.comparing.launch_facts import launch_facts
from torchgauge.results.dataset import left_out_because, read_part
from torchgauge.results.journal import Journal, Kind, PlanStamp, RunState, is_being_written, read
from torchgauge.results.json_file import as_record, read_object
from torchgauge.results.planned_folder import PlannedFolder, write_plan
from torchgauge.results.publication import writing_table
from torchgauge.results.runner_class import runner_class
from torchgauge.results.schema_version import check_version
from torchgauge.results.seal import publish_command, seal, unseal
from torchgauge.results.store import Store


@dataclass(frozen=True)
class ComparisonFindings:
    """What an A/B run found: its verdicts (the last ones, where it was resumed), where, and how it stands."""

    verdicts: tuple[MetricVerdict, ...]
    environments: tuple[Environment, ...]
    state: RunState


@dataclass(frozen=True)
class ComparisonFolder(PlannedFolder):
    """The folder of one A/B run."""

    def plan(self) -> ComparisonPlan:
        """The plan; raises :class:`DataFileError` where it does not fit its schema."""
        data = read_object(self.plan_path)
        check_version(data.get("schema_version"), str(self.plan_path))
        return as_record(ComparisonPlan, data, self.plan_path)

    def open_journal(self) -> Journal:
        """The journal, created with the stamp of the plan or recovered, locked for writing."""
        return Journal.open_stamped(self.journal_path, PlanStamp(self.run_id, self.plan().digest))

    def launches(self) -> Iterator[Launch]:
        """Every launch in the order in which they ran, with its steps."""
        for record in read(self.journal_path):
            if record.kind is Kind.LAUNCH:
                yield record.payload()

    def findings(self) -> ComparisonFindings:
        """Everything in the journal but launches, which are most of it: read once for all of them."""
        verdicts: dict[tuple[str, str], MetricVerdict] = {}
        environments: list[Environment] = []
        ended: RunState | None = None
        for record in read(self.journal_path):
            ended = record.payload().state if record.kind is Kind.END else None
            if record.kind is Kind.VERDICT:
                verdict: MetricVerdict = record.payload()
                verdicts[verdict.pair_key, verdict.metric] = verdict
            elif record.kind is Kind.ENVIRONMENT:
                environments.append(record.payload())
        if ended is None:
            ended = RunState.RUNNING if is_being_written(self.journal_path) else RunState.INTERRUPTED
        return ComparisonFindings(tuple(verdicts.values()), tuple(environments), ended)

    def verdicts(self) -> list[MetricVerdict]:
        """The verdicts; the last ones, where a run was resumed and judged again."""
        return list(self.findings().verdicts)

    def environments(self) -> list[Environment]:
        """The environments of both sides, as their workers described them."""
        return list(self.findings().environments)

    def state(self) -> RunState:
        """Where the A/B run stands."""
        return self.findings().state


def begin_comparison(store: Store, plan: ComparisonPlan) -> ComparisonFolder:
    """Write ``plan`` to a new folder, durable on return; raises :class:`UsageError` where the run exists."""
    folder = ComparisonFolder(store.path / "comparisons" / plan.run_id)
    write_plan(folder, plan, "comparison")
    return folder


def finish_comparison(store: Store, folder: ComparisonFolder, plan: ComparisonPlan) -> None:
    """Write the tables of the A/B run in ``folder``, ``verdicts`` last; a repetition replaces them."""
    hint = f"{FREE}, then: {publish_command(plan.run_id, store.path)}"
    with ExitStack() as stack, storage_errors(store.path / "tables", hint):
        writers = {
            name: stack.enter_context(writing_table(store, table, plan.run_id))
            for name, table in COMPARISON_TABLES.items()
        }
        findings = folder.findings()
        verdicts = findings.verdicts
        classes = {found.device: runner_class(found) for found in findings.environments}
        for launch in folder.launches():
            facts = launch_facts(plan, launch, verdicts, classes)
            writers["launches"].add([launch_row(plan.run_id, launch) | facts])
            writers["steps"].add(step_rows(plan.run_id, launch))
        writers["verdicts"].add(verdict_row(plan, verdict, classes) for verdict in verdicts)
        for writer in writers.values():
            writer.close()
        unseal(folder)
        for writer in writers.values():
            publish(writer.aside, writer.path)
        seal(store.path, folder, [writer.path for writer in writers.values()], hint)


def publish_comparison_again(store: Store, run_id: str) -> None:
    """Write the tables of the A/B run called ``run_id`` anew from its journal; raises as it is read."""
    folder = comparison(store, run_id)
    if is_being_written(folder.journal_path):
        raise UsageError(
            f"A/B run {run_id} is being measured", hint="wait until the run ends; it is then published"
        )
    finish_comparison(store, folder, folder.plan())


def comparison_ids(store: Store) -> tuple[str, ...]:
    """Return the ids of all A/B runs that are not left out, in order of their names and so of time."""
    folders = (store.path / "comparisons").glob("[!.]*")
    return tuple(sorted(each.name for each in folders if each.is_dir() and each.name not in store.left_out))


def comparison(store: Store, run_id: str) -> ComparisonFolder:
    """The folder of ``run_id``; raises :class:`UnknownNameError` with suggestions."""
    known = comparison_ids(store)
    if run_id not in known:
        raise UnknownNameError("comparison", run_id, known)
    return ComparisonFolder(store.path / "comparisons" / run_id)


def read_comparisons(
    store: Store, name: str, runs: Sequence[str] | None = None, columns: Sequence[str] | None = None
) -> Any:
    """Return the table called ``name`` (verdicts, launches or steps) over ``runs``, or over all published.

    Only ``columns`` are read where they are named: a ledger needs a few of thousands of A/B runs. One of
    another schema version among several is left out, and ``store.left_out`` has it. Raises
    :class:`UnknownNameError` for a table that is none and :class:`DamagedTableError` for a file that cannot
    be read.
    """
    if name not in COMPARISON_TABLES:
        raise UnknownNameError("table", name, COMPARISON_TABLES)
    schema = COMPARISON_TABLES[name].schema
    if columns is not None:
        schema = pa.schema([schema.field(column) for column in columns])
    wanted = comparison_ids(store) if runs is None else runs
    parts = []
    for path in (store.table_path(name, run_id) for run_id in wanted):
        try:
            if path.is_file():
                parts.append(read_part(path, name, schema))
        except DamagedTableError as error:
            if len(wanted) == 1 or not isinstance(error.__cause__, OtherSchemaError):
                raise
            store.leave_out(path.stem, left_out_because(store, error))
    return pa.concat_tables(parts) if parts else schema.empty_table()
