"""The only reader of time, replaceable in tests.

Why: every timestamp and duration of the parent goes through one place, so that a test can move time
without sleeping. The worker's timed blocks read the same steady clock directly for lack of overhead.
"""

from __future__ import annotations

import time
from datetime import datetime, timezone
from typing import Protocol

DAY_S = 86_400.0
"""Seconds of a day; days are those of UTC, which have no other length."""


class Clock(Protocol):
    """What the harness needs of time."""

    def now(self) -> float:
        """Seconds since the epoch, UTC; may jump."""

    def steady(self) -> float:
        """Seconds on a clock that never goes back; only differences mean anything."""


class SystemClock:
    """The machine's own clocks."""

    def now(self) -> float:
        """Seconds since the epoch, UTC."""
        return time.time()

    def steady(self) -> float:
        """Seconds of the performance counter."""
        return time.perf_counter()


SYSTEM_CLOCK: Clock = SystemClock()


def utc(seconds: float) -> datetime:
    """The moment ``seconds`` after the epoch, in UTC."""
    return datetime.fromtimestamp(seconds, tz=timezone.utc)
