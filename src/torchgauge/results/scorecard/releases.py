"""Releases of torch in versions of torch: which one a row says something of."""

from __future__ import annotations

import re
from dataclasses import dataclass

_VERSION = re.compile(r"(?P<major>\d+)\.(?P<minor>\d+)(\.\d+)*(?P<preview>(a|b|rc|\.dev)\d+)?")


@dataclass(frozen=True, order=True)
class Release:
    """``2.13``, or what was built before it; ``final`` is whether it was released."""

    major: int
    minor: int
    final: bool = True

    @property
    def pair(self) -> tuple[int, int]:
        """Its two numbers."""
        return self.major, self.minor

    @property
    def base(self) -> str:
        """Its two numbers as text."""
        return f"{self.major}.{self.minor}"

    @property
    def name(self) -> str:
        """As a reader sees it."""
        return self.base if self.final else f"{self.base} (preview)"


def release_in(version: str | None) -> Release | None:
    """The release of a version such as ``2.13.0+cpu`` or ``2.14.0.dev20261101``; None where it is none."""
    found = _VERSION.match(version or "")
    if found is None:
        return None
    return Release(int(found["major"]), int(found["minor"]), found["preview"] is None)
