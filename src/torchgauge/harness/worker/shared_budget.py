"""Measuring time that one group leaves to the next: seconds in a file that the workers of a device share.

One worker times at once, so nobody else reads or writes meanwhile. Worker side; a file that cannot be read
or written is an empty shared budget.
"""

from __future__ import annotations

import math
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class SharedBudget:
    """The shared budget in the file ``path``; without a path it is always empty."""

    path: str = ""

    def seconds(self) -> float:
        """What earlier groups left over."""
        if not self.path:
            return 0.0
        try:
            fd = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK)  # a pipe in its place keeps nobody waiting
            with os.fdopen(fd, "rb") as file:
                found = float(file.read(64))
        except (OSError, ValueError, TypeError):
            return 0.0
        return found if math.isfinite(found) and found > 0.0 else 0.0

    def settle(self, left: float) -> None:
        """Put in ``left`` seconds; what is negative is taken out, and never more than there is."""
        if not self.path:
            return
        aside = Path(f"{self.path}.{os.getpid()}")
        with suppress(OSError):
            aside.write_text(repr(max(0.0, self.seconds() + left)), encoding="utf-8")
            aside.replace(self.path)
