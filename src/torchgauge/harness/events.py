"""The file through which a worker speaks to its parent: one JSON line per event, and a cursor.

Why a file: whatever happens to the worker's process, what it had said stays readable; and a model that
closes or floods its standard output cannot touch it. The cursor is one mapped byte that names the case
whose steps run now, so that a crash in the middle of interleaved timing is charged to the right case.
"""

from __future__ import annotations

import json
import mmap
import os
import time
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Optional, cast

from torchgauge.harness.flight_records import EVENT as FLIGHT_RECORD
from torchgauge.harness.flight_records import FlightRecord
from torchgauge.processes.known_secrets import KnownSecrets, known_secrets
from torchgauge.records import (
    Calibration,
    Environment,
    Failure,
    Measurement,
    Outcome,
    Phase,
    Scalar,
    Status,
    from_plain,
    to_json,
    to_plain,
)

NOBODY = 255
"""Cursor value while no single case is in flight."""
TIMING_LOCK = "timing_lock"
"""Kind of the event whose ``wanted`` says whether the worker wants the lock or gives it back."""
GROWTH = "growth"
"""Kind of the event whose ``text`` is a sentence about memory that the steps of a case keep."""
LONGEST_LINE = 16 << 20
MOST_BYTES = 2 * LONGEST_LINE
"""Bytes of one event, and of all events of one worker: what is parsed takes many times its size."""
MOST_EVENTS = 20_000
"""Events of one worker: a group of 254 cases, or a census of all models, writes half as many."""
Kinds = Mapping[str, Mapping[str, Any]]
"""Kinds of messages by name: all fields of one, with their types; a name with ? may be missing."""
_EVENT: Mapping[str, Any] = {"t": float}
_EVENTS: Kinds = {
    "phase": {**_EVENT, "phase": Phase, "case": Optional[str]},
    "stage": {**_EVENT, "case": str, "stage": str},
    GROWTH: {**_EVENT, "case": str, "text": str},
    "outcome": {**_EVENT, "outcome": Outcome},
    "no_device": {**_EVENT, "failure": Failure},
    "environment": {**_EVENT, "environment": Environment, "notes": tuple[str, ...]},
    "calibration": {**_EVENT, "calibration": Calibration},
    "fresh": {
        **_EVENT,
        "case": str,
        "measurements": tuple[Measurement, ...],
        "degraded": tuple[str, ...],
        "facts": dict,
    },
    TIMING_LOCK: {**_EVENT, "wanted": bool},
    FLIGHT_RECORD: {**_EVENT, "record": FlightRecord},
}


class EventWriter:
    """Worker side: appends whole lines with single writes to the files that :class:`EventReader` created."""

    def __init__(self, path: str, cursor: str) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_APPEND)
        fd = os.open(cursor, os.O_RDWR)
        os.write(fd, bytes([NOBODY]))  # where the disk is full an error; a hole would be SIGBUS later
        self._cursor = mmap.mmap(fd, 1)
        os.close(fd)

    def emit(self, kind: str, **payload: Any) -> None:
        """Append one event; raises ``ValueError`` on a non-finite number."""
        line = to_json({"ev": kind, "t": time.time(), **{k: to_plain(v) for k, v in payload.items()}})
        data = (line + "\n").encode()
        while data:
            data = data[os.write(self._fd, data) :]

    def phase(self, phase: Phase, case: str | None = None) -> None:
        """Say that ``case`` (or, with None, every unfinished case of the group) entered ``phase``."""
        self.emit("phase", phase=phase, case=case)

    def stage(self, case: str, stage: str) -> None:
        """Say which ``stage`` of a backend's work for ``case`` comes next."""
        self.emit("stage", case=case, stage=stage)

    def outcome(self, outcome: Outcome) -> None:
        """Say how a case ended."""
        self.emit("outcome", outcome=outcome)

    def point(self, index: int) -> None:
        """Set the cursor to the case at ``index`` of the group, or to :data:`NOBODY`."""
        self._cursor[0] = index


class EventReader:
    """Parent side: creates the files, reads whole lines as they appear and leaves a torn last line alone.

    It removes secrets, because the parent uses the events from here on. A line that is not an event ends the
    reading, and ``problem`` is the reason. The files are read by the descriptors that created them, whatever
    lies at their paths later.
    """

    def __init__(
        self, path: Path, cursor: Path | None = None, cases: Collection[str] = (), kinds: Kinds = _EVENTS
    ) -> None:
        """Create the files; ``cursor`` is None for a child without one, and events name only ``cases``.

        Raises ``OSError`` where a file exists already: this worker has not written it.
        """
        self._fd, self._cursor = create(path), -1 if cursor is None else create(cursor)
        self._cases, self._kinds = (None, *cases), kinds
        self._rest, self._taken, self._count, self.problem = b"", 0, 0, ""

    def read(self, most: int = MOST_BYTES) -> list[dict[str, Any]]:
        """Events in the next ``most`` bytes at most, up to the first line that is not an event."""
        events: list[dict[str, Any]] = []
        if self.problem or not (data := os.read(self._fd, most)):
            return events
        self._taken += len(data)
        *lines, self._rest = (self._rest + data).split(b"\n")
        self._count += len(lines)
        if len(self._rest) > LONGEST_LINE or self._taken >= MOST_BYTES:
            self.problem = (
                f"the model's process wrote {MOST_BYTES >> 20} MiB or more of events, "
                f"or an event of more than {LONGEST_LINE >> 20} MiB"
            )
        elif self._count > MOST_EVENTS:
            self.problem = f"the model's process wrote more than {MOST_EVENTS:,} events"
        else:
            known = known_secrets()  # a file is read for them
            try:
                events.extend(self._event(line, known) for line in lines)
            except ValueError as error:
                self.problem = f"the model's process wrote a line that is not an event: {error}"
        return events

    def cursor(self) -> int:
        """Index of the case whose steps ran last, or :data:`NOBODY`."""
        data = b"" if self._cursor < 0 else os.pread(self._cursor, 1, 0)
        return data[0] if data else NOBODY

    def close(self) -> None:
        """Close the files."""
        for fd in filter(lambda fd: fd >= 0, (self._fd, self._cursor)):
            os.close(fd)

    def _event(self, line: bytes, known: KnownSecrets) -> dict[str, Any]:
        event = message_in(line, self._kinds, known)
        subject = event.get("outcome", event)
        if subject.get("status") == Status.NOT_RUN.value:
            raise ValueError("a started case cannot have status not_run")
        case = subject.get("case_key", subject.get("case"))
        if case not in self._cases:
            raise ValueError(f"{case!r} is a case of another group"[:200])
        return event


def create(path: Path) -> int:
    """Create the file at ``path`` and return its descriptor; raises ``OSError`` where anything is there."""
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)


def message_in(line: bytes, kinds: Kinds, known: KnownSecrets | None = None) -> dict[str, Any]:
    """Return the message that ``line`` holds, without the secrets that are ``known`` (default: to us).

    Raises ``ValueError``, in one line, where it is of none of ``kinds`` or has not the fields of its kind.
    """
    try:
        message = (known or known_secrets()).hide_in(json.loads(line, parse_int=_integer))
        _check(message, kinds)
        json.dumps(message, allow_nan=False)
    except (ValueError, TypeError, AttributeError, LookupError, OverflowError, RecursionError) as error:
        raise ValueError(str(error)[:200]) from error
    return cast(dict[str, Any], message)


def _check(message: Any, kinds: Kinds) -> None:
    kind = message.get("ev") if isinstance(message, dict) else None
    if not isinstance(kind, str) or kind not in kinds:
        raise ValueError(f"{kind!r} is not one of {', '.join(kinds)}")
    fields = {"ev": str, **kinds[kind]}
    types = {name.rstrip("?"): type_ for name, type_ in fields.items()}
    for name in sorted(message.keys() ^ types.keys()):
        if name not in types or name in fields:
            raise ValueError(f"{'missing' if name in types else 'unknown'} field {name!r}")
    for name, value in message.items():
        from_plain(types[name], value, name)
    from_plain(tuple[tuple[str, Scalar], ...], list(message.get("facts", {}).items()), "facts")


def _integer(text: str) -> int:
    if len(text) > 20 or (value := int(text)).bit_length() > 63:
        raise ValueError(f"an integer of {len(text)} digits, which no table can hold")
    return value
