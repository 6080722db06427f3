"""What an interpreter's torchao offers, asked of a child once and then kept. Parent side.

Why a child and no data file: they differ from version to version, and their classes are only seen by import.
The answer depends on the files of torch and torchao only, so it is kept by their versions and places.
"""

from __future__ import annotations

import sys
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

import msgspec

from torchgauge.errors import InfrastructureError
from torchgauge.suites.kept_answer import Question, places_of

CHILD = Path(__file__).with_name("offered.py")
"""Imports torch, torchao and the standard library only, so that any interpreter can run it."""
STABLE = "stable"
"""What stands after the name of a backend for all that it offers but prototypes; ``*`` for those too."""
STANDS_FOR_ALL = {"torchao": "int8-weight-only", "optim": "adamw-8bit", "float8": "tensorwise"}
"""By backend: where torchao is missing, nobody can say what it offers, and this one says what to install."""
PACKAGES = ("torch", "torchao")


class Word(msgspec.Struct, frozen=True):
    """What is offered to ``backend``; torchao promises nothing of a ``prototype``."""

    backend: str
    word: str
    prototype: bool = False

    @property
    def name(self) -> str:
        """That of the configuration."""
        return f"{self.backend}-{self.word}"


class Offers(msgspec.Struct, frozen=True):
    """What one torchao offers; ``missing`` is the package without which there is nothing."""

    version: str
    missing: str
    offers: tuple[Word, ...]

    def names(self, said: str) -> tuple[str, ...]:
        """What ``said`` stands for: ``torchao-stable``, a pattern with ``*``, or itself."""
        backend, _, word = said.partition("-")
        if backend not in STANDS_FOR_ALL or not (word == STABLE or "*" in word):
            return (said,)
        own = [each for each in self.offers if each.backend == backend]
        found = [
            each for each in own if (not each.prototype if word == STABLE else fnmatchcase(each.name, said))
        ]
        return tuple(each.name for each in found) or (f"{backend}-{STANDS_FOR_ALL[backend]}",)


@cache
def offers_of(python: str | None = None) -> Offers:
    """What the torchao of ``python`` (None: our own interpreter) offers; the first time takes seconds.

    Raises :class:`InfrastructureError` where it cannot be asked.
    """
    path = python or sys.executable
    places = places_of(path, *PACKAGES)
    missing = next((name for name, each in zip(PACKAGES, places, strict=True) if not each.file), "")
    if missing:
        return Offers("", missing, ())
    try:
        return Question(CHILD, Offers, "torchao").answered(path, places)
    except InfrastructureError:  # it is there and broken: its one row says how, and no other suite is lost
        return Offers(places[-1].version, "", ())
