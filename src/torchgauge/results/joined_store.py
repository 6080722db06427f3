"""Several stores read as one: a folder of links beside nothing that is copied, for as long as it is read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from torchgauge.errors import UsageError
from torchgauge.processes.kept_process import scratch
from torchgauge.results.store import Store


@contextmanager
def one_store(paths: Sequence[str], out: str) -> Iterator[tuple[Path, tuple[str, ...]]]:
    """A store with the runs of all ``paths``, and a note for each run that is in several; one path is itself.

    Raises :class:`UsageError` where one of them is no store, or ``out`` is a folder that holds one.
    """
    stores = [Store.open(path) for path in dict.fromkeys(map(str, map(Path, paths)))]
    if len(stores) == 1:
        yield stores[0].path, ()
        return
    target = Path(out).resolve()
    for store in stores:
        if target in (store.path.resolve(), *store.path.resolve().parents):
            raise UsageError(f"{target} holds the store {store.path}", hint="pass a folder outside the store")
    with scratch("stores") as folder:
        joined = Store.open(folder / "joined", create=True)
        notes: list[str] = []
        for store in stores:
            notes += _link(store.path.resolve(), joined.path)
        yield joined.path, tuple(notes)


def _link(source: Path, target: Path) -> Iterator[str]:
    """Link what ``source`` has into ``target``; the first store that has a run keeps it."""
    taken = {each.name for each in (target / "runs").iterdir()}
    for run in sorted((source / "runs").iterdir()):
        if run.name in taken:
            yield f"run {run.name} is in {source} and in another store: it counts once"
    for folder in ("runs", "tables", "census", "comparisons"):
        for found in sorted((source / folder).rglob("*")) if (source / folder).is_dir() else ():
            relative = found.relative_to(source)
            if (found.is_dir() and folder != "runs") or _run_of(relative) in taken:
                continue
            if folder == "runs" and len(relative.parts) != 2:
                continue  # a whole run is one link
            place = target / relative
            place.parent.mkdir(parents=True, exist_ok=True)
            if not place.exists():
                place.symlink_to(found)


def _run_of(relative: Path) -> str:
    """The run that a file belongs to, by its name."""
    return relative.parts[1] if relative.parts[0] == "runs" else relative.name.removesuffix(".parquet")
