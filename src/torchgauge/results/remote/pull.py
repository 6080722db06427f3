"""The copy of a remote store on this machine: what changed there is fetched, and readers read the copy.

Why a copy: a reader makes many small reads, each of which would cost a round trip; files of a finished run
never change, so that each is fetched once. A run counts when its seal is there, which is put last: one whose
upload was cut off, or goes on, is left out and named.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from torchgauge.errors import InfrastructureError, UsageError
from torchgauge.results.atomic_file import storage_errors, write_atomically
from torchgauge.results.compacted.manifest import FOLDER
from torchgauge.results.held import held
from torchgauge.results.json_file import object_if_any
from torchgauge.results.remote.object_files import ObjectFiles, Stamp
from torchgauge.results.remote.push import FOLDERS
from torchgauge.results.remote.store_url import StoreUrl, is_url, read_url
from torchgauge.results.seal import SEAL
from torchgauge.results.store import Store
from torchgauge.user_cache import user_cache

_FETCHED = ".fetched.json"
"""The file in a copy that says what was fetched, with the stamps there and here."""
_AT_ONCE = 8
_TIMES = 3
"""How often a listing is taken anew because files went while they were fetched."""


@dataclass(frozen=True)
class Copy:
    """The copy of a remote store: where it is, and runs that are not whole there."""

    path: Path
    unfinished: tuple[str, ...]

    def sentences(self, address: str) -> tuple[str, ...]:
        """What to say of these runs."""
        why = f"is incomplete at {address} and left out: it is still being copied, or copying was cut off"
        return tuple(f"run {run} {why}; try: torchgauge results push once more" for run in self.unfinished)


def copy_folder(url: StoreUrl) -> Path:
    """Where the copy of the store at ``url`` is kept."""
    name = hashlib.sha256(f"{url.scheme} {url.endpoint} {url.root}".encode()).hexdigest()[:16]
    return user_cache() / "stores" / f"{url.bucket}-{name}"


def pull(address: str, into: Path | None = None) -> Copy:
    """Fetch what changed of the store at ``address`` into its copy on this machine, or ``into`` a new folder.

    Raises what :class:`ObjectFiles` raises, and :class:`UsageError` where there is no store.
    """
    url = read_url(address)
    files, folder = ObjectFiles(url), into or copy_folder(url)
    for _ in range(_TIMES):
        there = files.listed()
        if "store.json" not in there:
            raise UsageError(
                f"{url} is not a store", hint="torchgauge results push URL --store DIR uploads a store"
            )
        try:
            with _kept(folder) as fetched:
                wanted, unfinished = _whole(there)
                _fetch(files, folder, wanted, fetched)
                return Copy(folder, unfinished)
        except FileNotFoundError:
            continue  # a month replaced it, or a run is published again
    raise InfrastructureError(
        f"{url} kept changing while it was read", hint="repeat the command when no process pushes"
    )


def pull_into(address: str, folder: Path) -> Copy:
    """Fetch the store at ``address`` into ``folder``; raises :class:`UsageError` where that is no copy."""
    if folder.exists() and any(folder.iterdir()) and not (folder / _FETCHED).is_file():
        raise UsageError(f"{folder} exists and is not a copy of a store", hint="pass a new folder")
    return pull(address, folder)


@contextmanager
def every_byte(path: str) -> Iterator[Store]:
    """The store at ``path``; for a URL, a copy of which every byte is fetched now, and removed afterwards."""
    if not is_url(path):
        yield Store.open(path)
        return
    with tempfile.TemporaryDirectory(prefix="torchgauge-") as folder:
        copy = pull(path, Path(folder))
        yield Store.open(copy.path)


@contextmanager
def _kept(folder: Path) -> Iterator[dict[str, list[int]]]:
    """What was fetched before, kept again with what was fetched meanwhile; for one process at a time."""
    with storage_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    with held(folder):
        found = object_if_any(folder / _FETCHED)
        try:
            yield found
        finally:
            write_atomically(folder / _FETCHED, json.dumps(found).encode())


def _whole(there: dict[str, Stamp]) -> tuple[dict[str, Stamp], tuple[str, ...]]:
    """The files of a store less those of runs without a seal, and the ids of these."""
    runs = {tuple(name.split("/")[:2]) for name in there if name.split("/")[0] in FOLDERS}
    whole = {run for kind, run in runs if f"{kind}/{run}/{SEAL}" in there}
    unfinished = {run for _, run in runs} - whole

    def counts(name: str) -> bool:
        parts = name.split("/")
        if parts[0] in FOLDERS:
            return parts[1] in whole
        return parts[0] != "tables" or Path(name).stem in whole

    return {name: stamp for name, stamp in there.items() if counts(name)}, tuple(sorted(unfinished))


def _fetch(files: ObjectFiles, folder: Path, wanted: dict[str, Stamp], fetched: dict[str, list[int]]) -> None:
    """Make ``folder`` hold what is ``wanted`` and nothing else: tables before seals, manifests last."""
    changed = [
        name for name, stamp in wanted.items() if not _is_same(folder / name, stamp, fetched.get(name))
    ]
    for name in changed:
        _check_inside(name)
    first = [name for name in changed if not name.endswith(".json")]

    def get(name: str) -> None:
        files.get(name, folder / name)
        here = (folder / name).stat()
        fetched[name] = [*wanted[name], here.st_size, here.st_mtime_ns]

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        for names in (first, sorted(set(changed) - set(first), key=_last)):
            list(pool.map(get, names))
    for name in fetched.keys() - wanted.keys():
        (folder / name).unlink(missing_ok=True)
        del fetched[name]
    for kind in FOLDERS:
        for run in (folder / kind).glob("*"):
            if not any(path.is_file() for path in run.rglob("*")):
                shutil.rmtree(run)


def _last(name: str) -> tuple[bool, str]:
    return name.startswith(FOLDER) or name.endswith(SEAL), name


def _check_inside(name: str) -> None:
    """Raise :class:`UsageError` for an object whose name leads out of the copy."""
    if any(part in ("", ".", "..") for part in name.split("/")) or "\\" in name:
        raise UsageError(
            f"{name!r} is not a valid file name in a store", hint="remove the object from the bucket"
        )


def _is_same(path: Path, there: Stamp, fetched: list[int] | None) -> bool:
    """Whether a file was fetched as it is there, and nobody changed it here since."""
    if fetched is None or fetched[:2] != list(there) or not path.is_file():
        return False
    here = path.stat()
    return fetched[2:] == [here.st_size, here.st_mtime_ns]
