"""Removing a run: what it was stays known, so that history shrinks only with a reason that can be read."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from torchgauge.clock import SYSTEM_CLOCK, Clock, utc
from torchgauge.errors import UsageError
from torchgauge.results.atomic_file import storage_errors, write_atomically
from torchgauge.results.store import Store
from torchgauge.results.tables import TABLES
from torchgauge.workflows.ingest.intake import TOMBSTONES, read_provenance
from torchgauge.workflows.plain_text import is_plain

LONGEST_REASON = 500


def remove_run(store: Store, run_id: str, reason: str, clock: Clock = SYSTEM_CLOCK) -> Path:
    """Take ``run_id`` out of ``store`` and leave a tombstone, whose path is returned.

    Raises :class:`UsageError` without a reason, and :class:`UnknownNameError` for a run that is not there.
    """
    reason = reason.strip()
    if not reason or len(reason) > LONGEST_REASON or not is_plain(reason):
        raise UsageError(
            "a removal needs a reason of one plain line", hint='--reason "withdrawn by the contributor: ..."'
        )
    folder = store.run(run_id)
    info = store.info(run_id)
    stone: dict[str, Any] = {
        "run_id": run_id,
        "reason": reason,
        "removed_at": utc(clock.now()).isoformat(timespec="seconds"),
        "created_at": info.created_at,
        "rows": info.recorded,
        "provenance": read_provenance(store, run_id),
    }
    path = store.path / TOMBSTONES / f"{run_id}.json"
    with storage_errors(path):
        path.parent.mkdir(exist_ok=True)
    write_atomically(path, json.dumps(stone, indent=1).encode() + b"\n")
    with storage_errors(store.path):
        # `results` first: what readers believe goes before what they would look for
        for table in sorted(TABLES, key=lambda name: name != "results"):
            store.table_path(table, run_id).unlink(missing_ok=True)
        shutil.rmtree(folder.path)
    return path


def tombstones(store: Store) -> dict[str, dict[str, Any]]:
    """Every removal of ``store`` by run id."""
    found = {}
    for path in sorted((store.path / TOMBSTONES).glob("[!.]*.json")):
        data = json.loads(path.read_bytes())
        found[str(data["run_id"])] = data
    return found
