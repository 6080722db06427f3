"""The append-only journal of one run: what was acknowledged is there, once, whatever kills the writer.

Why our own: a run must lose nothing to a SIGKILL or a full disk and cost less than a case's overhead. The
file is one line of JSON per record, with a running number and a CRC-32, so that a person can read it and
damage shows. Standard library only: the journal opens before pandas or pyarrow are worth their import.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, final

from torchgauge.errors import DamagedJournalError, InfrastructureError, UsageError
from torchgauge.records import Result
from torchgauge.results.atomic_file import fsync_path
from torchgauge.results.held import is_held
from torchgauge.results.journal_record import (
    PAYLOADS,
    EarlierAttempt,
    End,
    JournalRecord,
    Kind,
    Loads,
    Note,
    Part,
    PlanStamp,
    RunState,
    decode_line,
    encode_line,
)
from torchgauge.results.schema_version import check_version

__all__ = [
    "EarlierAttempt",
    "End",
    "Journal",
    "JournalRecord",
    "Kind",
    "Note",
    "Part",
    "PlanStamp",
    "RunState",
    "is_being_written",
    "read",
    "read_with_ends",
    "results",
]


@final
class Journal:
    """The one writer of a run's journal; a context manager that releases the lock at its end.

    Not for use across a fork: the child would share the lock. Appending from several threads is safe.
    """

    def __init__(self, path: Path, descriptor: int) -> None:
        """Use :meth:`open`; ``descriptor`` is locked already."""
        self.path = path
        self.set_aside = 0
        self._descriptor = descriptor
        self._mutex = threading.Lock()
        self._length = 0
        self._next = 1
        self._dirty = False
        self._done: dict[str, None] = {}
        self._state: RunState | None = None

    @classmethod
    def open(cls, path: Path | str) -> Journal:
        """Create the journal at ``path``, or recover it and continue.

        A torn tail is moved to ``journal.torn`` and ``set_aside`` counts its bytes. Raises
        :class:`UsageError` where another process writes it, :class:`DamagedJournalError` where a line
        before the tail is damaged, :class:`InfrastructureError` where the disk refuses.
        """
        path = Path(path)
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise InfrastructureError(
                f"the journal {path} cannot be opened: {error.strerror}",
                hint="check that its folder exists and may be written",
            ) from error
        journal = cls(path, descriptor)
        try:
            _lock(path, descriptor)
            journal._recover()
        except BaseException:
            journal.close()
            raise
        return journal

    @classmethod
    def open_stamped(cls, path: Path | str, stamp: PlanStamp) -> Journal:
        """The journal at ``path``, which belongs to the plan of ``stamp``; raises as the two steps do."""
        journal = cls.open(path)
        try:
            journal.stamp(stamp)
        except BaseException:
            journal.close()
            raise
        return journal

    def append(self, kind: Kind, records: Sequence[Any]) -> None:
        """Write ``records`` in one go and return when they are durable.

        Raises ``ValueError``, with nothing written, for a second result of a case, a non-finite number, a
        record that is not of ``kind`` or a journal whose run is complete; :class:`InfrastructureError`
        where the disk refuses, after which the journal is as long as before and may be appended to again.
        """
        with self._mutex:
            keys = self._check(kind, records)
            lines = [encode_line(self._next + i, kind, record) for i, record in enumerate(records)]
            if not lines:
                return
            self._write(b"".join(lines))
            self._next += len(lines)
            self._done.update(dict.fromkeys(keys))
            self._state = records[-1].state if kind is Kind.END else None

    def stamp(self, expected: PlanStamp) -> None:
        """Say which plan a new journal belongs to; raises :class:`DamagedJournalError` if to another one."""
        first = next(read(self.path), None)
        if first is None:
            self.append(Kind.PLAN, [expected])
        elif first.kind is not Kind.PLAN or first.payload() != expected:
            raise DamagedJournalError(
                f"{self.path}:1: the journal does not belong to the plan in its folder",
                hint="restore plan.json and journal.jsonl from the same run",
            )

    @property
    def done(self) -> tuple[str, ...]:
        """Keys of the cases that have their result, in the order in which they were appended."""
        return tuple(self._done)

    @property
    def state(self) -> RunState:
        """``running`` until an end is appended; a resumed run is running again."""
        return self._state or RunState.RUNNING

    def results(self) -> Iterator[Result]:
        """Every result so far, one per case, read from the file."""
        return results(self.path)

    def attempts(self) -> Iterator[EarlierAttempt]:
        """Every earlier attempt at a case that has no result yet, in order."""
        for record in read(self.path):
            if record.kind is Kind.ATTEMPT and record.case_key not in self._done:
                yield record.payload()

    def close(self) -> None:
        """Release the lock and the file; a second call does nothing."""
        if self._descriptor >= 0:
            if self._dirty:
                with suppress(InfrastructureError):
                    self._roll_back()
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _check(self, kind: Kind, records: Sequence[Any]) -> list[str]:
        if self._descriptor < 0:
            raise ValueError(f"{self.path} is closed")
        if self._state is RunState.COMPLETE:
            raise ValueError(f"{self.path}: the run is complete: its journal must not be extended")
        wrong = next((r for r in records if not isinstance(r, PAYLOADS[kind])), None)
        if wrong is not None:
            raise ValueError(f"a {kind.value} line cannot hold a {type(wrong).__name__}")
        keys: list[str] = []
        if kind is Kind.RESULT:
            for record in records:
                key = record.case.key
                if key in self._done or key in keys:
                    raise ValueError(f"{self.path}: {record.case_id} already has a result ({key})")
                keys.append(key)
        return keys

    def _write(self, data: bytes) -> None:
        if self._dirty:
            self._roll_back()
        self._dirty = True
        try:
            _write_all(self._descriptor, data)
            os.fsync(self._descriptor)
        except OSError as error:
            self._roll_back()
            raise InfrastructureError(
                f"the journal {self.path} cannot be written: {error.strerror or error}",
                hint="free disk space or fix the disk, then resume the run; saved rows are intact",
            ) from error
        self._length += len(data)
        self._dirty = False

    def _roll_back(self) -> None:
        """Cut what was not acknowledged; stays dirty, and is tried again, where even that fails."""
        try:
            os.ftruncate(self._descriptor, self._length)
            os.fsync(self._descriptor)
        except OSError as error:
            raise InfrastructureError(
                f"the journal {self.path} can be neither written nor cut back: {error.strerror or error}",
                hint="free disk space or fix the disk, then resume the run; saved rows are intact",
            ) from error
        self._dirty = False

    def _recover(self) -> None:
        try:
            with self.path.open("rb") as stream:
                for record, end in _records(stream, self.path):
                    self._length, self._next = end, record.n + 1
                    if record.kind is Kind.RESULT:
                        self._done[record.case_key] = None
                    self._state = record.payload().state if record.kind is Kind.END else None
            torn = os.fstat(self._descriptor).st_size - self._length
            if torn:
                self._keep_aside(torn)
                self.set_aside = torn
                self._roll_back()
            fsync_path(self.path.parent)
        except OSError as error:
            raise InfrastructureError(
                f"the journal {self.path} cannot be recovered: {error.strerror or error}",
                hint="free disk space or fix the disk, then repeat; nothing was lost",
            ) from error

    def _keep_aside(self, count: int) -> None:
        torn = os.pread(self._descriptor, count, self._length)
        aside = os.open(self.path.with_suffix(".torn"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            _write_all(aside, torn if torn.endswith(b"\n") else torn + b"\n")
            os.fsync(aside)
        finally:
            os.close(aside)


def read(path: Path | str, loads: Loads = json.loads) -> Iterator[JournalRecord]:
    """The records of the journal at ``path``, also while a run writes it; a torn tail is left out.

    ``loads`` makes values of their JSON.

    Raises :class:`UsageError` where there is none and :class:`DamagedJournalError` for damage before the
    tail.
    """
    for record, _ in read_with_ends(path, loads=loads):
        yield record


def read_with_ends(
    path: Path | str, end: int = 0, n: int = 0, loads: Loads = json.loads
) -> Iterator[tuple[JournalRecord, int]]:
    """What :func:`read` yields, each record with the offset of its end in bytes; raises as it does.

    It goes on behind record ``n``, which ends at ``end``.
    """
    path = Path(path)
    try:
        stream = path.open("rb")
    except FileNotFoundError as error:
        raise UsageError(f"the journal {path} does not exist", hint="torchgauge results list") from error
    with stream:
        stream.seek(end)
        yield from _records(stream, path, (end, n), loads)


def results(path: Path | str) -> Iterator[Result]:
    """Yield the results in the journal at ``path``, the first one of each case.

    Raises as :func:`read`, and :class:`OtherSchemaError` for a journal of another schema version.
    """
    seen: set[str] = set()
    for record in read(path):
        if record.kind is Kind.PLAN:
            check_version(record.data.get("schema_version"), str(path))
        if record.kind is Kind.RESULT and record.case_key not in seen:
            seen.add(record.case_key)
            result: Result = record.payload()
            yield result


def is_being_written(path: Path | str) -> bool:
    """Whether a living process holds the journal at ``path`` open for appending."""
    try:
        return is_held(Path(path))
    except FileNotFoundError:
        return False


def _records(
    stream: BinaryIO, path: Path, behind: tuple[int, int] = (0, 0), loads: Loads = json.loads
) -> Iterator[tuple[JournalRecord, int]]:
    """Good records with the offset of their end, until the torn tail, if there is one.

    ``stream`` stands ``behind`` the byte at which a record ends and that record's number.
    """
    end, n = behind
    for number, line in enumerate(stream, start=n + 1):
        record = decode_line(line, path, loads)
        if record is None:
            if any(decode_line(later, path) for later in stream):
                raise _damage(path, number, "its checksum is wrong, but later lines are intact")
            return
        if record.n != number:
            raise _damage(path, number, f"field n is {record.n} instead of {number}")
        end += len(line)
        yield record, end


def _damage(path: Path, line: int, problem: str) -> DamagedJournalError:
    return DamagedJournalError(
        f"{path}:{line}: the line is damaged: {problem}",
        hint="restore the file from a copy, or keep the lines before the damage and resume: "
        f"cp {path.name} {path.name}.damaged && head -n {line - 1} {path.name}.damaged > {path.name}",
    )


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        written = os.write(descriptor, view)
        if written == 0:
            raise OSError(errno.EIO, "nothing was written")
        view = view[written:]


def _lock(path: Path, descriptor: int) -> None:
    """Lock for writing; waits a moment, because :func:`is_being_written` locks for an instant."""
    for attempt in range(10):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(0.01 * attempt)
        else:
            return
    raise UsageError(
        f"{path} is being written by another process",
        hint="wait for that run to end, or stop it, before resuming it",
    )
