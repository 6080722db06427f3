"""The manifest of a compacted month: its runs, its files with size and digest, and what it replaces.

::

    compacted/<YYYY-MM>/<id>.json                   the manifest, written after its files
    compacted/<YYYY-MM>/<table>-<id>.parquet        the rows of a table, of all runs of the month
    compacted/<YYYY-MM>/latest_<table>-<id>.parquet those that may stand for their case
    compacted/withdrawn/<run_id>                    a run that was taken out of the tables since

Why a name of its own for each: stores are merged by copying files, and a reader that still holds the manifest
before finds other files gone, never other bytes in them. Standard library only, as ``results list`` is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from torchgauge.errors import DataFileError
from torchgauge.records import SCHEMA_VERSION, to_plain
from torchgauge.results.atomic_file import write_atomically
from torchgauge.results.json_file import RESTORE, read_record
from torchgauge.results.schema_version import check_version
from torchgauge.results.seal import SealedFile

FOLDER = "compacted"
"""The folder of a store that holds its compacted months."""
WITHDRAWN = "withdrawn"
"""The folder in it with the names of runs whose rows count no more."""
MONTH = re.compile(r"[0-9]{4}-(0[1-9]|1[0-2])")


@dataclass(frozen=True)
class CompactedRun:
    """A run of the month: its rows by table, and the SHA-256 of the table of results that it published."""

    run_id: str
    rows: dict[str, int]
    sha256: str


@dataclass(frozen=True)
class MonthManifest:
    """What a compacted month holds; ``replaces`` names manifests before it that count no more."""

    month: str
    name: str
    runs: tuple[CompactedRun, ...]
    files: tuple[SealedFile, ...]
    replaces: tuple[str, ...] = ()
    schema_version: int = SCHEMA_VERSION

    @property
    def path(self) -> str:
        """Where the manifest is, in its store."""
        return f"{FOLDER}/{self.month}/{self.name}.json"

    @cached_property
    def by_run(self) -> dict[str, CompactedRun]:
        """Its runs by their ids."""
        return {run.run_id: run for run in self.runs}

    def file(self, table: str) -> SealedFile | None:
        """The file of ``table``; None where the month has none."""
        path = table_name(self.month, table, self.name)
        return next((file for file in self.files if file.path == path), None)

    def write(self, root: Path) -> None:
        """Put it into the store at ``root``, durable on return: from here on readers follow it."""
        data = json.dumps(to_plain(self), indent=1).encode() + b"\n"
        write_atomically(root / self.path, data)


def table_name(month: str, table: str, name: str) -> str:
    """The file of ``table`` of the manifest called ``name``, in its store."""
    return f"{FOLDER}/{month}/{table}-{name}.parquet"


def read_manifest(path: Path) -> MonthManifest:
    """The manifest in the file ``path``; raises :class:`DataFileError` where it does not fit its schema."""
    found = read_record(MonthManifest, path)
    check_version(found.schema_version, str(path))
    if (found.month, found.name) != (path.parent.name, path.stem):
        raise DataFileError(
            str(path),
            f"its path does not match its content, the manifest {found.name} of {found.month}",
            hint=RESTORE,
        )
    return found


def manifest_paths(root: Path, month: str = "*") -> Iterator[Path]:
    """The manifests of the store at ``root``, of all months or of one, in order of their names."""
    return (path for path in sorted((root / FOLDER).glob(f"{month}/[!.]*.json")) if path.is_file())
