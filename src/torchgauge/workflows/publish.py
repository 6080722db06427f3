"""What must hold before and after a site is published: tables are ours, and history never shrinks.

Whoever can add a file to the history could add a table. So tables are made here, from journals, and the
published state keeps the digest of each run's seal: only files that it names are read as they are. A run of
which no tables can be made is left out by its name, and the rest is published.

The published state is a small file beside the history: which runs there were, with how many rows, and the
oldest date. It carries a hash of itself, so that a file that was cut off is no shorter history but none.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from torchgauge.clock import DAY_S, SYSTEM_CLOCK, Clock, utc
from torchgauge.counted import counted
from torchgauge.errors import DataFileError, InfrastructureError, TorchgaugeError
from torchgauge.records import to_plain
from torchgauge.results.atomic_file import storage_errors, write_atomically
from torchgauge.results.compacted.compaction import compact
from torchgauge.results.compacted.manifest import MonthManifest
from torchgauge.results.comparing.comparison_store import ComparisonFolder, comparison_ids
from torchgauge.results.comparing.comparison_tables import COMPARISON_TABLES
from torchgauge.results.dataset import row_count
from torchgauge.results.finding import Fault
from torchgauge.results.fsck import UNMADE, make_tables, source_of
from torchgauge.results.json_file import as_record, read_object
from torchgauge.results.origin import read_provenance
from torchgauge.results.run_id import is_run_id
from torchgauge.results.seal import SEAL, read_seal
from torchgauge.results.store import RunFolder, Store
from torchgauge.results.tables import TABLES
from torchgauge.workflows.ingest.provenance import REJECTED, SUPERSEDED
from torchgauge.workflows.ingest.removal import retire_replaced, tombstones
from torchgauge.workflows.plain_text import plain
from torchgauge.workflows.result_set import JOURNAL_BYTES

STATE_SCHEMA = 2


@dataclass(frozen=True)
class PublishedState:
    """The history that a publication showed: rows by run; ``oldest`` is in seconds since the epoch (UTC).

    ``made`` has the SHA-256 of the seal of each run, and of the manifest of each month, that it read.
    """

    runs: dict[str, int]
    oldest: float | None
    made: dict[str, str] = field(default_factory=dict)
    schema: int = STATE_SCHEMA

    @property
    def rows(self) -> int:
        """Number of rows of all runs."""
        return sum(self.runs.values())


@dataclass(frozen=True)
class Retention:
    """For how many days what may be forgotten is kept (None: for good); rows and summaries always are."""

    samples_days: float | None = None
    superseded_days: float | None = None
    rejected_days: float | None = None


def state_of(store: Store) -> PublishedState:
    """The history that ``store`` holds now, from what its tables hold and not from what its files claim.

    Raises :class:`DamagedJournalError` for a table that cannot be read.
    """
    runs = {run: row_count(store, "results", run) for run in store.published()}
    dates = [store.info(run).created_at for run in runs]
    return PublishedState(runs, min(dates, default=None))


def read_state(path: Path) -> PublishedState | None:
    """The state that was published last; None where there is no file.

    Raises :class:`DataFileError` for a file that is cut off, edited or of another schema.
    """
    if not path.exists():
        return None
    hint = "restore this file from the last commit of its branch; without it, lost history goes unnoticed"
    data = read_object(path, hint)
    said = data.pop("digest", None)
    state = as_record(PublishedState, data, path, hint)
    if said != _digest(data) or state.schema != STATE_SCHEMA:
        raise DataFileError(str(path), "the content does not match the digest in the file", hint=hint)
    return state


def write_state(path: Path, state: PublishedState) -> None:
    """Write ``state`` for the next publication to be held against."""
    with storage_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    data = to_plain(state)
    write_atomically(path, json.dumps({**data, "digest": _digest(data)}, indent=1).encode() + b"\n")


def check_no_shrinking(before: PublishedState, after: PublishedState, removed: set[str]) -> None:
    """Raise :class:`InfrastructureError` where ``after`` lacks of ``before`` what nobody removed.

    ``removed`` are the runs that have a tombstone.
    """
    gone = sorted(before.runs.keys() - after.runs.keys() - removed)
    fewer = sorted(run for run, rows in after.runs.items() if rows < before.runs.get(run, 0))
    kept = {run: rows for run, rows in before.runs.items() if run not in removed}
    problems = []
    if gone:
        problems.append(f"{counted(len(gone), 'run is', 'runs are')} gone: {_listed(gone)}")
    if fewer:
        problems.append(
            f"{counted(len(fewer), 'run has', 'runs have')} fewer rows than before: {_listed(fewer)}"
        )
    if after.rows < sum(kept.values()):
        problems.append(f"{counted(after.rows, 'row')} where there were {sum(kept.values())}")
    later = before.oldest is not None and (after.oldest is None or after.oldest > before.oldest)
    if later and not removed & before.runs.keys():
        problems.append(f"the oldest run is from {after.oldest}; it was from {before.oldest} before")
    if problems:
        raise InfrastructureError(
            f"publishing would shrink the history: {'; '.join(problems)}",
            hint="fetch the whole results branch; remove runs only by torchgauge results remove RUN",
        )


def tables_from_journals(
    store: Store, known: Mapping[str, str], clock: Clock = SYSTEM_CLOCK
) -> dict[str, str]:
    """Make the tables of every run of ``store`` that is not as ``known`` from its journal.

    ``known`` and what is returned map the folder of a run, or the manifest of a month, to the SHA-256 of its
    seal. A run of which none can be made, or with a name that torchgauge does not give, is left out.
    """
    store.compacted.look()
    for path, problem in store.compacted.unreadable.items():
        store.leave_out(path, problem)
    made: dict[str, str] = {}
    whole: set[str] = set()
    unknown: list[MonthManifest] = []
    for month in store.compacted.manifests():
        digest = _digest_of(store.path / month.path)
        if known.get(month.path) == digest and not any(f.differs_within(store.path) for f in month.files):
            made[month.path] = digest
            whole |= month.by_run.keys() - store.with_own_tables()
        else:
            unknown.append(month)
    runs = sorted({*store.run_ids(), *store.published()} - whole)
    folders = [RunFolder(store.path / "runs" / name) for name in runs]
    comparisons = [ComparisonFolder(store.path / "comparisons" / name) for name in comparison_ids(store)]
    every: list[RunFolder | ComparisonFolder] = [*folders, *comparisons]
    for folder in every:
        name, place = folder.run_id, folder.path.relative_to(store.path).as_posix()
        if not is_run_id(name, clock.now()):
            store.leave_out(name, "this is not a valid id of a run")
        elif _is_known(store, folder, known.get(place, "")):
            made[place] = known[place]
        elif problem := _made(store, folder) or _lacks(store, name):
            store.leave_out(name, problem)
        elif (folder.path / SEAL).is_file():
            made[place] = _digest_of(folder.path / SEAL)
    for month in unknown:
        if not month.by_run.keys() & store.left_out.keys():
            with suppress(TorchgaugeError):  # such as of a month that is not over: its runs have own tables
                compact(store, month.month, clock=clock)
                made |= {each.path: _digest_of(store.path / each.path) for each in store.compacted.manifests()
                         if each.month == month.month}  # fmt: skip
    return made


def _lacks(store: Store, run_id: str) -> str:
    """Return how many rows of ``run_id`` are gone since a job's set came in; empty where none is."""
    came = read_provenance(store, run_id).get("rows")
    rows = row_count(store, "results", run_id) if store.is_published(run_id) else 0
    return f"the run has {rows} of {came} imported rows" if isinstance(came, int) and rows < came else ""


def _is_known(store: Store, folder: RunFolder | ComparisonFolder, digest: str) -> bool:
    """Return whether the seal of ``folder`` has this ``digest``, and names every table as it is."""
    path = folder.path / SEAL
    if not digest or path.is_symlink() or not path.is_file() or _digest_of(path) != digest:
        return False
    seal = read_seal(folder)
    files = {file.path: file for file in seal.files} if seal else {}
    tables = (store.table_path(table, folder.run_id) for table in TABLES | COMPARISON_TABLES)
    there = {path.relative_to(store.path).as_posix() for path in tables if path.exists()}
    return there <= files.keys() and not any(file.differs_within(store.path) for file in files.values())


def _made(store: Store, folder: RunFolder | ComparisonFolder) -> str:
    """Make the tables of ``folder`` where its run has ended; returns why none can be made."""
    for path in (folder.plan_path, folder.journal_path):
        if path.is_file() and (size := path.stat().st_size) > JOURNAL_BYTES:
            return f"{path.name} has {size:,} bytes; the limit is {JOURNAL_BYTES:,}"
    findings, state = source_of(store, folder)
    if wrong := next((each for each in findings if each.fault is not Fault.TORN), None):
        return f"{wrong.path}: {wrong.problem}"
    tables = [store.table_path(table, folder.run_id) for table in TABLES | COMPARISON_TABLES]
    if found := next((path for path in tables if path.is_dir() and not path.is_symlink()), None):
        return f"{found.relative_to(store.path)} is a folder"
    if state is None:
        told = store.compacted.of(folder.run_id) or any(path.exists() for path in tables)
        return "the run has tables but no complete journal to rebuild the tables from" if told else ""
    try:
        make_tables(store, folder)
    except UNMADE as error:
        return plain(str(error))
    return ""


def publish(
    store: Store,
    guard: Path,
    build: Callable[[], None],
    *,
    expect_history: bool = False,
    clock: Clock = SYSTEM_CLOCK,
) -> PublishedState:
    """Check the history of ``store`` against ``guard``, run ``build``, and write what is published now.

    ``expect_history`` refuses to take a missing file for a first publication. Raises
    :class:`InfrastructureError` where history would shrink; then nothing was built. What ``store`` leaves out
    counts as it did before.
    """
    before = read_state(guard)
    retire_replaced(store)
    made = tables_from_journals(store, before.made if before else {}, clock)
    after = replace(state_of(store), made=made)
    if before is not None and store.left_out:
        kept = {run: rows for run, rows in before.runs.items() if run in store.left_out}
        dates = [date for date in (after.oldest, before.oldest) if date is not None]
        after = replace(after, runs={**after.runs, **kept}, oldest=min(dates, default=None))
    if before is None and expect_history:
        raise DataFileError(
            str(guard),
            "the history file is missing",
            hint="restore the file; for the first publication, leave out --expect-history",
        )
    if before is not None:
        check_no_shrinking(before, after, set(tombstones(store)))
    build()
    write_state(guard, after)
    return after


def forget(store: Store, retention: Retention, clock: Clock = SYSTEM_CLOCK) -> dict[str, int]:
    """Delete what ``retention`` no longer keeps; returns how many of each kind. Rows are never touched."""
    import shutil

    now, gone = clock.now(), {"samples": 0, "superseded": 0, "rejected": 0}
    with storage_errors(store.path):
        if retention.samples_days is not None:
            before = now - retention.samples_days * DAY_S
            for run in store.published():
                file = store.table_path("samples", run)
                if file.is_file() and store.info(run).created_at < before:
                    file.unlink()
                    gone["samples"] += 1
            gone["samples"] += store.compacted.forget_samples(utc(before).strftime("%Y-%m"))
        if retention.superseded_days is not None:
            for folder in _older(store.path / SUPERSEDED, now - retention.superseded_days * DAY_S):
                shutil.rmtree(folder)
                gone["superseded"] += 1
        if retention.rejected_days is not None:
            for file in _older(store.path / REJECTED, now - retention.rejected_days * DAY_S):
                file.unlink()
                gone["rejected"] += 1
    return gone


def _older(folder: Path, before: float) -> list[Path]:
    """Entries that were received before ``before``, by what they say: a checkout gives new file times."""
    from datetime import datetime

    found = []
    for path in sorted(folder.glob("[!.]*")):
        file = path / "provenance.json" if path.is_dir() else path
        data: Any = json.loads(file.read_bytes())
        if datetime.fromisoformat(data.get("received_at") or data["at"]).timestamp() < before:
            found.append(path)
    return found


def _digest_of(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _digest(data: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()


def _listed(names: list[str]) -> str:
    return ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
