"""What an interpreter's torchao offers, asked of a child once and then kept. Parent side.

Why a child and no data file: they differ from version to version, and their classes are only seen by import.
The answer depends on the files of torch and torchao only, so it is kept by their versions and places.
"""

from __future__ import annotations

import json
import subprocess
import sys
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

import msgspec

from torchgauge.errors import InfrastructureError
from torchgauge.processes.kept_process import run
from torchgauge.processes.passed_variables import passed
from torchgauge.records import digest
from torchgauge.suites.ops.catalogue import ask, cache_folder, keep

CHILD = Path(__file__).with_name("offered.py")
"""Imports torch, torchao and the standard library only, so that any interpreter can run it."""
STABLE = "stable"
"""What stands after the name of a backend for all that it offers but prototypes; ``*`` for those too."""
STANDS_FOR_ALL = {"torchao": "int8-weight-only", "optim": "adamw-8bit", "float8": "tensorwise"}
"""By backend: where torchao is missing, nobody can say what it offers, and this one says what to install."""
TIMEOUT_S = 60.0
_WHERE = """
import importlib.util, json, os
from importlib import metadata
found = []
for name in ("torch", "torchao"):
    spec = importlib.util.find_spec(name)
    stamp = os.stat(spec.origin).st_mtime_ns if spec and spec.origin else 0
    found.append([name, spec.origin if spec else "", metadata.version(name) if spec else "", stamp])
print(json.dumps(found))
"""


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
    try:
        done = run([path, "-c", _WHERE], passed(), timeout=TIMEOUT_S)
        done.check_returncode()
        places = json.loads(done.stdout.splitlines()[-1])
    except (OSError, subprocess.SubprocessError, ValueError, IndexError) as error:
        raise InfrastructureError(
            f"{path} does not say where its torchao is: {error}", hint="torchgauge doctor looks closer"
        ) from error
    missing = next((name for name, file, *_ in places if not file), "")
    if missing:
        return Offers("", missing, ())
    key = digest([path, places, CHILD.read_text(encoding="utf-8")])
    file = cache_folder() / f"torchao-{places[-1][2]}-{key}.json"
    try:
        return msgspec.json.decode(file.read_bytes(), type=Offers)
    except (OSError, msgspec.MsgspecError):
        pass
    try:
        found = ask(path, CHILD, Offers, "torchao")
    except InfrastructureError:  # it is there and broken: its one row says how, and no other suite is lost
        return Offers(places[-1][2], "", ())
    if not found.missing:
        keep(file, found)
    return found
