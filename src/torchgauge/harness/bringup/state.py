"""What a bringup knows between two commands: ``bringup.json``, written anew after each step."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from torchgauge.errors import DataFileError, UsageError
from torchgauge.harness.bringup.part import SHARES_S, Part, PartRecord, PartState
from torchgauge.records import to_plain
from torchgauge.results.atomic_file import storage_errors, write_atomically
from torchgauge.results.held import held
from torchgauge.results.json_file import read_record
from torchgauge.results.run_id import is_run_id

STATE_FILE, STORE = "bringup.json", "store"
BRINGUP_SCHEMA = 1


@dataclass(frozen=True)
class Asked:
    """What a bringup is of: its device, the workers' interpreter and threads, and selectors; empty is all."""

    device: str
    python: str = ""
    parts: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()
    ops: tuple[str, ...] = ()
    suites: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    threads: int | None = None

    @property
    def words(self) -> tuple[str, ...]:
        """The options that ask for this."""
        lists = {
            "--parts": self.parts,
            "--checks": self.checks,
            "--ops": self.ops,
            "--suites": self.suites,
            "--models": self.models,
        }
        chosen = [word for name, found in lists.items() if found for word in (name, ",".join(found))]
        python = ("--python", self.python) if self.python else ()
        threads = ("--threads", str(self.threads)) if self.threads else ()
        return ("--device", self.device, *python, *threads, *chosen)


@dataclass(frozen=True)
class DeviceFacts:
    """What the probe says of the device and its torch; empty where it does not say."""

    presence: str = ""
    label: str = ""
    torch_type: str = ""
    count: int = 0
    model: str = ""
    provider: str = ""
    driver: str = ""
    torch: str = ""


@dataclass(frozen=True)
class Bringup:
    """The state of one bringup; ``created_at`` is in seconds since the epoch (UTC).

    ``spent_s`` are the seconds of all its commands, ``answered_s`` those after which the first ten questions
    had their answers (None before).
    """

    asked: Asked
    created_at: float
    facts: DeviceFacts = DeviceFacts()
    parts: tuple[PartRecord, ...] = tuple(PartRecord(part) for part in Part)
    spent_s: float = 0.0
    answered_s: float | None = None
    schema: int = BRINGUP_SCHEMA

    def of(self, part: Part) -> PartRecord:
        """The record of ``part``."""
        return next(each for each in self.parts if each.part is part)

    def having(self, record: PartRecord) -> Bringup:
        """The same with ``record`` in its place."""
        parts = tuple(record if each.part is record.part else each for each in self.parts)
        return replace(self, parts=parts)

    @property
    def first_ended(self) -> bool:
        """Whether every part of the first ten answers is done: one that was left out answers nothing."""
        return all(self.of(part).state is PartState.DONE for part in SHARES_S)


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """``folder``, made where it is missing, for this command alone.

    Why: two commands would write each other's state. The system lets go of it however the command dies.
    Raises :class:`UsageError` where another command has it or it is none of a bringup.
    """
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is not a folder", hint="--out NEW-FOLDER")
    with storage_errors(folder, "pass a writable folder with --out"):
        folder.mkdir(parents=True, exist_ok=True)
        mine = (folder / STATE_FILE).is_file() or not any(folder.iterdir())
    if not mine:
        raise UsageError(f"{folder} is not empty and contains no bringup", hint="--out NEW-FOLDER")

    def another() -> None:
        raise UsageError(f"another command uses {folder}", hint="wait until it ends, or use --out NEW-FOLDER")

    with held(folder, waits=another):
        yield


def begin(folder: Path, asked: Asked, now: float) -> Bringup:
    """The bringup in ``folder``, or a new one; raises :class:`UsageError` where it is one of something else.

    Raises :class:`DataFileError` for a state that cannot be read.
    """
    file = folder / STATE_FILE
    if not file.is_file():
        return Bringup(asked, now)
    found = read_record(Bringup, file, "pass a new folder with --out")
    if found.schema != BRINGUP_SCHEMA:
        raise UsageError(f"{file} has schema {found.schema}, not {BRINGUP_SCHEMA}", hint="--out NEW-FOLDER")
    runs = [each.run_id for each in found.parts if each.run_id]
    if [each.part for each in found.parts] != list(Part) or not all(map(is_run_id, runs)):
        raise DataFileError(str(file), "its parts are not those of a bringup", hint="--out NEW-FOLDER")
    if found.asked != asked:
        raise UsageError(
            f"{folder} contains a bringup with other options: {' '.join(found.asked.words)}",
            hint="repeat it with those options, or pass a new folder with --out",
        )
    return found


def save(folder: Path, state: Bringup) -> None:
    """Write ``state`` into ``folder``, durable on return."""
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(folder / STATE_FILE, json.dumps(to_plain(state), indent=1).encode() + b"\n")
