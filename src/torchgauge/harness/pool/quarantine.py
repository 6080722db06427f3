"""Devices that no run is to use until somebody lifts it: a file for each, beside its lease.

A file lies where the locks lie, which all users and containers of the machine share, and goes as they do when
the machine restarts: most of what ails a device does, too.
"""

from __future__ import annotations

import json
import os
import shlex
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from torchgauge.clock import utc
from torchgauge.errors import InfrastructureError, UnknownNameError
from torchgauge.harness.pool.device_lease import lease_folder, shared_folder
from torchgauge.records import from_plain, to_json
from torchgauge.results.atomic_file import write_atomically
from torchgauge.results.hostile_text import first_line

SUFFIX = ".quarantine"
READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
"""Anybody may put a pipe or a link there, and it must stop nobody's run."""
MOST_BYTES = 10_000


@dataclass(frozen=True)
class Quarantine:
    """Why the device called ``device`` is out, since when (seconds since the epoch, UTC) and by which run.

    It is called as its lease is: by its plugin, and by what tells it from others of this machine.
    """

    device: str
    reason: str
    at: float
    run_id: str

    @property
    def lift(self) -> str:
        """What to type to have it back."""
        return f"torchgauge devices --release {shlex.quote(self.device)}"

    @property
    def words(self) -> str:
        """One line for people."""
        when = utc(self.at).strftime("%Y-%m-%d %H:%M UTC")
        return f"in quarantine since {when} ({self.run_id}): {self.reason}"


def keep(place: Path, found: Quarantine) -> str:
    """Put the device with the lease at ``place`` out; how to have it back, or why it could not be written."""
    path = _file_of(place)
    try:
        shared_folder(place.parent)
        path.unlink(missing_ok=True)  # another user's could not be replaced in a sticky folder
        write_atomically(path, to_json(found).encode())
        with suppress(OSError):
            lock = os.open(path, READ)
            os.fchmod(lock, 0o644)
            os.close(lock)
    except (OSError, InfrastructureError) as error:
        return f"the quarantine could not be written: {error}"
    return f"try: {found.lift}"


def read(place: Path) -> Quarantine | None:
    """The quarantine of the device whose lease lies at ``place``; None where it is in none."""
    path = _file_of(place)
    broken = Quarantine(place.name, f"{path} cannot be read", 0.0, "unknown")
    try:
        with os.fdopen(os.open(path, READ), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return broken
            found = from_plain(Quarantine, json.loads(file.read(MOST_BYTES)))
        utc(found.at)
        return replace(
            found,
            device=place.name,
            reason=first_line(found.reason, MOST_BYTES),
            run_id=first_line(found.run_id),
        )
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, OverflowError, RecursionError):
        return broken


def everything() -> Iterator[Quarantine]:
    """Every device of this machine that is in quarantine, by its name."""
    for path in sorted(lease_folder().glob(f"*{SUFFIX}")):
        found = read(path.with_name(path.name.removesuffix(SUFFIX)))
        if found is not None:
            yield found


def release(name: str) -> Quarantine:
    """Let the device called ``name`` be used again, and say why it was not.

    Raises :class:`UnknownNameError` for one that is in no quarantine, and :class:`InfrastructureError` where
    its file is another user's.
    """
    place = lease_folder() / (name if "." in name else f"{name}.0")
    found = read(place) if place.parent == lease_folder() else None
    if found is None:
        known = [each.device for each in everything()]
        hint = "torchgauge devices lists them" if known else "no device is in quarantine"
        raise UnknownNameError("device in quarantine", name, known, hint=hint)
    try:
        _file_of(place).unlink()
    except OSError as error:
        raise InfrastructureError(
            f"{_file_of(place)} cannot be removed: {error.strerror}",
            hint="ask the owner of the file, or root, to remove it",
        ) from error
    return found


def _file_of(place: Path) -> Path:
    return place.with_name(place.name + SUFFIX)
