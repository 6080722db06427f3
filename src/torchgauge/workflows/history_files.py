"""What a job that only reads made of the history, taken over by the one that writes it.

The two are apart because the first one parses what jobs submit. So what it hands on is taken as plain files
alone: nothing that git or another program would read as a setting, and no link on either side. Tables stay
behind: :mod:`torchgauge.workflows.publish` makes them from the journals.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from torchgauge.errors import InfrastructureError, UsageError
from torchgauge.results.atomic_file import storage_errors

_BLOCK = 1024 * 1024
_MADE = frozenset({"tables", "compacted", "history.json"})
"""What a publication makes, at the top of a store; of a run, its state and its seal."""


def add_files(source: Path, history: Path) -> int:
    """Copy the files below ``source`` over ``history``, but for tables; how many. Nothing is taken away.

    All are looked at before the first is copied. Raises :class:`UsageError` where one is hidden or no plain
    file, would be written through a link, or a folder is missing, and :class:`InfrastructureError` where a
    file that only grows lacks lines in ``source``, or the disk fails.
    """
    for folder in (source, history):
        if not folder.is_dir() or folder.is_symlink():
            raise UsageError(
                f"{folder} is not a folder", hint="torchgauge ci history fetch creates the history folder"
            )
    with storage_errors(source):
        names = [name for name in _names(source) if not _is_made(name)]
    with storage_errors(history):
        for name in names:
            _check_target(history, name)
            if name.suffix == ".jsonl" and (history / name).is_file():
                _check_grown(history / name, source / name)
        for name in names:
            (history / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source / name, history / name)
    return len(names)


def _is_made(name: Path) -> bool:
    of_a_run = name.parts[0] in ("runs", "comparisons") and name.name in ("run.json", "seal.json")
    return name.parts[0] in _MADE or of_a_run


def _check_target(history: Path, name: Path) -> None:
    """Raise where ``name`` would be written through a link, or over a folder."""
    for part in (name, *name.parents):
        if (history / part).is_symlink() or (part == name and (history / part).is_dir()):
            raise UsageError(
                f"{str(part)!a} of {history} is a link or a folder, so the file was not copied",
                hint="remove it from the results branch with a commit",
            )


def _check_grown(before: Path, after: Path) -> None:
    with before.open("rb") as old, after.open("rb") as new:
        while block := old.read(_BLOCK):
            if new.read(len(block)) != block:
                raise InfrastructureError(
                    f"{before} changed since {after} was derived from it; a copy would lose lines",
                    hint="run the workflow again, which fetches the newer history",
                )


def _names(source: Path) -> list[Path]:
    found = []
    for at, folders, files in os.walk(source):
        for name in (*folders, *files):
            path = Path(at, name)
            if name.startswith(".") or path.is_symlink() or not (path.is_file() or path.is_dir()):
                where = ascii(str(path.relative_to(source)))
                raise UsageError(
                    f"{where} is hidden or not a regular file, so nothing of {source} was copied",
                    hint="check the job that wrote it: a store has no such files",
                )
        found += [Path(at, name).relative_to(source) for name in files]
    return sorted(found)
