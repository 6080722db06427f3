"""One line of a journal: what it may hold, and how damage to it shows.

A line reads ``{"n":7,"kind":"result","crc":"8f0c11d2","data":{...}}``. The CRC-32 covers number, kind and the
bytes of the payload as they stand, so that checking a line needs no parsing and parsing no trust.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from types import MappingProxyType
from typing import Any

from torchgauge.errors import UsageError
from torchgauge.records import (
    SCHEMA_VERSION,
    Again,
    Calibration,
    Environment,
    Result,
    from_plain,
    key_of_plain,
    to_json,
)
from torchgauge.records.comparison import Launch, MetricVerdict


class Kind(str, Enum):
    """What a line of the journal holds."""

    PLAN = "plan"
    ENVIRONMENT = "environment"
    CALIBRATION = "calibration"
    RESULT = "result"
    NOTE = "note"
    ATTEMPT = "attempt"
    LAUNCH = "launch"
    VERDICT = "verdict"
    PART = "part"
    END = "end"


class RunState(str, Enum):
    """Where a run stands; ``running`` is never written, it is a lock that is held."""

    RUNNING = "running"
    INTERRUPTED = "interrupted"
    OUT_OF_BUDGET = "out_of_budget"
    COMPLETE = "complete"


@dataclass(frozen=True)
class PlanStamp:
    """The first record of a journal: which plan it belongs to and which schema wrote it."""

    run_id: str
    digest: str
    schema_version: int = SCHEMA_VERSION


@dataclass(frozen=True)
class Note:
    """A fact about the run in words, such as "resumed"; ``at`` is in seconds since the epoch, UTC."""

    text: str
    at: float


@dataclass(frozen=True)
class EarlierAttempt:
    """The row that an attempt at a case would have been which was not the last, and why there was another."""

    again: Again
    result: Result


@dataclass(frozen=True)
class Part:
    """Ids of the groups of a plan that were given to one ``node``: what makes a journal that of a part."""

    node: str
    groups: tuple[str, ...]


@dataclass(frozen=True)
class End:
    """How the run ended; ``at`` is in seconds since the epoch, UTC."""

    state: RunState
    at: float

    def __post_init__(self) -> None:
        if self.state is RunState.RUNNING:
            raise ValueError("the final state of a run must not be `running`")


PAYLOADS: Mapping[Kind, type] = {
    Kind.PLAN: PlanStamp,
    Kind.ENVIRONMENT: Environment,
    Kind.CALIBRATION: Calibration,
    Kind.RESULT: Result,
    Kind.NOTE: Note,
    Kind.ATTEMPT: EarlierAttempt,
    Kind.LAUNCH: Launch,
    Kind.VERDICT: MetricVerdict,
    Kind.PART: Part,
    Kind.END: End,
}
"""The record that each kind of line holds."""


@dataclass(frozen=True)
class JournalRecord:
    """One line of a journal: its number, its kind and its payload as plain JSON values."""

    n: int
    kind: Kind
    data: dict[str, Any]

    def payload(self, known: Mapping[str, Any] = MappingProxyType({})) -> Any:
        """Return the payload as the record of its kind; fields that are ``known`` are not decoded."""
        return from_plain(PAYLOADS[self.kind], {**self.data, **known}, f"line {self.n}")

    @property
    def case_key(self) -> str:
        """The key of the case that a ``result`` or an ``attempt`` line is about."""
        data = self.data["result"] if self.kind is Kind.ATTEMPT else self.data
        return key_of_plain(data["case"])


_HEAD = re.compile(rb'\{"n":([1-9][0-9]*),"kind":"([a-z_]+)","crc":"([0-9a-f]{8})","data":')


def encode_line(n: int, kind: Kind, record: Any) -> bytes:
    """``record`` as line ``n`` of a journal; raises ``ValueError`` for a non-finite number."""
    try:
        body = to_json(record).encode()
    except ValueError as error:
        name = getattr(record, "case_id", kind.value)
        raise ValueError(
            f"{name}: a non-finite number; record a missing value as null with a reason ({error})"
        ) from error
    label = kind.value.encode()
    return b'{"n":%d,"kind":"%s","crc":"%08x","data":%s}\n' % (n, label, _crc(b"%d" % n, label, body), body)


def _crc(number: bytes, kind: bytes, body: bytes) -> int:
    return zlib.crc32(body, zlib.crc32(number + b":" + kind + b":"))


def split_line(line: bytes) -> tuple[int, bytes, bytes] | None:
    """Number, kind and payload of ``line`` (with its newline) as bytes, or None where it is damaged."""
    head = _HEAD.match(line)
    if head is None or not line.endswith(b"}\n"):
        return None
    number, kind, crc = head.groups()
    body = line[head.end() : -2]
    if int(crc, 16) != _crc(number, kind, body):
        return None
    return int(number), kind, body


Loads = Callable[[bytes], Any]
"""What makes values of JSON."""


def decode_line(line: bytes, path: Path, loads: Loads = json.loads) -> JournalRecord | None:
    """The record on ``line`` (with its newline), or None where it is damaged."""
    parts = split_line(line)
    if parts is None:
        return None
    number, kind, body = parts
    try:
        known = Kind(kind.decode())
    except ValueError:
        raise UsageError(
            f"{path}:{number}: unknown kind of line {kind.decode()!r}, written by a newer torchgauge",
            hint="upgrade torchgauge to read it",
        ) from None
    return JournalRecord(number, known, loads(body))
