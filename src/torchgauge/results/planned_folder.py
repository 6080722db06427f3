"""The folder of what was planned before it ran: a plan, a journal and logs. Runs and A/B runs share it."""

from __future__ import annotations

import json
import re
import secrets
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torchgauge.errors import UsageError
from torchgauge.records import to_plain
from torchgauge.results.atomic_file import TEMPORARY_SUFFIX, fsync_path, storage_errors, write_atomically

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True)
class PlannedFolder:
    """A folder with a plan, a journal and logs, named after what it holds."""

    path: Path

    @property
    def run_id(self) -> str:
        """The id of the run, which is the folder's name."""
        return self.path.name

    @property
    def plan_path(self) -> Path:
        """Where the plan is."""
        return self.path / "plan.json"

    @property
    def journal_path(self) -> Path:
        """Where the journal is."""
        return self.path / "journal.jsonl"

    def foreign_part(self) -> tuple[Path, str] | None:
        """Return the first of folder, plan and journal that must not be read, and why; None without one."""
        for part in (self.path, self.plan_path, self.journal_path):
            if part.is_symlink():
                return part, "a symbolic link must not be in a run"
            if part != self.path and part.exists() and not part.is_file():
                return part, "not a regular file"
        return None

    @property
    def logs(self) -> Path:
        """The folder of the logs."""
        return self.path / "logs"


def write_plan(folder: PlannedFolder, plan: Any, kind: str) -> None:
    """Make ``folder`` with ``plan`` in it, durable on return.

    Raises :class:`UsageError` where it exists, and where its id is no file name.
    """
    name = str(plan.run_id)
    if not _ID.fullmatch(name):
        raise UsageError(f"the id {name!r} of a {kind} is not valid as a folder name", hint="plan again")
    aside = folder.path.with_name(f".{name}.{secrets.token_hex(4)}{TEMPORARY_SUFFIX}")
    with storage_errors(folder.path):
        (aside / "logs").mkdir(parents=True)
    try:
        text = json.dumps(to_plain(plan), indent=1, allow_nan=False)
        write_atomically(aside / "plan.json", text.encode())
        if folder.path.exists():
            where = folder.path.parent.parent
            raise UsageError(f"{kind} {name} exists in {where}", hint="resume it, or take a new id")
        with storage_errors(folder.path):
            aside.rename(folder.path)
            fsync_path(folder.path.parent)
    finally:
        shutil.rmtree(aside, ignore_errors=True)
