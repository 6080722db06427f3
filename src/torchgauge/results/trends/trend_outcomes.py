"""What became of suspicions: one line of JSON for each confirmation, appended and never changed.

::

    STORE/trend/outcomes.jsonl

The last line on a change is the one that counts. A line that a kill left unfinished, without its last brace,
is passed over.
"""

from __future__ import annotations

import fcntl
import json
import os
from dataclasses import dataclass
from enum import Enum

from torchgauge.errors import DamagedJournalError
from torchgauge.records import RecordError, from_plain
from torchgauge.records.codec import to_json
from torchgauge.results.atomic_file import fsync_path, storage_errors
from torchgauge.results.store import Store


class TrendState(str, Enum):
    """Where a suspicion stands."""

    SUSPECTED = "suspected"
    CONFIRMED = "confirmed"
    NOT_REPRODUCED = "not_reproduced"
    ENVIRONMENT = "environment"
    NOT_CONFIRMABLE = "not_confirmable"

    @property
    def settled(self) -> bool:
        """Whether the change of level is real, so that the baseline begins anew behind it."""
        return self in (TrendState.CONFIRMED, TrendState.ENVIRONMENT)

    @property
    def open(self) -> bool:
        """Whether no measurement has answered yet; what could not be confirmed may be another night."""
        return self in (TrendState.SUSPECTED, TrendState.NOT_CONFIRMABLE)

    @property
    def decided(self) -> bool:
        """Whether a measurement has answered."""
        return self.settled or self.closed

    @property
    def closed(self) -> bool:
        """Whether a confirmation said that no build is to blame."""
        return self in (TrendState.NOT_REPRODUCED, TrendState.ENVIRONMENT)


@dataclass(frozen=True)
class TrendOutcome:
    """What a confirmation said of one change of one series.

    ``good_run`` and ``suspect_run`` are the runs on either side of the change. ``ratio`` with its interval is
    suspect over last good as re-measured, None where it was not. ``comparison`` is the A/B run, if there was
    one; ``decided_at`` is in seconds since the epoch.
    """

    case_key: str
    case_id: str
    metric: str
    machine: str
    good_run: str
    suspect_run: str
    state: TrendState
    reason: str
    decided_at: float
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    comparison: str = ""


def append_outcome(store: Store, outcome: TrendOutcome) -> None:
    """Add ``outcome``, durable on return; raises :class:`InfrastructureError` on a failing disk."""
    path = store.path / "trend" / "outcomes.jsonl"
    with storage_errors(path):
        path.parent.mkdir(exist_ok=True)
        with path.open("a+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            if file.seek(0, os.SEEK_END):
                file.seek(-1, os.SEEK_END)
                if file.read(1) != b"\n":
                    file.write(b"\n")
            file.write(to_json(outcome).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        fsync_path(path.parent)


def read_outcomes(store: Store) -> list[TrendOutcome]:
    """All outcomes in the order in which they were decided.

    Raises :class:`DamagedJournalError` for a whole line that is none: no answer is forgotten in silence.
    """
    path = store.path / "trend" / "outcomes.jsonl"
    if not path.is_file():
        return []
    found = []
    for number, line in enumerate(path.read_bytes().splitlines(), start=1):
        try:
            data = json.loads(line)
        except (ValueError, RecursionError) as error:
            if line.endswith(b"}"):
                hint = "restore the file from a copy: the damaged line contains an outcome"
                raise DamagedJournalError(f"{path}:{number}: {error}", hint=hint) from error
            continue  # what a kill left of a line
        try:
            found.append(from_plain(TrendOutcome, data))
        except RecordError as error:
            raise DamagedJournalError(f"{path}:{number}: {error}", hint="remove this line") from error
    return found
