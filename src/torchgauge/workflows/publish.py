"""What must hold before and after a site is published: history never shrinks without a reason.

The published state is a small file beside the history: which runs there were, with how many rows, and the
oldest date. It carries a hash of itself, so that a file that was cut off is no shorter history but none.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torchgauge.clock import DAY_S, SYSTEM_CLOCK, Clock, utc
from torchgauge.counted import counted
from torchgauge.errors import DataFileError, InfrastructureError
from torchgauge.records import to_plain
from torchgauge.results.atomic_file import storage_errors, write_atomically
from torchgauge.results.comparing.comparison_store import comparison_ids
from torchgauge.results.dataset import row_count
from torchgauge.results.json_file import as_record, read_object
from torchgauge.results.origin import read_provenance
from torchgauge.results.run_id import is_run_id
from torchgauge.results.store import Store
from torchgauge.workflows.ingest.provenance import REJECTED, SUPERSEDED
from torchgauge.workflows.ingest.removal import retire_replaced, tombstones
from torchgauge.workflows.plain_text import plain

STATE_SCHEMA = 1


@dataclass(frozen=True)
class PublishedState:
    """The history that a publication showed: rows by run; ``oldest`` is in seconds since the epoch (UTC)."""

    runs: dict[str, int]
    oldest: float | None
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
    hint = "restore it from the last commit of its branch; a publication without it could lose history"
    data = read_object(path, hint)
    said = data.pop("digest", None)
    state = as_record(PublishedState, data, path, hint)
    if said != _digest(data) or state.schema != STATE_SCHEMA:
        raise DataFileError(str(path), "the history file does not match its own digest", hint=hint)
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
        problems.append(f"the oldest run is of {after.oldest}, and was of {before.oldest}")
    if problems:
        raise InfrastructureError(
            f"publishing would shrink the history: {'; '.join(problems)}",
            hint="fetch the whole results branch; a run is removed by torchgauge results ingest --remove RUN",
        )


def check_whole(store: Store, found: PublishedState) -> None:
    """Raise :class:`InfrastructureError` where a run has fewer rows than the intake counted."""
    said = {run: read_provenance(store, run).get("rows") for run in store.run_ids()}
    fewer = sorted(
        run for run, rows in said.items() if isinstance(rows, int) and found.runs.get(run, 0) < rows
    )
    if fewer:
        raise InfrastructureError(
            f"{counted(len(fewer), 'run has', 'runs have')} fewer "
            f"rows in the tables than came in: {_listed(fewer)}",
            hint="restore their files in tables/ from the results branch, or collect the night again",
        )


def check_run_ids(store: Store, clock: Clock = SYSTEM_CLOCK) -> None:
    """Raise :class:`InfrastructureError` for a run of ``store`` whose name is none that torchgauge gives.

    A/B runs are runs too: their folders have pages.
    """
    now = clock.now()
    names = {*store.run_ids(), *store.published(), *comparison_ids(store)}
    foreign = sorted(plain(name) for name in names if not is_run_id(name, now))
    if foreign:
        raise InfrastructureError(
            f"{counted(len(foreign), 'run has', 'runs have')} names "
            f"that torchgauge does not give: {_listed(foreign)}",
            hint="order, files and links are made of these names: take such runs out of the store, or give"
            " them ids as 20261122T031500Z-1a2b3c4d",
        )


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
    :class:`InfrastructureError` where history would shrink or a run has a name that torchgauge does not give;
    then nothing was built.
    """
    before = read_state(guard)
    retire_replaced(store)
    check_run_ids(store, clock)
    after = state_of(store)
    check_whole(store, after)
    if before is None and expect_history:
        raise DataFileError(
            str(guard),
            "the history file is missing",
            hint="restore it; the first time, leave --expect-history out",
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


def _digest(data: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()


def _listed(names: list[str]) -> str:
    return ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
