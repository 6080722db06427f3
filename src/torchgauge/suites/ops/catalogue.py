"""Which operators an interpreter's torch has, asked of a child process once and then kept. Parent side.

Why a child and no data file: the database differs from version to version, and only the wheel that will run
knows its own. The answer depends on the files of torch only, so it is cached by their version and time.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import msgspec

from torchgauge.errors import InfrastructureError
from torchgauge.processes.kept_process import run, scratch
from torchgauge.processes.known_secrets import known_secrets
from torchgauge.processes.passed_variables import passed
from torchgauge.records import digest

TIMEOUT_S = 300.0
CHILD = Path(__file__).with_name("database.py")
"""Imports torch and the standard library only, so that any interpreter can run it from where it lies."""
_RUN = "import runpy, sys; sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')"
_WHERE = """
import importlib.util, json
from importlib import metadata
spec = importlib.util.find_spec("torch")
print(json.dumps(["" if spec is None else spec.origin, "" if spec is None else metadata.version("torch")]))
"""


Answer = TypeVar("Answer", bound=msgspec.Struct)


class Operator(msgspec.Struct, frozen=True):
    """One entry of the database; ``dtypes`` and ``backward`` by device type, ``""`` for every other one."""

    name: str
    dtypes: dict[str, tuple[str, ...]]
    backward: dict[str, tuple[str, ...]]
    out: bool
    inplace: bool


class Catalogue(msgspec.Struct, frozen=True):
    """All entries of one wheel; ``missing`` is the package without which there are none."""

    torch: str
    missing: str = ""
    operators: tuple[Operator, ...] = ()


@dataclass(frozen=True)
class _Place:
    """Where an interpreter's torch lies and which one it is."""

    file: str
    version: str


def catalogue_of(python: str | None = None, *, cache: Path | None = None) -> Catalogue:
    """The operators of ``python`` (None: our own interpreter); the first time takes a child and seconds.

    Raises :class:`InfrastructureError` where its torch cannot be imported even without extensions.
    """
    path = python or sys.executable
    place = _place(path)
    folder = cache or cache_folder()
    file = folder / f"operators-{place.version or 'none'}-{_key(path, place)}.json"
    try:
        return msgspec.json.decode(file.read_bytes(), type=Catalogue)
    except (OSError, msgspec.MsgspecError):
        pass
    found = ask(path, CHILD, Catalogue, "operator database")
    if not found.missing:  # what is missing may be installed a minute later
        keep(file, found)
    return found


def cache_folder() -> Path:
    """Where answers are kept: the person's own cache."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "torchgauge"


def _place(python: str) -> _Place:
    """Asked of the interpreter itself, without an import of torch."""
    try:
        done = run([python, "-c", _WHERE], passed(), timeout=TIMEOUT_S)
        done.check_returncode()
        file, version = json.loads(done.stdout.splitlines()[-1])
    except (OSError, subprocess.SubprocessError, ValueError, IndexError) as error:
        raise InfrastructureError(
            f"{python} does not say where its torch is: {error}", hint="torchgauge doctor looks closer"
        ) from error
    return _Place(file, version)


def _key(python: str, place: _Place) -> str:
    """Sixteen hex digits over everything that the answer depends on."""
    database = Path(place.file).parent / "testing" / "_internal" / "common_methods_invocations.py"
    try:
        stat = database.stat()
        stamp = [stat.st_size, stat.st_mtime_ns]
    except OSError:
        stamp = []
    return digest([python, place.file, place.version, stamp, CHILD.read_text(encoding="utf-8")])


def ask(python: str, child: Path, kind: type[Answer], what: str) -> Answer:
    """What the file ``child`` answers when ``python`` runs it; raises :class:`InfrastructureError`."""
    with scratch("asked") as folder:
        answer = folder / "answer.json"
        variables = {**passed(), "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}  # the list needs no device
        try:
            done = run([python, "-c", _RUN, str(child), str(answer)], variables, timeout=TIMEOUT_S)
        except (OSError, subprocess.SubprocessError) as error:
            raise _no_answer(python, what, str(error)) from error
        try:
            return msgspec.json.decode(answer.read_bytes(), type=kind)
        except (OSError, msgspec.MsgspecError) as error:
            last = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
            raise _no_answer(python, what, last) from error


def _no_answer(python: str, what: str, why: str) -> InfrastructureError:
    return InfrastructureError(
        f"the {what} of {python} cannot be read: {known_secrets().hide(why)[:300]}",
        hint="torchgauge doctor shows whether its torch can be imported",
    )


def keep(file: Path, found: msgspec.Struct) -> None:
    """Write ``found`` at once or not at all; a folder that cannot be written costs time, nothing else."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=file.parent, delete=False) as draft:
            draft.write(msgspec.json.encode(found))
        Path(draft.name).replace(file)
    except OSError:
        return
