"""The seal of a run: names, sizes and digests of what it published, written last.

Why: a table that a disk or a copy has damaged must be told from one that is sound, and a table that somebody
lost from one that is empty. A run without a seal was killed before it had one; it is read all the same.
Standard library only: ``results list`` looks at every run.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from torchgauge.errors import DataFileError
from torchgauge.records import SCHEMA_VERSION, to_plain
from torchgauge.results.atomic_file import REPEAT, fsync_path, storage_errors, write_atomically
from torchgauge.results.json_file import read_record
from torchgauge.results.planned_folder import PlannedFolder

SEAL = "seal.json"
"""The file in a run's folder that holds the seal."""
_MAGIC = b"PAR1"
"""Four bytes at either end of a Parquet file."""
_TABLES = ("tables/", "compacted/")
"""Where readers look."""
_SAMPLES = re.compile("tables/samples/|compacted/[^/]+/samples-")
"""Raw samples, which may be removed at any time."""


@dataclass(frozen=True)
class SealedFile:
    """A file as it was published: its path in the store, its size in bytes and its SHA-256."""

    path: str
    bytes: int
    sha256: str

    @property
    def is_table(self) -> bool:
        """Whether readers look at it; the others are what it would be made of again."""
        return self.path.startswith(_TABLES)

    @property
    def may_go(self) -> bool:
        """Whether it may be removed on purpose."""
        return bool(_SAMPLES.match(self.path)) or not self.is_table

    def differs(self, root: Path) -> str:
        """How the file in the store at ``root`` differs by what its folder says; empty where it does not."""
        try:
            size = (root / self.path).stat().st_size
        except OSError as error:
            return "" if self.may_go and not (root / self.path).exists() else f"{error.strerror}"
        return "" if size == self.bytes else f"has {size:,} bytes, but {self.bytes:,} were published"

    def differs_within(self, root: Path) -> str:
        """The same with every byte of it read."""
        path = root / self.path
        if (differs := self.differs(root)) or not path.exists():
            return differs
        try:
            return "" if _digest(path) == self.sha256 else "its content differs from the published file"
        except OSError as error:
            return f"cannot be read: {error.strerror or error}"


@dataclass(frozen=True)
class Seal:
    """What a run published."""

    files: tuple[SealedFile, ...]
    schema_version: int = SCHEMA_VERSION


def publish_command(run_id: str, root: Path | None = None) -> str:
    """The command that writes the tables of a run again, in the store at ``root`` where it is given."""
    where = [] if root is None else ["--store", str(root)]
    return shlex.join(["torchgauge", "results", "publish", run_id, *where])


def sealed(root: Path, path: Path) -> SealedFile:
    """The file ``path`` of the store at ``root`` as it is now; raises ``OSError``."""
    return SealedFile(path.relative_to(root).as_posix(), path.stat().st_size, _digest(path))


def seal(root: Path, folder: PlannedFolder, tables: Iterable[Path], hint: str = REPEAT) -> None:
    """Write the seal of ``folder`` in the store at ``root`` over its ``tables``, durable on return.

    Raises :class:`InfrastructureError` on a failing disk.
    """
    with storage_errors(folder.path, hint):
        own = (folder.path / name for name in ("plan.json", "journal.jsonl", "run.json"))
        files = tuple(sealed(root, path) for path in (*own, *tables) if path.is_file())
    data = to_plain(Seal(files))
    write_atomically(folder.path / SEAL, json.dumps(data, indent=1).encode() + b"\n", hint)


def unseal(folder: PlannedFolder) -> None:
    """Remove the seal of ``folder``, durable on return: its files are about to change."""
    (folder.path / SEAL).unlink(missing_ok=True)
    fsync_path(folder.path)


def read_seal(folder: PlannedFolder) -> Seal | None:
    """The seal of ``folder``; None where it has none. Raises :class:`DataFileError` where it is damaged."""
    path = folder.path / SEAL
    return read_record(Seal, path) if path.exists() else None


def damage_seen(root: Path, folder: PlannedFolder) -> str:
    """What is wrong with the tables of ``folder`` by their names, sizes and ends; empty where nothing is.

    A look that costs no reading: damage inside a file shows when it is read.
    """
    try:
        found = read_seal(folder)
    except DataFileError as error:
        return error.message
    if found is None:
        tables = sorted((root / "tables").glob(f"*/{folder.run_id}.parquet"))
        cut = next((path for path in tables if path.is_file() and not _whole(path)), None)
        return f"{cut.relative_to(root)} is cut off or is not a Parquet file" if cut else ""
    for file in found.files:
        if file.is_table and (differs := file.differs(root)):
            return f"{file.path} {differs}"
    return ""


def was_published(root: Path, table: Path) -> bool:
    """Whether the run of the file ``table``, which is not there, had published it for good."""
    try:
        found = read_seal(PlannedFolder(root / "runs" / table.stem))
    except DataFileError:
        return False
    name = table.relative_to(root).as_posix()
    return found is not None and any(file.path == name and not file.may_go for file in found.files)


def _whole(path: Path) -> bool:
    """Whether ``path`` begins and ends as a Parquet file does."""
    try:
        with path.open("rb") as stream:
            begin = stream.read(len(_MAGIC))
            stream.seek(-len(_MAGIC), os.SEEK_END)
            return begin == _MAGIC and stream.read() == _MAGIC and stream.tell() > 2 * len(_MAGIC)
    except OSError:
        return False


def _digest(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
