"""What is wrong with compacted months: every byte of their files is read, and nothing is changed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from torchgauge.results.compacted.compacted_months import compact_command
from torchgauge.results.compacted.manifest import FOLDER, WITHDRAWN
from torchgauge.results.finding import Fault, Finding
from torchgauge.results.held import is_held
from torchgauge.results.store import Store


def month_findings(store: Store) -> Iterator[Finding]:
    """Files of compacted months that are damaged or missing, and what a kill left of others."""
    store.compacted.look()
    root = store.path
    for path, problem in sorted(store.compacted.unreadable.items()):
        yield Finding(Fault.DAMAGED, path, problem, compact_command(root, Path(path).parent.name))
    known = set(store.compacted.unreadable)
    for month in store.compacted.manifests():
        known.add(month.path)
        for file in month.files:
            known.add(file.path)
            if differs := file.differs_within(root):
                fault = Fault.DAMAGED if (root / file.path).exists() else Fault.MISSING
                yield Finding(fault, file.path, differs, compact_command(root, month.month))
    if (root / FOLDER).is_dir() and not is_held(root / FOLDER):
        yield from _left_over(store, known)


def _left_over(store: Store, known: set[str]) -> Iterator[Finding]:
    root = store.path
    for folder in sorted(path for path in (root / FOLDER).iterdir() if path.name != WITHDRAWN):
        again = compact_command(root, folder.name)
        for path in sorted(folder.glob("*")) if folder.is_dir() else [folder]:
            name = path.relative_to(root).as_posix()
            if name not in known:
                yield Finding(Fault.TORN, name, "left over from a killed compaction", again)
    own = store.with_own_tables()
    for path in sorted((root / "tables").glob("*/[!.]*.parquet")):
        month = store.compacted.of(path.stem) if path.stem not in own else None
        if month is not None:
            problem = "left over from a killed compaction; the run is read from its compacted month"
            yield Finding(
                Fault.TORN, path.relative_to(root).as_posix(), problem, compact_command(root, month.month)
            )
