"""Copying finished runs of a store to an object store: the seal of a run last, which makes it visible whole.

Why a copy and not a journal there: a journal needs an append that is durable on return, which no object store
has. A run is measured into a folder and copied once it is published. Runs and months have names of their own,
so writers on several machines share nothing but ``store.json``, which says the same.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from torchgauge.errors import DataFileError, UsageError
from torchgauge.results.compacted.manifest import FOLDER, MonthManifest
from torchgauge.results.held import held
from torchgauge.results.planned_folder import PlannedFolder
from torchgauge.results.remote.object_files import ObjectFiles, Stamp
from torchgauge.results.remote.store_url import read_url
from torchgauge.results.seal import SEAL, read_seal
from torchgauge.results.store import Store

FOLDERS = ("runs", "comparisons")
"""Folders of what is planned and sealed."""


@dataclass
class PushReport:
    """Ids of runs that were copied, were there ``already``, and were ``left`` with why; and months."""

    copied: list[str] = field(default_factory=list)
    already: list[str] = field(default_factory=list)
    left: dict[str, str] = field(default_factory=dict)
    months: list[str] = field(default_factory=list)


def push(store: Store, address: str) -> PushReport:
    """Copy what is published and sealed in ``store`` to ``address``; repeating it copies what is missing.

    Raises :class:`UsageError` for an address that is none, a bucket that is not there, credentials that are
    refused, and a run of the same name that is another one, and :class:`InfrastructureError` for a server
    that does not answer.
    """
    files = ObjectFiles(read_url(address))
    there = files.listed()
    report = PushReport()
    if "store.json" not in there:
        files.put(store.path / "store.json", "store.json")
    store.compacted.look()
    months = list(store.compacted.manifests())
    for folder in _folders(store):
        name = folder.path.relative_to(store.path).as_posix()
        why = _push_run(store, folder, files, there, name)
        if why == "":
            report.copied.append(folder.run_id)
        elif why == _ALREADY:
            report.already.append(folder.run_id)
        else:
            report.left[folder.run_id] = why
    for month in months:
        if _push_month(store, month, files, there):
            report.months.append(month.month)
    return report


_ALREADY = "it is there"


def _folders(store: Store) -> Iterator[PlannedFolder]:
    for kind in FOLDERS:
        for path in sorted((store.path / kind).glob("[!.]*")):
            if path.is_dir():
                yield PlannedFolder(path)


def _push_run(
    store: Store, folder: PlannedFolder, files: ObjectFiles, there: dict[str, Stamp], name: str
) -> str:
    """Copy one run; empty, or why it was not copied."""
    if not folder.plan_path.is_file():
        return "the run has no plan"
    with held(folder.plan_path):  # it is not published again meanwhile
        try:
            found = read_seal(folder)
        except DataFileError as error:
            return error.message
        if found is None:
            return "the run is not published, or has no seal. Try: torchgauge results publish"
        if damage := store.damage(folder.run_id):
            return f"the run is damaged: {damage}"
        mine = (folder.path / SEAL).read_bytes()
        if f"{name}/{SEAL}" in there:
            if files.read(f"{name}/{SEAL}") == mine:
                return _ALREADY
            _check_same_run(files, name, mine)
            files.remove(f"{name}/{SEAL}")
        own = [path for path in sorted(folder.path.rglob("*")) if path.is_file() and path.name != SEAL]
        tables = [store.path / file.path for file in found.files if file.path.startswith("tables/")]
        for path in [path for path in own if not path.name.startswith(".")] + tables:
            if path.is_file():  # else its month has it, or it may go
                files.put(path, path.relative_to(store.path).as_posix())
        files.put(folder.path / SEAL, f"{name}/{SEAL}")
    return ""


def _check_same_run(files: ObjectFiles, name: str, mine: bytes) -> None:
    """Raise :class:`UsageError` where the seals are not of one journal."""

    def journal(seal: bytes) -> str:
        try:
            found = json.loads(seal)["files"]
            return next(
                (str(each["sha256"]) for each in found if each["path"] == f"{name}/journal.jsonl"), ""
            )
        except (ValueError, KeyError, TypeError):
            raise UsageError(
                f"{files.url}: {name}/{SEAL} is damaged", hint="remove the object, then push again"
            ) from None

    if journal(files.read(f"{name}/{SEAL}")) != journal(mine):
        raise UsageError(
            f"{files.url} already has a different run with the id {name}",
            hint="push to another prefix; nothing was replaced",
        )


def _push_month(store: Store, month: MonthManifest, files: ObjectFiles, there: dict[str, Stamp]) -> bool:
    """Copy a month, its manifest last, then remove what it replaces; whether that was to be done."""
    if month.path in there:
        return False
    for file in month.files:
        if (store.path / file.path).is_file():
            files.put(store.path / file.path, file.path)
    files.put(store.path / month.path, month.path)
    for name in month.replaces:
        files.remove(f"{FOLDER}/{month.month}/{name}.json")
    for path in there:
        parts = Path(path)
        old = path.startswith(f"{FOLDER}/{month.month}/") and parts.stem.rpartition("-")[2] in month.replaces
        own = path.startswith("tables/") and store.month_of(parts.stem) is month
        if old or own:
            files.remove(path)
    return True
