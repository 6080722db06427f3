"""Taking a run out of the tables: what it was stays known, so that history shrinks only with a reason."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from torchgauge.clock import SYSTEM_CLOCK, Clock, utc
from torchgauge.errors import UsageError
from torchgauge.results.atomic_file import fsync_path, storage_errors, write_atomically
from torchgauge.results.origin import PROVENANCE, read_provenance
from torchgauge.results.store import Store
from torchgauge.results.tables import TABLES
from torchgauge.workflows.ingest.provenance import (
    SUPERSEDED,
    TOMBSTONES,
    HeldRun,
    held_runs,
)
from torchgauge.workflows.plain_text import is_plain

LONGEST_REASON = 500


def remove_run(store: Store, run_id: str, reason: str, clock: Clock = SYSTEM_CLOCK) -> Path:
    """Take ``run_id`` out of ``store`` and leave a tombstone, whose path is returned.

    Raises :class:`UsageError` without a reason, and :class:`UnknownNameError` for a run that is not there.
    """
    reason = reason.strip()
    if not reason or len(reason) > LONGEST_REASON or not is_plain(reason):
        raise UsageError(
            "--reason must be one line of plain text", hint='--reason "withdrawn by the contributor: ..."'
        )
    folder = store.run(run_id)
    path = _replace_by_tombstone(store, run_id, reason, clock)
    with storage_errors(store.path):
        shutil.rmtree(folder.path)
    return path


def retire(store: Store, run_id: str, by: str, clock: Clock = SYSTEM_CLOCK) -> None:
    """Take ``run_id``, which the run ``by`` replaces, out of the tables; its files stay as evidence."""
    folder = store.run(run_id)
    target = store.path / SUPERSEDED / run_id
    _replace_by_tombstone(store, run_id, f"superseded by {by}", clock, superseded_by=by)
    said = {**read_provenance(store, run_id), "superseded_by": by}
    write_atomically(folder.path / PROVENANCE, json_bytes(said))
    with storage_errors(store.path):
        if target.exists():
            shutil.rmtree(folder.path)
            return
        target.parent.mkdir(exist_ok=True)
        folder.path.rename(target)
        fsync_path(target.parent)


def retire_replaced(store: Store) -> list[HeldRun]:
    """Take every run out of the tables that another run replaces: a kill may have come between the two.

    Returns the runs of campaigns that stay.
    """
    held = {run.run_id: run for run in held_runs(store)}
    gone = set()
    for run in held.values():
        for earlier in (held[name] for name in run.supersedes if name in held):
            if (earlier.campaign_id, earlier.pool) == (run.campaign_id, run.pool):
                retire_earlier(store, [earlier.run_id], run.run_id)
                gone.add(earlier.run_id)
    return [run for name, run in held.items() if name not in gone]


def retire_earlier(store: Store, runs: Iterable[str], by: str, clock: Clock = SYSTEM_CLOCK) -> None:
    """Take those of ``runs``, which the run ``by`` replaces, out of the tables that are in them still."""
    for earlier in runs:
        if (store.path / "runs" / earlier).is_dir():
            retire(store, earlier, by, clock)


def tombstone(store: Store, run_id: str) -> dict[str, Any] | None:
    """Why ``run_id`` is no longer in the tables of ``store``; None where nobody took it out."""
    path = store.path / TOMBSTONES / f"{run_id}.json"
    return json.loads(path.read_bytes()) if path.is_file() else None


def tombstones(store: Store) -> dict[str, dict[str, Any]]:
    """Every removal of ``store`` by run id."""
    found = {}
    for path in sorted((store.path / TOMBSTONES).glob("[!.]*.json")):
        data = json.loads(path.read_bytes())
        found[str(data["run_id"])] = data
    return found


def _replace_by_tombstone(store: Store, run_id: str, reason: str, clock: Clock, **more: str) -> Path:
    """Write the tombstone of ``run_id``, then take its tables away."""
    info = store.info(run_id)
    stone: dict[str, Any] = {
        "run_id": run_id,
        "reason": reason,
        **more,
        "removed_at": utc(clock.now()).isoformat(timespec="seconds"),
        "created_at": info.created_at,
        "rows": info.recorded,
        "provenance": read_provenance(store, run_id),
    }
    path = store.path / TOMBSTONES / f"{run_id}.json"
    with storage_errors(path):
        path.parent.mkdir(exist_ok=True)
    write_atomically(path, json_bytes(stone))
    with storage_errors(store.path):
        # `results` first: what readers believe goes before what they would look for
        for table in sorted(TABLES, key=lambda name: name != "results"):
            store.table_path(table, run_id).unlink(missing_ok=True)
    store.compacted.withdraw(run_id)
    return path


def json_bytes(data: Any) -> bytes:
    """``data`` as the text of a file that people may read."""
    return json.dumps(data, indent=1).encode() + b"\n"
