"""A site that is written aside and then takes the place of the old one in one step.

Readers see the old site or the new one.
"""

from __future__ import annotations

import ctypes
import fcntl
import hashlib
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from torchgauge.results.held import held

_AT_FDCWD = -100
_EXCHANGE = 2


class SiteWriter:
    """Files of a site that is being built in the folder ``aside``."""

    def __init__(self, aside: Path) -> None:
        """``aside`` is there and empty."""
        self._aside = str(aside)
        self._folders: set[str] = set()
        self._digests: dict[str, bytes] = {}
        self.sizes: dict[str, int] = {}

    def write(self, name: str, data: bytes) -> None:
        """Write the file ``name``, relative to the root; raises ``ValueError`` where there is one already."""
        if name in self.sizes:
            raise ValueError(f"two builders write {name}")
        with open(self._place(name), "wb", buffering=0) as file:  # noqa: PTH123  thousands of files
            rest = memoryview(data)
            while rest:  # a disk that is nearly full takes a part, and refuses at the next call
                rest = rest[file.write(rest) :]
        self._digests[name] = hashlib.sha256(data).digest()
        self.sizes[name] = len(data)

    def _place(self, name: str) -> str:
        folder = name.rpartition("/")[0]
        if folder not in self._folders:
            Path(self._aside, folder).mkdir(parents=True, exist_ok=True)
            self._folders.add(folder)
        return f"{self._aside}/{name}"

    def digest(self) -> str:
        """A hash over all files that were written, with their names."""
        found = hashlib.sha256()
        for name in sorted(self._digests):
            found.update(name.encode() + b"\0" + self._digests[name])
        return found.hexdigest()


@contextmanager
def writing_site(target: Path) -> Iterator[SiteWriter]:
    """A writer whose files become ``target`` at the end, unless an exception leaves what was there."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with held(target.parent):  # a folder without an owner yet is no killed build's
        # Remove what a killed build left: folders that no living process holds.
        for left in target.parent.glob(f".{target.name}.*.new"):
            with suppress(OSError):
                descriptor = os.open(left, os.O_RDONLY | os.O_CLOEXEC)
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(left, ignore_errors=True)
                finally:
                    os.close(descriptor)
        aside = target.with_name(f".{target.name}.{secrets.token_hex(4)}.new")
        aside.mkdir()
        lock = os.open(aside, os.O_RDONLY | os.O_CLOEXEC)
        fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        yield SiteWriter(aside)
        _swap(aside, target)
    finally:
        remove(aside)
        os.close(lock)


def remove(folder: Path) -> None:
    """Remove ``folder`` with all that is in it, as far as the system lets us; links are not followed."""
    with suppress(OSError):
        _remove(os.fspath(folder))
        return
    shutil.rmtree(folder, ignore_errors=True)


def _remove(folder: str) -> None:
    with os.scandir(folder) as found:
        for entry in found:
            if entry.is_dir(follow_symlinks=False):
                _remove(entry.path)
            else:
                os.unlink(entry.path)  # noqa: PTH108  thousands of files
    os.rmdir(folder)  # noqa: PTH106


def _swap(aside: Path, target: Path) -> None:
    """Put ``aside`` in the place of ``target``; what was there is in the place of ``aside`` afterwards."""
    with held(target.parent):
        if not target.exists():
            aside.rename(target)
        elif not _exchange(aside, target):
            # Exchange the folders; a kill between both steps leaves the old site in ``.NAME.*.old``.
            old = aside.with_suffix(".old")
            target.rename(old)
            try:
                aside.rename(target)
            except BaseException:
                old.rename(target)
                raise
            shutil.rmtree(old, ignore_errors=True)


def _exchange(first: Path, second: Path) -> bool:
    """Swap two folders in one step; false where the system cannot."""
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if rename is None:
        return False
    return bool(rename(_AT_FDCWD, os.fsencode(first), _AT_FDCWD, os.fsencode(second), _EXCHANGE) == 0)
