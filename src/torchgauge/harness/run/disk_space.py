"""Whether a store has room for what a run will write: asked before anything is measured."""

from __future__ import annotations

import os
from pathlib import Path

from torchgauge.counted import counted
from torchgauge.errors import InfrastructureError

BYTES_PER_CASE = 128 << 10
"""Plan, journal, logs and tables of a case: 13 to 106 kB over 18 runs of 2 to 88 cases of nine suites."""
BYTES_PER_RUN = 1 << 20
"""What a run takes whatever its cases; scratch files of compilers come on top, and nobody knows how many."""


def require_space(store: Path, cases: int) -> None:
    """Raise :class:`InfrastructureError` where the disk of ``store`` has less room than ``cases`` need."""
    there = os.statvfs(store)
    free, needed = there.f_bavail * there.f_frsize, BYTES_PER_RUN + cases * BYTES_PER_CASE
    if free < needed:
        raise InfrastructureError(
            f"{store} has {free / 1e6:.1f} MB free, and a run of {counted(cases, 'case')} may write"
            f" {needed / 1e6:.1f} MB",
            hint="free disk space, pass --store on another disk, or select fewer cases",
        )
