"""The store: a folder of runs, each with its plan, journal and logs, and of Parquet tables.

::

    store.json                              the schema version
    runs/<run_id>/plan.json                 written before anything runs
    runs/<run_id>/journal.jsonl             appended while it runs
    runs/<run_id>/journal.torn              what a kill left unfinished, if anything
    runs/<run_id>/run.json                  state and counts of a published run
    runs/<run_id>/seal.json                 sizes and digests of what it published, written last
    runs/<run_id>/logs/
    tables/<table>/<run_id>.parquet         written by ``finish``
    compacted/<YYYY-MM>/                    the tables of older runs together: ``results/compacted``

Runs share no file that changes, so any number of them may use one store at once, and stores are merged by
copying files. Retention: rows and summaries are kept for good; raw samples may be deleted by removing files
of ``tables/samples``, which every reader tolerates, and are then still in the journal until that is removed.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torchgauge.clock import LATEST
from torchgauge.errors import DamagedJournalError, OtherSchemaError, UnknownNameError, UsageError
from torchgauge.records import SCHEMA_VERSION, Plan
from torchgauge.results.atomic_file import storage_errors, write_atomically
from torchgauge.results.compacted.compacted_months import CompactedMonths
from torchgauge.results.compacted.manifest import MonthManifest
from torchgauge.results.held import is_held
from torchgauge.results.journal import Journal, Kind, PlanStamp, RunState, is_being_written, read
from torchgauge.results.json_file import read_object
from torchgauge.results.plan_file import read_plan
from torchgauge.results.planned_folder import PlannedFolder, write_plan
from torchgauge.results.remote.store_url import is_url
from torchgauge.results.schema_version import check_version
from torchgauge.results.seal import damage_seen, publish_command

if TYPE_CHECKING:
    from torchgauge.results.compacted.month_rows import MonthRows


@dataclass(frozen=True)
class RunInfo:
    """One line of ``torchgauge results list``; ``created_at`` is in seconds since the epoch, UTC.

    ``counts`` maps each status to its number of rows so far; ``published`` says whether the tables hold
    the run; ``condition`` is ``damaged``, ``unpublished`` (it ended, and has no tables) or empty, and
    ``problem`` says what of it cannot be read.
    """

    run_id: str
    state: RunState
    created_at: float
    planned: int
    counts: dict[str, int]
    published: bool
    problem: str = ""
    condition: str = ""

    @property
    def remedy(self) -> str:
        """The command that mends the run's tables, without its store; empty where they want nothing."""
        return publish_command(self.run_id) if self.condition else ""

    @property
    def recorded(self) -> int:
        """Number of cases that have their row."""
        return sum(self.counts.values())


@dataclass(frozen=True)
class RunFolder(PlannedFolder):
    """The folder of one run."""

    @property
    def info_path(self) -> Path:
        """Where state and counts of a published run are."""
        return self.path / "run.json"

    def plan(self) -> Plan:
        """The plan; raises :class:`DataFileError` where it does not fit its schema."""
        return read_plan(self.plan_path)

    def open_journal(self) -> Journal:
        """The journal, created with the stamp of the plan or recovered, locked for writing.

        Raises what :meth:`Journal.open` raises, :class:`OtherSchemaError` for a run of another schema version
        and :class:`DamagedJournalError` where the journal belongs to another plan.
        """
        return Journal.open_stamped(self.journal_path, PlanStamp(self.run_id, self.plan().digest))


class Store:
    """A folder of results; see the module for its layout."""

    def __init__(self, path: Path) -> None:
        """Use :meth:`open`."""
        self.path = path
        self.left_out: dict[str, str] = {}
        self.unfinished: tuple[str, ...] = ()
        self.compacted = CompactedMonths(path)

    @cached_property
    def month_rows(self) -> MonthRows:
        """What was read of compacted months."""
        from torchgauge.results.compacted.month_rows import MonthRows

        return MonthRows(self.path)

    @classmethod
    def open(cls, path: Path | str, create: bool = False, *, writes: bool = False) -> Store:
        """The store at ``path``; for a URL, its copy on this machine, with what changed there.

        Raises :class:`UsageError` where there is none and ``create`` is false and for a URL that something
        ``writes`` to, and :class:`OtherSchemaError` where another version of torchgauge wrote it.
        """
        store = cls(Path(path)) if not is_url(path) else cls._remote(str(path), create or writes)
        marker = store.path / "store.json"
        _refuse_file(store.path)
        if marker.is_file():
            check_version(read_object(marker).get("schema_version"), str(marker))
        elif create:
            with storage_errors(store.path):
                (store.path / "runs").mkdir(parents=True, exist_ok=True)
                (store.path / "tables").mkdir(exist_ok=True)
            write_atomically(marker, json.dumps({"schema_version": SCHEMA_VERSION}).encode() + b"\n")
        else:
            raise UsageError(
                f"{store.path} is not a store",
                hint="torchgauge run SUITE --store DIR creates one",
            )
        return store

    @classmethod
    def _remote(cls, url: str, writes: bool) -> Store:
        if writes:
            raise UsageError(
                f"{url} is read-only: write a run to a folder, and copy it when it is finished",
                hint="--store DIR, then: torchgauge results push URL --store DIR",
            )
        from torchgauge.results.remote.pull import pull

        copy = pull(url)
        store = cls(copy.path)
        store.unfinished = copy.sentences(url)
        return store

    def begin(self, plan: Plan) -> RunFolder:
        """Write ``plan`` to a new run's folder, durable on return.

        Raises :class:`UsageError` where the run exists and ``ValueError`` where its id is no file name.
        """
        folder = RunFolder(self.path / "runs" / plan.run_id)
        write_plan(folder, plan, "run")
        return folder

    def finish(self, run_id: str, plan: Plan | None = None) -> None:
        """Publish the run: its journal becomes immutable Parquet tables. Repeating it changes nothing.

        :func:`publication.publish_again` writes them anew.

        ``plan`` saves reading the plan again where it is at hand.

        Raises :class:`InfrastructureError` where rows are missing or foreign, and for a full disk.
        """
        from torchgauge.results.publication import publish_run

        publish_run(self, self.run(run_id), plan)

    def run(self, run_id: str) -> RunFolder:
        """The folder of ``run_id``; raises :class:`UnknownNameError` with suggestions."""
        known = self.run_ids()
        if run_id not in known:
            raise UnknownNameError("run", run_id, known)
        return RunFolder(self.path / "runs" / run_id)

    def run_ids(self) -> tuple[str, ...]:
        """Ids of all runs, finished or not, in order of their names."""
        folders = (self.path / "runs").glob("[!.]*")
        return tuple(sorted(folder.name for folder in folders if folder.is_dir()))

    def runs(self) -> list[RunInfo]:
        """All runs, also those that are running or were interrupted, oldest first."""
        infos = [self.info(run_id) for run_id in self.run_ids()]
        return sorted(infos, key=lambda info: (info.created_at, info.run_id))

    def info(self, run_id: str) -> RunInfo:
        """State and counts of one run, from its ``run.json`` where it is published, else its journal."""
        folder = RunFolder(self.path / "runs" / run_id)
        published = self.is_published(run_id)
        if foreign := folder.foreign_part():
            problem = f"{foreign[0].name}: {foreign[1]}"
            return RunInfo(run_id, RunState.INTERRUPTED, 0.0, 0, {}, published, problem)
        try:
            if published and folder.info_path.is_file():
                data = read_object(folder.info_path)
                check_version(data.get("schema_version"), str(folder.info_path))
                counts = {str(status): int(count) for status, count in data["counts"].items()}
                at, planned = _date(data["created_at"]), int(data["planned"])
                info = RunInfo(run_id, RunState(data["state"]), at, planned, counts, published)
            else:
                created_at, planned = _planned(folder)
                info = _progress(folder, created_at, planned, published)
        except OtherSchemaError as error:
            return RunInfo(run_id, RunState.INTERRUPTED, 0.0, 0, {}, published, error.message)
        except (DamagedJournalError, UsageError) as error:
            info = RunInfo(run_id, RunState.INTERRUPTED, 0.0, 0, {}, published, error.message)
        except (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError) as error:
            problem = f"its plan, journal or run.json is damaged: {type(error).__name__}"
            info = RunInfo(run_id, RunState.INTERRUPTED, 0.0, 0, {}, published, problem)
        return self._judged(info, folder)

    def is_published(self, run_id: str) -> bool:
        """Whether the tables hold the run, and are not left out."""
        return run_id not in self.left_out and self.has_tables(run_id)

    def published(self) -> tuple[str, ...]:
        """Ids of the runs that the tables hold, but for those that are left out, in order of their names.

        Raises :class:`DamagedTableError` where nobody can tell which runs a compacted month has.
        """
        runs = self.with_own_tables() | self.compacted.runs()
        self.compacted.check_readable(self.left_out)
        return tuple(sorted(runs - self.left_out.keys()))

    def with_own_tables(self) -> set[str]:
        """Ids of the runs that have tables of their own, outside of a compacted month."""
        files = (self.path / "tables" / "results").glob("[!.]*.parquet")
        return {file.name.removesuffix(".parquet") for file in files}

    def month_of(self, run_id: str) -> MonthManifest | None:
        """The compacted month that the run is read from; None where it has tables of its own, or none."""
        own = self.table_path("results", run_id).is_file()
        return None if own else self.compacted.of(run_id)

    def damage(self, run_id: str) -> str:
        """What is wrong with the tables of a run, as far as their sizes tell; empty for nothing."""
        if run_id in self.left_out:
            return self.left_out[run_id]
        if month := self.month_of(run_id):
            return self.compacted.damage(month)
        return damage_seen(self.path, RunFolder(self.path / "runs" / run_id))

    def leave_out(self, run_id: str, why: str) -> None:
        """Read the run no more, for the reason ``why``."""
        self.left_out[run_id] = why

    def table_path(self, table: str, run_id: str) -> Path:
        """Where the part of ``table`` that belongs to ``run_id`` is, or will be."""
        return self.path / "tables" / table / f"{run_id}.parquet"

    def _judged(self, info: RunInfo, folder: RunFolder) -> RunInfo:
        """``info`` with what is wrong with the run's tables."""
        if self.has_tables(info.run_id):
            condition, problem = "damaged", self.damage(info.run_id)
        else:
            condition, problem = info.condition, "the run's tables are missing" if info.condition else ""
        if problem and folder.plan_path.is_file() and is_held(folder.plan_path):  # it is being published
            return replace(info, condition="")
        return replace(info, condition=condition, problem=problem) if problem else info

    def has_tables(self, run_id: str) -> bool:
        """Whether the tables hold the run, of its own or of its month, sound or not."""
        return self.table_path("results", run_id).is_file() or self.compacted.of(run_id) is not None


def _refuse_file(path: Path) -> None:
    """Raise :class:`UsageError` where ``path``, or a folder above it, is a file."""
    found = next((each for each in (path, *path.parents) if each.exists()), None)
    if found is not None and not found.is_dir():
        of = "" if found == path else f", so {path} cannot exist"
        raise UsageError(
            f"{found} is a file, and a store is a folder{of}", hint="pass a folder as --store DIR"
        )


def _date(value: Any) -> float:
    """Return ``value`` as a date in seconds since the epoch; raises ``ValueError`` for one that cannot be."""
    at = float(value)
    if not 0.0 <= at <= LATEST:
        raise ValueError(f"no date: {at:g}")
    return at


def _planned(folder: RunFolder) -> tuple[float, int]:
    data = read_object(folder.plan_path)
    check_version(data.get("schema_version"), str(folder.plan_path))
    return _date(data["created_at"]), sum(len(group["cases"]) for group in data["groups"])


def _progress(folder: RunFolder, created_at: float, planned: int, published: bool) -> RunInfo:
    statuses: dict[str, str] = {}
    state: RunState | None = None
    for record in read(folder.journal_path) if folder.journal_path.is_file() else ():
        if record.kind is Kind.RESULT:
            statuses.setdefault(record.case_key, record.data["status"])
        state = RunState(record.data["state"]) if record.kind is Kind.END else None
    ended = state is not None
    if state is None:
        writing = is_being_written(folder.journal_path)
        state = RunState.RUNNING if writing else RunState.INTERRUPTED
    condition = "unpublished" if ended and not published else ""
    counts = dict(Counter(statuses.values()))
    return RunInfo(folder.run_id, state, created_at, planned, counts, published, condition=condition)
