"""The oldest Python and torch on which a worker runs, and how a version is compared with them."""

from __future__ import annotations

import re

OLDEST_PYTHON = (3, 10)
OLDEST_TORCH = (2, 5)


def release(version: str) -> tuple[int, ...]:
    """Major and minor number of ``version``; suffixes such as ``+cpu`` or ``a0+git1234`` do not count."""
    found = re.match(r"(\d+)(?:\.(\d+))?", version)
    return tuple(int(part) for part in found.groups() if part) if found is not None else ()


def spelled(version: tuple[int, ...]) -> str:
    """``3.10`` for ``(3, 10)``."""
    return ".".join(map(str, version))
