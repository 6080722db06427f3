"""A disk of a few pages that fills up: a tmpfs in a mount namespace of its own, which any user may have."""

from __future__ import annotations

import errno
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

PAGE = 4096
BALLAST = "ballast"
_NAMESPACE = ("unshare", "--user", "--map-root-user", "--mount")
_READ_ONLY = 'mount --bind "$1" "$1" && mount -o remount,ro,bind "$1" && shift && exec "$@"'
_MOUNT = 'mount -t tmpfs -o size="$1" none "$2" && shift 2 && exec "$@"'


def with_small_disk(folder: Path, command: Sequence[str], size: str = "1m") -> list[str]:
    """``command`` for a process to which ``folder`` is a disk of ``size``; skips where there can be none."""
    folder.mkdir(exist_ok=True)
    return [*_namespace(), "bash", "-c", _MOUNT, "bash", size, str(folder), *command]


def with_read_only(folder: Path, command: Sequence[str]) -> list[str]:
    """``command`` for a process to which ``folder`` cannot be written, even by root; skips likewise."""
    return [*_namespace(), "bash", "-c", _READ_ONLY, "bash", str(folder), *command]


def _namespace() -> tuple[str, ...]:
    if shutil.which("unshare") is None or subprocess.run([*_NAMESPACE, "true"], check=False).returncode:
        pytest.skip("no mount namespace can be had here")
    return _NAMESPACE


def run_on_small_disk(script: Path, folder: Path, *arguments: str) -> str:
    """What ``script`` prints, given ``folder``, which is a small disk, and ``arguments``."""
    command = with_small_disk(folder, [sys.executable, str(script), str(folder), *arguments])
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def fill(folder: Path, left: int = 0) -> None:
    """Fill the disk of ``folder`` but for ``left`` bytes; :func:`free` makes it empty again."""
    ballast = folder / BALLAST
    with ballast.open("ab", buffering=0) as file:
        try:
            while True:
                file.write(bytes(PAGE))
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
        file.truncate(max(0, file.tell() - left))


def free(folder: Path) -> None:
    """Take away what :func:`fill` wrote."""
    (folder / BALLAST).unlink()
