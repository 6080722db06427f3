"""What the libraries of an interpreter offer: asked of a child process once, and then kept. Parent side.

Why a child: only by import is it seen, and only the wheel that will run knows it. The answer depends on files
of these libraries alone, so it is kept by their versions and places.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from torchgauge.errors import InfrastructureError
from torchgauge.processes.kept_process import run, scratch
from torchgauge.processes.known_secrets import known_secrets
from torchgauge.processes.passed_variables import passed
from torchgauge.processes.python_command import OFF_THE_PATH, python_command
from torchgauge.records import digest
from torchgauge.user_cache import user_cache

TIMEOUT_S = 300.0
Answer = TypeVar("Answer", bound=msgspec.Struct)
_WHERE = (
    OFF_THE_PATH
    + """
import importlib.util, json, sys
from importlib import metadata
found = []
for name in sys.argv[1:]:
    spec = importlib.util.find_spec(name)
    found.append([spec.origin, metadata.version(name)] if spec and spec.origin else ["", ""])
print(json.dumps(found))
"""
)


@dataclass(frozen=True)
class Place:
    """Where a package of an interpreter lies and which one it is; empty where it is missing."""

    file: str
    version: str


@dataclass(frozen=True)
class Question(Generic[Answer]):
    """What ``child``, a file that any interpreter can run, answers as ``kind``; ``what`` it is called by."""

    child: Path
    kind: type[Answer]
    what: str

    def answered(
        self, python: str, places: Sequence[Place], files: Sequence[Path] = (), cache: Path | None = None
    ) -> Answer:
        """The answer of ``python``, kept as long as ``places`` and what ``files`` there hold stay the same.

        One that says what is ``missing`` is not kept: it may be installed a minute later. Raises
        :class:`InfrastructureError`.
        """
        stamps = [_stamp(each) for each in files or [Path(each.file) for each in places]]
        known = [[each.file, each.version] for each in places]
        key = digest([python, known, stamps, self.child.read_text(encoding="utf-8")])
        name = f"{self.what.replace(' ', '-')}-{places[-1].version or 'none'}-{key}.json"
        file = (cache or user_cache()) / name
        try:
            return msgspec.json.decode(file.read_bytes(), type=self.kind)
        except (OSError, msgspec.MsgspecError):
            pass
        found = self.ask(python)
        if not getattr(found, "missing", ""):
            _keep(file, found)
        return found

    def ask(self, python: str) -> Answer:
        """What the child answers when ``python`` runs it; raises :class:`InfrastructureError`."""
        with scratch("asked") as folder:
            answer = folder / "answer.json"
            variables = {**passed(), "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}  # the answer needs no device
            try:
                command = python_command(python, self.child, str(answer))
                done = run(command, variables, timeout=TIMEOUT_S)
            except (OSError, subprocess.SubprocessError) as error:
                raise self._no_answer(python, str(error)) from error
            try:
                return msgspec.json.decode(answer.read_bytes(), type=self.kind)
            except (OSError, msgspec.MsgspecError) as error:
                last = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
                raise self._no_answer(python, last) from error

    def _no_answer(self, python: str, why: str) -> InfrastructureError:
        return InfrastructureError(
            f"the {self.what} of {python} cannot be read: {known_secrets().hide(why)[:300]}",
            hint=f"torchgauge doctor --python {python}",
        )


def places_of(python: str, *packages: str) -> tuple[Place, ...]:
    """Where ``packages`` of ``python`` lie, asked of it without an import of them.

    Raises :class:`InfrastructureError`.
    """
    try:
        done = run([python, "-c", _WHERE, *packages], passed(), timeout=TIMEOUT_S)
        done.check_returncode()
        return tuple(Place(file, version) for file, version in json.loads(done.stdout.splitlines()[-1]))
    except (OSError, subprocess.SubprocessError, ValueError, IndexError) as error:
        raise InfrastructureError(
            f"{python} does not report the location of {packages[-1]}: {error}",
            hint=f"torchgauge doctor --python {python}",
        ) from error


def _stamp(file: Path) -> list[int]:
    try:
        stat = file.stat()
    except OSError:
        return []
    return [stat.st_size, stat.st_mtime_ns]


def _keep(file: Path, found: msgspec.Struct) -> None:
    """Write ``found`` at once or not at all; a folder that cannot be written costs time, nothing else."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=file.parent, delete=False) as draft:
            draft.write(msgspec.json.encode(found))
        Path(draft.name).replace(file)
    except OSError:
        return
