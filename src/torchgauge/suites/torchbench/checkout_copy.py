"""A copy of a checkout for one process, with data of our own where upstream's code looks for it.

Upstream opens its data by paths that it derives from where its own files lie, with and without resolving
links. So its Python files are copied, all else is linked, and what a model writes beside its data lands in
the copy: nothing is ever written into the checkout.
"""

from __future__ import annotations

import atexit
import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Collection
from pathlib import Path

PREFIX = "torchgauge-torchbench-"
_PACKAGE = "torchbenchmark"
_MODELS = ("models", "canary_models")
_NOT_TAKEN = {".git", "__pycache__"}
_LOCK = ".in-use"
_JUST_NOW_S = 60.0


def copy_of(checkout: Path, model: str) -> Path:
    """A temporary copy of ``checkout`` with the code of ``model`` and of no other; gone with this process.

    A process that was killed leaves its copy behind: the next call removes it.
    """
    _remove_abandoned()
    copy = Path(tempfile.mkdtemp(prefix=PREFIX)).resolve()
    # The lock lasts as long as this process or a fork of it.
    held = os.open(copy / _LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC)
    fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    atexit.register(shutil.rmtree, copy, ignore_errors=True)
    for item in checkout.iterdir():
        if item.name not in _NOT_TAKEN | {_PACKAGE}:
            (copy / item.name).symlink_to(item)
    _take(checkout / _PACKAGE, copy / _PACKAGE, skip=set(_MODELS))
    for folder in _MODELS:
        source = checkout / _PACKAGE / folder
        if source.is_dir():
            others = {item.name for item in source.iterdir() if item.is_dir() and item.name != model}
            _take(source, copy / _PACKAGE / folder, skip=others)
    return copy


def _take(source: Path, target: Path, skip: Collection[str] = ()) -> None:
    """Make ``target`` like ``source``: folders made, Python files copied, other files linked."""
    target.mkdir()
    for item in source.iterdir():
        if item.name in _NOT_TAKEN or item.name in skip:
            continue
        if item.is_dir():
            _take(item, target / item.name)
        elif item.suffix == ".py":
            shutil.copyfile(item, target / item.name)
        else:
            (target / item.name).symlink_to(item)


def _remove_abandoned() -> None:
    """Remove the copies that no process holds; one that was made just now may not be locked yet."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        try:
            if time.time() - folder.stat().st_mtime < _JUST_NOW_S:
                continue
            with (folder / _LOCK).open("rb+") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
        except OSError:  # held, another user's, or gone meanwhile
            continue
