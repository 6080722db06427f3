"""What is wrong with a store: every byte of every run is read, and nothing is changed.

Why: a reader looks at what it needs, and ``results list`` at names and sizes. Here a journal is held to its
checksums, its plan and its end, the tables to the seal and to the journal, of which they are made once more.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torchgauge.clock import LATEST
from torchgauge.counted import counted
from torchgauge.errors import DamagedJournalError, TorchgaugeError, UsageError
from torchgauge.processes.kept_process import scratch
from torchgauge.records import Plan
from torchgauge.results.atomic_file import TEMPORARY_SUFFIX
from torchgauge.results.compacted.compacted_months import CompactedMonths
from torchgauge.results.compacted.month_check import month_findings
from torchgauge.results.comparing.comparison_store import (
    ComparisonFolder,
    comparison_ids,
    finish_comparison,
    read_comparisons,
)
from torchgauge.results.comparing.comparison_tables import COMPARISON_TABLES
from torchgauge.results.dataset import read_part, read_run
from torchgauge.results.fast_json import loads
from torchgauge.results.finding import Fault, Finding
from torchgauge.results.held import is_held
from torchgauge.results.journal import Kind, RunState, is_being_written, read_with_ends
from torchgauge.results.publication import publish_run
from torchgauge.results.seal import SEAL, SealedFile, publish_command, read_seal
from torchgauge.results.store import RunFolder, Store
from torchgauge.results.tables import TABLES


@dataclass(frozen=True)
class StoreCheck:
    """What was looked at: ids of runs and A/B runs, those with a seal, those in use, and what was found."""

    runs: tuple[str, ...]
    sealed: tuple[str, ...]
    busy: tuple[str, ...]
    findings: tuple[Finding, ...]

    @property
    def exit_code(self) -> int:
        """3 where anything is wrong, else 0."""
        return 3 if self.findings else 0


def check_store(store: Store) -> StoreCheck:
    """Read all of ``store``; runs that are being measured or published now are left alone, and named."""
    folders: list[RunFolder | ComparisonFolder]
    folders = [RunFolder(store.path / "runs" / name) for name in store.run_ids()]
    folders += [ComparisonFolder(store.path / "comparisons" / name) for name in comparison_ids(store)]
    findings: list[Finding] = []
    sealed: list[str] = []
    busy: list[str] = []
    for folder in folders:
        published_now = folder.plan_path.is_file() and is_held(folder.plan_path)
        if published_now or is_being_written(folder.journal_path):
            busy.append(folder.run_id)
            continue
        check = _RunCheck(store.path, folder, store.compacted)
        findings += check.findings()
        if check.sealed:
            sealed.append(folder.run_id)
    known = {folder.run_id for folder in folders}
    findings += _strangers(store.path, known, busy)
    findings += month_findings(store)
    return StoreCheck(tuple(sorted(known)), tuple(sealed), tuple(busy), tuple(findings))


@dataclass
class _RunCheck:
    """One run or A/B run that nobody writes now, in the store at ``root``."""

    root: Path
    folder: RunFolder | ComparisonFolder
    months: CompactedMonths
    sealed: bool = False
    plan: Any = None
    state: RunState | None = None
    keys: set[str] = field(default_factory=set)
    journal_is_sound: bool = True

    def findings(self) -> Iterator[Finding]:
        """What is wrong with its folder and its tables."""
        trouble = list(self.source())
        if self.plan is not None:
            trouble += self.tables(self.plan, self.state)
        yield from trouble
        if not trouble and self.state is not None:
            yield from self.as_journal()

    def source(self) -> Iterator[Finding]:
        """Yield the faults of its plan and its journal, of which its tables are made."""
        path = self.folder.plan_path
        if foreign := self.folder.foreign_part():
            yield self.found(Fault.FOREIGN, *foreign, "replace it with a regular folder or file")
            return
        if not path.exists():
            yield self.found(Fault.MISSING, path, "the run has no plan", "restore it from a copy")
            return
        try:
            plan = self.folder.plan()
        except UsageError as error:
            yield self.found(Fault.DAMAGED, path, error.message, error.hint)
            return
        if not 0.0 <= plan.created_at <= LATEST:
            yield self.found(
                Fault.DAMAGED, path, "the date of the plan is impossible", "restore it from a copy"
            )
            return
        if plan.run_id != self.folder.run_id:
            problem = f"the folder contains the plan of run {plan.run_id}"
            yield self.found(Fault.FOREIGN, path, problem, "rename the folder to that run")
            return
        self.plan = plan
        if self.folder.journal_path.is_file():
            self.state, trouble = self.journal(plan)
            yield from trouble

    def journal(self, plan: Any) -> tuple[RunState | None, list[Finding]]:
        """How the run ended by its journal, if it says so, and what is wrong with that."""
        path, state, end, trouble = self.folder.journal_path, None, 0, []
        restore = "restore it from a copy"
        try:
            for record, end in read_with_ends(path, loads=loads):  # noqa: B007  the last one counts
                state = RunState(record.data["state"]) if record.kind is Kind.END else None
                if record.kind is Kind.RESULT:
                    self.keys.add(record.case_key)
                stamp = record.data if record.kind is Kind.PLAN else {}
                if stamp and (stamp["run_id"], stamp["digest"]) != (plan.run_id, plan.digest):
                    trouble.append(
                        self.found(Fault.FOREIGN, path, "the journal belongs to another plan", restore)
                    )
        except TorchgaugeError as error:
            self.journal_is_sound = False
            return None, [self.found(Fault.DAMAGED, path, error.message, error.hint)]
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            self.journal_is_sound = False
            problem = f"a line is not a record of a run: {type(error).__name__}"
            return None, [self.found(Fault.DAMAGED, path, problem, restore)]
        if torn := path.stat().st_size - end:
            problem = f"the last {torn:,} bytes are an unfinished line: the run was killed while writing"
            resume = f"torchgauge run --resume {self.folder.path}"
            trouble.append(self.found(Fault.TORN, path, problem, resume))
        if isinstance(plan, Plan):
            planned = {each.case.key for each in plan.cases}
            if foreign := self.keys - planned:
                problem = f"the journal has rows of {counted(len(foreign), 'case')} that are not in the plan"
                trouble.append(self.found(Fault.FOREIGN, path, problem, restore))
            if state is RunState.COMPLETE and (lost := planned - self.keys):
                problem = (
                    f"{len(lost)} of {counted(len(planned), 'planned case')} "
                    "have no row in a run that is complete"
                )
                trouble.append(self.found(Fault.MISSING, path, problem, restore))
        self.journal_is_sound = not trouble
        return state, trouble

    def tables(self, plan: Any, state: RunState | None) -> Iterator[Finding]:
        """What is wrong with the tables of a run that ended in ``state``."""
        kind = TABLES if isinstance(plan, Plan) else COMPARISON_TABLES
        last = "results" if isinstance(plan, Plan) else "verdicts"
        there = {name: self.root / "tables" / name / f"{plan.run_id}.parquet" for name in kind}
        compacted = isinstance(plan, Plan) and self.months.of(plan.run_id) is not None
        if not there[last].is_file() and not compacted:
            if state is not None:
                yield self.found(Fault.MISSING, there[last], "the run ended but is not published")
            return
        try:
            found = read_seal(self.folder)
        except UsageError as error:
            yield self.found(Fault.DAMAGED, self.folder.path / SEAL, error.message)
            found = None
        if found is not None:
            self.sealed = True
            own = there[last].is_file()  # else the check of its month is that of its tables
            files = [file for file in found.files if own or not file.is_table]
            yield from (finding for file in files for finding in self.against(file, state))
            names = {file.path for file in found.files}
            for path in there.values():
                if own and path.is_file() and path.relative_to(self.root).as_posix() not in names:
                    yield self.found(Fault.FOREIGN, path, "the run did not publish this file")
            return
        for name, path in there.items():
            if path.is_file() and (not compacted or there[last].is_file()):
                yield from self.readable(plan, name, path)

    def as_journal(self) -> Iterator[Finding]:
        """Tables whose rows are not those that the journal makes."""
        run_id, store = self.folder.run_id, Store(self.root)
        with scratch("fsck") as aside:
            copy = type(self.folder)(aside / self.folder.path.relative_to(self.root))
            copy.path.mkdir(parents=True)
            for path in (self.folder.plan_path, self.folder.journal_path):
                shutil.copyfile(path, copy.path / path.name)
            made = Store(aside)
            try:
                make_tables(made, copy)
            except UNMADE as error:
                problem = f"no tables can be made from the journal: {error}"
                yield self.found(
                    Fault.DAMAGED, self.folder.journal_path, problem, "move the run out of the store"
                )
                return
            for name in TABLES if isinstance(copy, RunFolder) else COMPARISON_TABLES:
                try:
                    rows, ours = (_rows(each, name, run_id) for each in (store, made))
                except DamagedJournalError as error:
                    yield self.found(Fault.DAMAGED, store.table_path(name, run_id), error.message)
                    continue
                if not rows.equals(ours) and (rows.num_rows or name not in ("samples", "steps")):
                    path = store.table_path(name, run_id)
                    yield self.found(Fault.DAMAGED, path, "the rows differ from those in the journal")

    def against(self, file: SealedFile, state: RunState | None) -> Iterator[Finding]:
        """How ``file`` differs from what was published."""
        path = self.root / file.path
        if path == self.folder.journal_path and path.is_file() and path.stat().st_size > file.bytes:
            if state is not None:  # else it is resumed some time
                yield self.found(Fault.MISSING, path, "the journal has rows that are not in the tables")
        elif differs := file.differs_within(self.root):
            fault = Fault.DAMAGED if path.exists() else Fault.MISSING
            yield self.found(fault, path, differs, "" if file.is_table else "restore it from a copy")

    def readable(self, plan: Any, name: str, path: Path) -> Iterator[Finding]:
        """Whether a table without a seal can be read, and has a row for each case of ``plan``."""
        schema = (TABLES | COMPARISON_TABLES)[name].schema
        try:
            rows = read_part(path, name, schema).num_rows
        except DamagedJournalError as error:
            yield self.found(Fault.DAMAGED, path, error.message)
            return
        if name == "results" and rows != len(plan.cases):
            problem = (
                f"the table has {counted(rows, 'row')}, but "
                f"{counted(len(plan.cases), 'case was', 'cases were')} planned"
            )
            yield self.found(Fault.DAMAGED, path, problem)

    def found(self, fault: Fault, path: Path, problem: str, remedy: str = "") -> Finding:
        """A finding; tables are made anew from the journal, unless ``remedy`` says something else."""
        sound = self.journal_is_sound and self.folder.journal_path.is_file()
        again = publish_command(self.folder.run_id, self.root) if sound else "restore it from a copy"
        return Finding(fault, path.relative_to(self.root).as_posix(), problem, remedy or again)


UNMADE = (TorchgaugeError, ValueError, TypeError, LookupError, OverflowError, RecursionError)
"""Errors of a plan or a journal of which no tables can be made."""


def make_tables(store: Store, folder: RunFolder | ComparisonFolder) -> None:
    """Make the tables of ``folder`` in ``store`` from its plan and journal; raises one of :data:`UNMADE`."""
    if isinstance(folder, RunFolder):
        publish_run(store, folder, again=True)
    else:
        finish_comparison(store, folder, folder.plan())


def _rows(store: Store, table: str, run_id: str) -> Any:
    return read_run(store, table, run_id) if table in TABLES else read_comparisons(store, table, [run_id])


def source_of(store: Store, folder: RunFolder | ComparisonFolder) -> tuple[list[Finding], RunState | None]:
    """Return what is wrong with plan and journal of ``folder``, and how its run ended, if it did."""
    check = _RunCheck(store.path, folder, store.compacted)
    return list(check.source()), check.state


def _strangers(root: Path, known: set[str], busy: list[str]) -> Iterator[Finding]:
    """Files that belong to no run, and what a kill left of files that were being written."""
    for folder in [root / "runs", root / "comparisons", *sorted((root / "tables").glob("*"))]:
        tables = folder.parent.name == "tables"
        if tables and folder.name not in TABLES | COMPARISON_TABLES:
            name = folder.relative_to(root).as_posix()
            yield Finding(
                Fault.FOREIGN, name, "a store has no table of this name", "move it out of the store"
            )
            continue
        for path in sorted(folder.glob("*")):
            name = path.relative_to(root).as_posix()
            if path.name.startswith(".") and path.name.endswith(TEMPORARY_SUFFIX):
                if not any(path.name.startswith(f".{run}.") for run in busy):
                    problem = "left over from a process that was killed while writing"
                    yield Finding(
                        Fault.TORN, name, problem, "remove the file when no process writes into the store"
                    )
            elif tables and (path.suffix != ".parquet" or path.stem not in known):
                problem = "the file belongs to no run of the store"
                yield Finding(Fault.FOREIGN, name, problem, "restore the folder of its run, or remove it")
