"""The folder of a part of a run: the whole plan, and the journal and logs of some of its groups."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from torchgauge.errors import UsageError
from torchgauge.records import Environment, Plan, Result
from torchgauge.records.metrics import MIB
from torchgauge.results.atomic_file import storage_errors
from torchgauge.results.journal import JournalRecord, Kind, PlanStamp, RunState, is_being_written, read
from torchgauge.results.planned_folder import write_plan
from torchgauge.results.store import RunFolder

LONGEST_LOG = 64 * MIB
"""Bytes of a log that is taken; a worker's own are capped far below."""


@dataclass(frozen=True)
class PartFolder(RunFolder):
    """As a run's folder; it may have any name."""

    @property
    def run_id(self) -> str:
        """The id of the run, which its plan says."""
        return self.plan().run_id

    @classmethod
    def begin(cls, path: Path, plan: Plan) -> PartFolder:
        """The folder at ``path``, made with ``plan`` in it, or as it was left.

        Raises :class:`UsageError` where it holds something else.
        """
        folder = cls(path)
        if not path.exists():
            path.absolute().parent.mkdir(parents=True, exist_ok=True)
            write_plan(folder, plan, "part")
        elif not folder.plan_path.is_file():
            raise UsageError(f"{path} exists, but is not a part of a run", hint="pass a new folder")
        elif (found := folder.plan()).run_id != plan.run_id or found.digest != plan.digest:
            raise UsageError(
                f"{path} contains a part of run {found.run_id} from another plan", hint="pass another folder"
            )
        return folder

    def copy_logs(self, to: Path) -> list[str]:
        """Copy the logs that are new to the folder ``to``; what is none is named: a store is published."""
        with storage_errors(to):
            to.mkdir(parents=True, exist_ok=True)
            found = sorted(self.logs.iterdir()) if _is_real(self.logs, stat.S_ISDIR) else []
            logs = [each for each in found if _is_real(each, stat.S_ISREG)]
            for each in logs:
                _copy_new(each, to / each.name)
        return [each.name for each in found if each not in logs]


def log_below(result: Result, name: str) -> Result:
    """``result`` with its log in the folder ``name`` of the run's logs."""
    return replace(result, log=f"logs/{name}/{Path(result.log).name}" if result.log else "")


def _copy_new(log: Path, to: Path) -> None:
    """Copy ``log``, with its time, unless it was copied since it last changed."""
    found = log.stat()
    with suppress(FileNotFoundError):
        there = to.stat()
        if (there.st_size, there.st_mtime_ns) == (found.st_size, found.st_mtime_ns):
            return
    shutil.copyfile(log, to)
    os.utime(to, ns=(found.st_atime_ns, found.st_mtime_ns))


def _is_real(path: Path, kind: Callable[[int], bool]) -> bool:
    """Whether ``path`` itself is of ``kind``, no link to such a thing, and no longer than a log may be."""
    try:
        found = path.lstat()
    except OSError:
        return False
    return kind(found.st_mode) and found.st_size <= LONGEST_LOG


@dataclass
class PartSurvey:
    """What a journal of a part says of its groups, without its measurements.

    ``given`` are ids of groups, ``done`` keys of cases; ``ended`` is None where nothing says that it ended.
    ``moments`` are when its cases began by the clock of its machine, in seconds since the epoch.
    """

    folder: PartFolder
    plan: Plan
    node: str = ""
    given: set[str] = field(default_factory=set)
    done: set[str] = field(default_factory=set)
    ended: RunState | None = None
    moments: list[float] = field(default_factory=list)
    environments: list[Environment] = field(default_factory=list)

    @classmethod
    def read(cls, path: Path) -> PartSurvey:
        """The part in the folder ``path``.

        Raises :class:`UsageError` where it is none or is still being measured, and as :func:`read_plan` and
        :func:`torchgauge.results.journal.read` for what is damaged.
        """
        folder = PartFolder(path)
        if not folder.plan_path.is_file() or not folder.journal_path.is_file():
            raise UsageError(
                f"{path} is not a part of a run", hint="use a folder of `torchgauge worker --into`"
            )
        if is_being_written(folder.journal_path):
            raise UsageError(f"{path} is still being measured", hint="wait for the worker, or stop it")
        found = cls(folder, folder.plan())
        stamp, *_ = (*(record.payload() for record in read(folder.journal_path) if record.n == 1), None)
        if stamp != PlanStamp(found.plan.run_id, found.plan.digest):
            raise UsageError(
                f"{path}: journal.jsonl does not belong to plan.json",
                hint="restore plan.json and journal.jsonl from the same worker",
            )
        for record in found.records():
            found._note(record)
        return found

    def records(self) -> Iterator[JournalRecord]:
        """The lines of its journal, but for the first; a torn last one is left out."""
        return (record for record in read(self.folder.journal_path) if record.n > 1)

    def _note(self, record: JournalRecord) -> None:
        self.ended = record.payload().state if record.kind is Kind.END else None
        if record.kind is Kind.PART:
            part = record.payload()
            self.node = part.node
            self.given.update(part.groups)
        elif record.kind is Kind.ENVIRONMENT:
            self.environments.append(record.payload())
        elif record.kind is Kind.RESULT:
            self.done.add(record.case_key)
            if began := record.data["started_at"]:
                self.moments.append(began)
