"""The site that stands, as what an incremental build starts from, or why it cannot be that."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa

from torchgauge.dashboard import epoch_table, state_files
from torchgauge.dashboard.case_book import CaseBook
from torchgauge.dashboard.manifest import GENERATOR, MANIFEST, SCHEMA
from torchgauge.dashboard.newest_rows import NewestRows
from torchgauge.dashboard.run_rows import MetricName, Rows
from torchgauge.dashboard.site_data import SiteData
from torchgauge.dashboard.site_folder import SiteWriter
from torchgauge.dashboard.snapshots import DatedRun
from torchgauge.dashboard.state_files import FilesState
from torchgauge.dashboard.unusable_site import UnusableSiteError

_BY_EPOCH = ("series", "trends", "data")
"""Folders whose files are named by their epoch."""


@dataclass(frozen=True)
class EarlierSite:
    """A site of this version, of which every run is still in the store as it was."""

    folder: Path
    dated: tuple[DatedRun, ...]
    book: CaseBook
    newest: NewestRows
    metrics: dict[str, MetricName]
    files: FilesState

    @cached_property
    def _ranks(self) -> dict[str, int]:
        return {run.run_id: rank for rank, run in enumerate(self.dated)}

    def rows(self, epoch: int, parts: Mapping[str, int] | None = None) -> Rows:
        """The rows that stand in ``epoch``, with all numbers or as many of each metric as ``parts`` says.

        Raises :class:`UnusableSiteError` where the file is damaged.
        """
        name = epoch_table.file_name(epoch)
        if name not in self.files:
            raise UnusableSiteError(f"the site that is there has no {name}")
        content = _content(self.folder, name, self.files[name][0])
        try:
            return epoch_table.read(content, self._ranks, self.book, parts)
        except (pa.ArrowException, KeyError, ValueError) as error:
            raise UnusableSiteError(f"{name} of the site that is there cannot be read: {error}") from error

    def keep(self, writer: SiteWriter, data: SiteData) -> int:
        """Take the files of epochs and snapshots that did not change; returns how many."""
        kept = 0
        for name, (digest, size) in self.files.items():
            if name in writer.digests or not _unchanged(name, data):
                continue
            try:
                if os.stat(f"{self.folder}/{name}").st_size != size:  # noqa: PTH116  thousands of files
                    raise UnusableSiteError(f"{name} of the site that is there has another size")
                writer.keep(name, digest, size)
            except FileNotFoundError as error:
                raise UnusableSiteError(f"the site that is there lacks {name}") from error
            kept += 1
        return kept


def read(folder: Path, fingerprints: dict[str, str]) -> EarlierSite:
    """The site in ``folder``, for a store whose published runs have ``fingerprints``.

    Raises :class:`UnusableSiteError` where there is none, where another version built it, where it is
    damaged, or where one of its runs changed or is gone.
    """
    manifest = _manifest(folder)
    if (manifest.get("generator"), manifest.get("schema")) != (GENERATOR, SCHEMA):
        raise UnusableSiteError("the site that is there was built by another version")
    try:
        states = {name: _content(folder, name, digest) for name, digest in manifest["state"].items()}
        runs = state_files.read_runs(states[state_files.RUNS])
        dated = state_files.dated_runs(runs)
        ranks = {run.run_id: rank for rank, run in enumerate(dated)}
        book, newest = state_files.read_cases(states[state_files.CASES], ranks)
        listed: FilesState = {}
        for name, content in states.items():
            if name.startswith("state/files-"):
                listed |= state_files.read_files(content)
    except (
        KeyError,
        ValueError,
        AttributeError,
        TypeError,
        msgspec.MsgspecError,
        pa.ArrowException,
    ) as error:
        raise UnusableSiteError(f"the site that is there is damaged: {error}") from error
    _check_runs(runs, fingerprints)
    return EarlierSite(folder, dated, book, newest, state_files.metric_names(runs), listed)


def _check_runs(state: state_files.RunsState, fingerprints: dict[str, str]) -> None:
    for run in state.runs:
        if run.run_id not in fingerprints:
            raise UnusableSiteError(f"run {run.run_id} is gone from the store")
        if fingerprints[run.run_id] != run.fingerprint:
            raise UnusableSiteError(f"run {run.run_id} changed since the last build")


def _manifest(folder: Path) -> dict[str, Any]:
    try:
        found = msgspec.json.decode((folder / MANIFEST).read_bytes())
    except FileNotFoundError as error:
        raise UnusableSiteError("there is no site yet") from error
    except (OSError, msgspec.MsgspecError) as error:
        raise UnusableSiteError(f"{MANIFEST} of the site that is there cannot be read: {error}") from error
    if not isinstance(found, dict):
        raise UnusableSiteError(f"{MANIFEST} of the site that is there is no object")
    return found


def _content(folder: Path, name: str, digest: str) -> bytes:
    try:
        content = (folder / name).read_bytes()
    except OSError as error:
        raise UnusableSiteError(f"{name} of the site that is there cannot be read: {error}") from error
    if hashlib.sha256(content).hexdigest() != digest:
        raise UnusableSiteError(f"{name} of the site that is there is damaged")
    return content


def _unchanged(name: str, data: SiteData) -> bool:
    folder, _, rest = name.partition("/")
    if folder == "snapshots":
        return rest.partition("/")[0] not in data.changed_snapshots
    epoch = rest.rpartition("/")[2].partition(".")[0]
    return folder in _BY_EPOCH and epoch.isdigit() and int(epoch) not in data.changed
