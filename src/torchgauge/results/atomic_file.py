"""Files that are either the old ones or the new ones, whatever kills the writer.

Why: a plan, a table or a store's version that is half written would be believed by the next reader.
Everything is written aside, fsynced, renamed, and the folder fsynced, in that order.
"""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from torchgauge.errors import InfrastructureError

TEMPORARY_SUFFIX = ".tmp"
"""Ending of files that are being written aside; readers ignore them."""


FREE = "free disk space or fix the permissions"
MORE_FILES = "raise the limit of open files: ulimit -n 1024"
REPEAT = f"{FREE}, then repeat; what was there before is intact"


def write_atomically(path: Path, data: bytes, hint: str = REPEAT) -> None:
    """Put ``data`` at ``path``, durable on return; raises :class:`InfrastructureError` on a failing disk.

    What is there and is no file, such as a pipe or /dev/null, is written to: a rename would put a file in its
    place, for everybody on the machine.
    """
    if path.exists() and not path.is_file() and not path.is_dir():
        with storage_errors(path, hint):
            path.write_bytes(data)
        return
    with writing_aside(path) as aside, storage_errors(path, hint):
        aside.write_bytes(data)
        fsync_path(aside)
        publish(aside, path)


@contextmanager
def writing_aside(path: Path) -> Iterator[Path]:
    """A fresh name in the folder of ``path`` to write to; what was not renamed away is removed."""
    aside = aside_of(path)
    try:
        yield aside
    finally:
        with suppress(OSError):
            aside.unlink(missing_ok=True)


@contextmanager
def storage_errors(path: Path, hint: str = REPEAT) -> Iterator[None]:
    """Turn an ``OSError`` about ``path`` into an :class:`InfrastructureError` that says what to try.

    What ``hint`` says of the disk is said of open files instead where they are what there are too many of.
    """
    try:
        yield
    except OSError as error:
        if isinstance(error, FileNotFoundError | NotADirectoryError) and not path.parent.is_dir():
            hint = f"make the folder {path.parent} first, or pass another path"
        if too_many_files(error):
            hint = hint.replace(FREE, MORE_FILES)
        raise InfrastructureError(
            f"{path} cannot be written: {error.strerror or error}", hint=hint
        ) from error


def too_many_files(error: OSError) -> bool:
    """Whether it is about the files that this process, or this machine, may have open."""
    return error.errno in (errno.EMFILE, errno.ENFILE)


def aside_of(path: Path) -> Path:
    """A name beside ``path`` that no other writer uses and no reader believes."""
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}{TEMPORARY_SUFFIX}")


def publish(aside: Path, path: Path) -> None:
    """Rename the fsynced file ``aside`` to ``path`` and make the name durable."""
    aside.replace(path)
    fsync_path(path.parent)


def fsync_path(path: Path) -> None:
    """Fsync a file or a folder by its name."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
