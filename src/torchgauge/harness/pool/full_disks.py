"""Which folders of a worker had no room left when it ended: the evidence that a full disk ended it.

A page of a mapped file that the disk has no room for is delivered as SIGBUS, as many faults of a program are.
"""

from __future__ import annotations

import os
import tempfile
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

FULL_BELOW = 1 << 20
"""Bytes: a disk with less room is full, since others take and give back some all the time."""
SHARED_MEMORY = Path("/dev/shm")  # noqa: S108  where processes share tensors: it is looked at only
LOOKS = 2
"""Looks that count: what a worker had open is given back when it ends, so the one before that counts too."""


def worker_folders(*own: Path) -> tuple[Path, ...]:
    """``own`` folders and those in which anything of a worker maps files."""
    return (*own, Path(tempfile.gettempdir()), SHARED_MEMORY)


@dataclass
class FullDisks:
    """What the last looks at the disks of ``folders`` found; one folder stands for each disk."""

    folders: Sequence[Path]
    _seen: deque[dict[int, str]] = field(default_factory=lambda: deque(maxlen=LOOKS))

    def look(self) -> None:
        """Note which disks are full now."""
        found: dict[int, str] = {}
        for folder in self.folders:
            try:
                device, there = folder.stat().st_dev, os.statvfs(folder)
            except OSError:
                continue
            free, size = there.f_bavail * there.f_frsize, there.f_blocks * there.f_frsize
            if size and free < FULL_BELOW:
                found.setdefault(device, f"{folder} had {free:,} of {size:,} bytes free")
        self._seen.append(found)

    @property
    def said(self) -> str:
        """The full disks of the last looks in words; empty where there were none."""
        full = {device: words for found in self._seen for device, words in found.items()}
        return ", ".join(full.values())
