"""A run that ended with rows that say nothing, opened again for their cases: the rows become attempts."""

from __future__ import annotations

import json
from collections.abc import Collection

from torchgauge.clock import SYSTEM_CLOCK
from torchgauge.counted import counted
from torchgauge.errors import UsageError
from torchgauge.records import Again, Status
from torchgauge.results.atomic_file import (
    fsync_path,
    publish,
    storage_errors,
    write_atomically,
    writing_aside,
)
from torchgauge.results.journal import Kind, Note, RunState, read
from torchgauge.results.journal_record import encode_line
from torchgauge.results.json_file import object_if_any
from torchgauge.results.seal import unseal
from torchgauge.results.store import RunFolder


def reopen(folder: RunFolder, statuses: Collection[Status]) -> None:
    """Let the run in ``folder`` go on with the cases whose rows have one of ``statuses``.

    The journal is written anew, its lines in their places; tables stand until the run is published again.
    Raises :class:`UsageError` where it has no such row, and what :meth:`RunFolder.open_journal` raises.
    """
    with folder.open_journal() as journal, writing_aside(journal.path) as aside:
        number = again = 0
        with storage_errors(journal.path), aside.open("wb") as new:
            for record in read(journal.path):
                number, kind, data = record.n, record.kind, record.data
                if kind is Kind.RESULT and data["status"] in statuses:
                    kind, data = Kind.ATTEMPT, {"again": Again.INFRASTRUCTURE, "result": data}
                    again += 1
                new.write(encode_line(number, kind, data))
            text = f"{counted(again, 'case is', 'cases are')} measured again"
            new.write(encode_line(number + 1, Kind.NOTE, Note(text, SYSTEM_CLOCK.now())))
        named = " or ".join(sorted(each.value for each in statuses))
        if not again:
            raise UsageError(
                f"run {folder.run_id} has no row with status {named}",
                hint=f"torchgauge results show {folder.run_id}",
            )
        with storage_errors(journal.path):
            fsync_path(aside)
            unseal(folder)
            if info := object_if_any(folder.info_path):
                info["state"] = RunState.INTERRUPTED.value
                write_atomically(folder.info_path, json.dumps(info, indent=1).encode() + b"\n")
            publish(aside, journal.path)
