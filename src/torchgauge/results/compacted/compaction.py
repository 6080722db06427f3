"""Compaction: the tables of a month's runs become a few files, and their journals stay.

Why this order, in which a kill at any point loses nothing: files, then the manifest that readers follow, then
the tables of single runs are removed, each under the lock of its run and only if nobody published it again.
Whatever else lies there is what a kill left, and goes the next time.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torchgauge.clock import SYSTEM_CLOCK, Clock, utc
from torchgauge.errors import TorchgaugeError, UsageError
from torchgauge.results.atomic_file import TEMPORARY_SUFFIX, fsync_path, storage_errors
from torchgauge.results.compacted.manifest import (
    FOLDER,
    MONTH,
    WITHDRAWN,
    CompactedRun,
    MonthManifest,
    manifest_paths,
)
from torchgauge.results.compacted.month_writer import MonthWriter
from torchgauge.results.compacted.own_tables import Mark, mark_of, remove_own, why_not
from torchgauge.results.dataset import part_of
from torchgauge.results.held import held
from torchgauge.results.publication import publish_again
from torchgauge.results.seal import sealed
from torchgauge.results.store import RunInfo, Store
from torchgauge.results.table_file import Asked
from torchgauge.results.tables import TABLES


@dataclass(frozen=True)
class MonthReport:
    """What became of a month, or would: its ``runs``, those that were ``left`` and why, and bytes of tables.

    ``done`` says what was done: ``compacted``, ``nothing to do``, ``would be compacted``, ``refused``, or
    ``not over`` of a month in the future, whose runs were made by a clock that is ahead of this one's.
    """

    month: str
    done: str
    runs: tuple[str, ...]
    left: dict[str, str]
    bytes_before: int = 0
    bytes_after: int = 0


def compact(
    store: Store, month: str | None = None, *, dry_run: bool = False, clock: Clock = SYSTEM_CLOCK
) -> list[MonthReport]:
    """Compact the months of ``store`` that are over, or one; ``dry_run`` says what would be done.

    Raises :class:`UsageError` for what is no month or not over, and where another process compacts the
    store, and :class:`InfrastructureError` where the disk refuses.
    """
    now = _month(clock.now())
    if month is not None and not MONTH.fullmatch(month):
        raise UsageError(f"{month!r} is not a month", hint="--month 2026-01")
    if month is not None and month >= now:
        raise UsageError(
            f"{month} is not over: the date of this machine is {utc(clock.now()):%Y-%m-%d}",
            hint="compact an earlier month; a month can be compacted after its end",
        )
    with _alone(store, dry_run):
        store.compacted.look()
        reports = []
        for each, infos in sorted(_months(store).items()):
            if each > now and month is None:
                ahead = tuple(info.run_id for info in infos)
                reports.append(MonthReport(each, "not over", ahead, {}))
            elif each == month if month else each < now:
                reports.append(_Month(store, each, infos).compacted(dry_run))
        return reports


@contextmanager
def _alone(store: Store, dry_run: bool) -> Iterator[None]:
    """No other process compacts the store meanwhile; raises :class:`UsageError` where one does."""
    folder = store.path / FOLDER

    def refuse() -> None:
        raise UsageError(
            f"{store.path} is being compacted by another process", hint="wait for it to end, then repeat"
        )

    if dry_run:
        yield
        return
    with storage_errors(folder):
        if not folder.is_dir():
            folder.mkdir()
            fsync_path(store.path)
    with held(folder, refuse):
        yield


def _month(at: float) -> str:
    return f"{utc(at):%Y-%m}"


def _months(store: Store) -> dict[str, list[RunInfo]]:
    """All runs that can be in a compacted month, by it, and the months that there are already."""
    found: dict[str, list[RunInfo]] = {}
    for info in store.runs():
        if info.created_at:
            found.setdefault(_month(info.created_at), []).append(info)
    for path in manifest_paths(store.path):
        found.setdefault(path.parent.name, [])
    return found


class _Month:
    """One month of a store, of whose runs ``infos`` says what is known."""

    def __init__(self, store: Store, month: str, infos: Sequence[RunInfo]) -> None:
        self.store, self.month = store, month
        self.infos = {info.run_id: info for info in infos}
        self.left: dict[str, str] = {}
        self.before = [each for each in store.compacted.manifests() if each.month == month]

    def compacted(self, dry_run: bool) -> MonthReport:
        """Do what there is to do, or say it."""
        lost = self._lost()
        if lost and not dry_run:
            lost = self._written_again(lost)
        own = [run for run in self._own() if self._is_sound(run)]
        runs = sorted({*own, *self._kept(), *(lost if dry_run else ())})
        if not lost and not own and not self._untidy():
            return MonthReport(self.month, "nothing to do", tuple(runs), self.left)
        if lost and not dry_run:
            return MonthReport(self.month, "refused", (), self.left)
        size = sum(self._size_of_own(run) for run in own)
        size += sum(file.bytes for manifest in self.before for file in manifest.files)
        if dry_run:
            return MonthReport(self.month, "would be compacted", tuple(runs), self.left, size)
        marks = {run: mark_of(self.store, run) for run in own}
        manifest = self._write(runs) if runs else None
        self._tidy(manifest, marks)
        after = sum(file.bytes for file in manifest.files) if manifest else 0
        return MonthReport(self.month, "compacted", tuple(runs), self.left, size, after)

    def _own(self) -> list[str]:
        """Runs of the month with tables of their own."""
        return sorted(self.store.with_own_tables() & self.infos.keys())

    def _kept(self) -> list[str]:
        """Runs that are in a sound compacted file and nowhere else."""
        found = {run for manifest in self.before for run in manifest.by_run}
        return sorted(run for run in found if self.store.month_of(run) is not None)

    def _lost(self) -> set[str]:
        """Runs whose rows a damaged file of the month had, and that have no other."""
        harmed = [
            manifest
            for manifest in self.before
            if any(file.differs_within(self.store.path) for file in manifest.files)
        ]
        found = {
            run for manifest in harmed for run in manifest.by_run if self.store.month_of(run) is manifest
        }
        if any(Path(path).parent.name == self.month for path in self.store.compacted.unreadable):
            found |= {run for run, info in self.infos.items() if info.condition == "unpublished"}
        return found

    def _written_again(self, lost: set[str]) -> set[str]:
        """Write the tables of ``lost`` runs from their journals; returns those where that failed."""
        still = set()
        for run in sorted(lost):
            try:
                publish_again(self.store, run)
            except TorchgaugeError as error:
                self.left[run] = error.in_a_line
                still.add(run)
        return still

    def _is_sound(self, run: str) -> bool:
        """Whether a run's own tables may be replaced by rows of the month; else ``left`` says why not."""
        why = why_not(self.store, self.store.info(run))
        if why:
            self.left[run] = why
        return not why

    def _untidy(self) -> bool:
        """Whether a kill, a merge of stores or a withdrawal left something to do."""
        gone = self.store.compacted.withdrawn
        folder = self.store.path / FOLDER / self.month
        names = {path.stem for path in manifest_paths(self.store.path, self.month)}
        known = {Path(file.path).name for manifest in self.before for file in manifest.files}
        return (
            len(names) > 1
            or names != {manifest.name for manifest in self.before}
            or any(path.name not in known for path in folder.glob("*.parquet"))
            or any(run in gone for manifest in self.before for run in manifest.by_run)
            or any(folder.glob(f".*{TEMPORARY_SUFFIX}"))
            or any(self._size_of_own(run) for run in self._kept())
        )

    def _size_of_own(self, run: str) -> int:
        paths = (self.store.table_path(table, run) for table in TABLES)
        return sum(path.stat().st_size for path in paths if path.is_file())

    def _write(self, runs: Sequence[str]) -> MonthManifest:
        """The month's files and its manifest, durable on return."""
        root, name = self.store.path, secrets.token_hex(4)
        folder = root / FOLDER / self.month
        with storage_errors(folder):
            if not folder.is_dir():
                folder.mkdir()
                fsync_path(folder.parent)
        writer = MonthWriter(root, self.month, name)
        digests = {run: self._digest(run) for run in runs}
        counts: dict[str, dict[str, int]] = {run: {} for run in runs}
        parts: dict[str, list[Any]] = {}
        try:
            for table in TABLES:
                parts[table] = [self._part(run, table) for run in runs]
                for run, part in zip(runs, parts[table], strict=True):
                    counts[run][table] = part.num_rows
                writer.write(table, parts[table])
                if table not in ("results", "summaries"):
                    del parts[table]
            writer.write_latest(parts["results"], parts["summaries"])
            manifest = MonthManifest(
                self.month,
                name,
                tuple(CompactedRun(run, counts[run], digests[run]) for run in runs),
                tuple(writer.files),
                tuple(path.stem for path in manifest_paths(root, self.month)),
            )
            manifest.write(root)
        except BaseException:
            for path in folder.glob(f"*-{name}.parquet"):
                with suppress(OSError):
                    path.unlink()
            raise
        self.store.compacted.look()
        return manifest

    def _part(self, run: str, table: str) -> Any:
        asked = Asked(table, TABLES[table].schema, encoded=True)
        part = part_of(self.store, run, asked)
        return asked.empty() if part is None else part

    def _digest(self, run: str) -> str:
        """SHA-256 of the table of results that the run published."""
        path = self.store.table_path("results", run)
        if path.is_file():
            return sealed(self.store.path, path).sha256
        month = self.store.month_of(run)
        return month.by_run[run].sha256 if month else ""

    def _tidy(self, manifest: MonthManifest | None, marks: dict[str, Mark]) -> None:
        """Remove what readers no longer look at."""
        root = self.store.path
        folder = root / FOLDER / self.month
        name = manifest.name if manifest else ""
        with storage_errors(folder, "repeat the command: leftover files are harmless"):
            for path in manifest_paths(root, self.month):
                if path.stem != name:
                    path.unlink()
            fsync_path(folder)
            # first: as long as a run has tables of its own they count, whatever the mark says
            for run in {run for each in self.before for run in each.by_run} & self.store.compacted.withdrawn:
                (root / FOLDER / WITHDRAWN / run).unlink(missing_ok=True)
            for run in manifest.by_run if manifest else ():
                remove_own(self.store, run, marks.get(run))
            for path in (*folder.glob("*.parquet"), *folder.glob(f".*{TEMPORARY_SUFFIX}")):
                if not name or not path.name.endswith(f"-{name}.parquet"):
                    path.unlink(missing_ok=True)
            if manifest is None:
                folder.rmdir()
        self.store.compacted.look()
