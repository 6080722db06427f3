"""Which adapters were seen to work on real hardware, where and when: data, so that nobody has to guess.

Parent side.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated

import msgspec

from torchgauge.errors import DataFileError

DATA = Path(__file__).with_name("verified.yaml")
DAY = r"^(never|\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01]))$"


class VerifiedFields(msgspec.Struct, forbid_unknown_fields=True):
    """One entry of the file."""

    date: Annotated[str, msgspec.Meta(pattern=DAY)]
    machine: str = ""
    note: str = ""


class VerifiedFile(msgspec.Struct, forbid_unknown_fields=True):
    """The file."""

    devices: dict[str, VerifiedFields]


@dataclass(frozen=True)
class Verified:
    """An adapter's last run on hardware; ``date`` is a day, ``never``, or "" where nobody has said."""

    date: str = ""
    machine: str = ""
    note: str = ""

    @property
    def text(self) -> str:
        """As ``torchgauge devices`` and the adapter's page say it."""
        if not self.date:
            return "not stated"
        where = f", {self.machine}" if self.machine else ""
        note = f" ({self.note})" if self.note else ""
        return f"{self.date}{where}{note}"


NOT_STATED = Verified()


def verified(name: str) -> Verified:
    """What is known of the device called ``name``; raises :class:`DataFileError` for a broken file."""
    return entries().get(name, NOT_STATED)


@cache
def entries() -> dict[str, Verified]:
    """Every entry of the file, by device."""
    return read(DATA)


def read(path: Path) -> dict[str, Verified]:
    """The entries of the file at ``path``; raises :class:`DataFileError`."""
    try:
        found = msgspec.yaml.decode(path.read_bytes(), type=VerifiedFile)
    except (msgspec.DecodeError, OSError) as error:
        raise DataFileError(str(path), str(error)) from error
    for name, entry in found.devices.items():
        if (entry.date == "never") == bool(entry.machine):
            raise DataFileError(
                str(path),
                "an entry with a date requires a machine; an entry with date `never` must not have one",
                field=f"devices.{name}",
            )
    return {name: Verified(entry.date, entry.machine, entry.note) for name, entry in found.devices.items()}
