"""The folder in which torchgauge keeps what it can make or fetch again: one answer for every room."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

from torchgauge.errors import InfrastructureError


def user_cache() -> Path:
    """Return the absolute path of torchgauge's folder among the caches of this user.

    A relative ``XDG_CACHE_HOME`` is ignored, as the XDG specification requires. A user without a home has a
    private folder among temporary files. Raises :class:`InfrastructureError` where it is somebody else's.
    """
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    try:
        base = base if base.is_absolute() else (Path.home() / ".cache").absolute()
        return base / "torchgauge"
    except RuntimeError:  # neither HOME nor an entry of this user
        folder = Path(tempfile.gettempdir(), f"torchgauge-{os.geteuid()}").absolute()
    folder.mkdir(exist_ok=True, mode=0o700)
    facts = folder.lstat()
    if not stat.S_ISDIR(facts.st_mode) or facts.st_uid != os.geteuid() or facts.st_mode & 0o077:
        raise InfrastructureError(f"{folder} is not a folder that only you can access", hint="set HOME")
    return folder
