"""Which runs of a store are read from a compacted month: what its manifests say, less what was withdrawn.

A run that has tables of its own, because it was published again, is read from these. Standard library only.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from torchgauge.errors import DamagedTableError, UsageError
from torchgauge.results.atomic_file import fsync_path, storage_errors, write_atomically
from torchgauge.results.compacted.manifest import (
    FOLDER,
    WITHDRAWN,
    MonthManifest,
    manifest_paths,
    read_manifest,
)

_Stamp = tuple[int, int, int]


def compact_command(root: Path, month: str) -> str:
    """The command that makes the files of ``month`` again from journals, in the store at ``root``."""
    return shlex.join(["torchgauge", "results", "compact", "--month", month, "--store", str(root)])


@dataclass
class CompactedMonths:
    """The months of the store at ``root``; what was read of a manifest is kept as long as its file stays.

    ``unreadable`` says what is wrong with manifests, by their paths in the store.
    """

    root: Path
    unreadable: dict[str, str] = field(default_factory=dict)
    withdrawn: frozenset[str] = frozenset()
    _months: dict[str, MonthManifest] = field(default_factory=dict)
    _kept: dict[Path, tuple[_Stamp, MonthManifest]] = field(default_factory=dict)
    _looked: bool = False

    def look(self) -> None:
        """See which manifests there are now."""
        found: dict[Path, tuple[_Stamp, MonthManifest]] = {}
        self.unreadable = {}
        for path in manifest_paths(self.root):
            try:
                there = path.stat()
                stamp = there.st_mtime_ns, there.st_size, there.st_ino
                kept = self._kept.get(path)
                found[path] = kept if kept and kept[0] == stamp else (stamp, read_manifest(path))
            except FileNotFoundError:
                continue  # replaced at this moment
            except UsageError as error:
                if path.is_file():
                    self.unreadable[path.relative_to(self.root).as_posix()] = error.message
        self._kept, self._looked = found, True
        manifests = [manifest for _, manifest in found.values()]
        replaced = {name for manifest in manifests for name in manifest.replaces}
        self._months = {
            run.run_id: manifest
            for manifest in manifests
            if manifest.name not in replaced
            for run in manifest.runs
        }
        marks = (self.root / FOLDER / WITHDRAWN).glob("[!.]*")
        self.withdrawn = frozenset(path.name for path in marks)

    def manifests(self) -> Iterator[MonthManifest]:
        """The manifests that count, in order of their months."""
        seen = {manifest.name: manifest for manifest in self._months.values()}
        yield from sorted(seen.values(), key=lambda manifest: (manifest.month, manifest.name))

    def runs(self) -> set[str]:
        """All runs of compacted months, as they are now."""
        self.look()
        return self._months.keys() - self.withdrawn

    def of(self, run_id: str) -> MonthManifest | None:
        """The month of ``run_id``; None where it is in none. Looks again before it says no."""
        if not self._looked or run_id not in self._months:
            self.look()
        return None if run_id in self.withdrawn else self._months.get(run_id)

    def check_readable(self, besides: Collection[str]) -> None:
        """Raise :class:`DamagedTableError` for a manifest that cannot be read, but for those ``besides``."""
        for path, problem in self.unreadable.items():
            if path not in besides:
                hint = compact_command(self.root, Path(path).parent.name)
                raise DamagedTableError(self.root / path, problem, hint=hint, runs=(path,))

    def damage(self, month: MonthManifest) -> str:
        """What is wrong with the files of ``month`` by their names and sizes; empty for nothing."""
        for file in month.files:
            if differs := file.differs(self.root):
                return f"{file.path} {differs}"
        return ""

    def withdraw(self, run_id: str) -> None:
        """Let the rows of ``run_id`` count no more, durable on return; compaction drops them."""
        if self.of(run_id) is None:
            return
        folder = self.root / FOLDER / WITHDRAWN
        with storage_errors(folder):
            folder.mkdir(exist_ok=True)
            fsync_path(folder.parent)
        write_atomically(folder / run_id, b"")
        self.look()

    def forget_samples(self, before: str) -> int:
        """Remove the raw samples of months ``before`` one, such as ``2026-01``; returns of how many runs."""
        runs = 0
        for month in self.manifests():
            file = month.file("samples")
            if file is not None and month.month < before and (self.root / file.path).is_file():
                (self.root / file.path).unlink()
                runs += len(month.runs)
        return runs
