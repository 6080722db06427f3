"""The only reader of time, replaceable in tests.

Why: every timestamp and duration of the parent goes through one place, so that a test can move time
without sleeping. The worker's timed blocks read the same steady clock directly for lack of overhead.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from typing import Protocol

DAY_S = 86_400.0
"""Seconds of a day; days are those of UTC, which have no other length."""
LATEST = 4e9
"""Latest date that is taken from a file, in seconds since the epoch (the year 2096)."""


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


@contextmanager
def alarm(every_s: float, ring: Callable[[], None]) -> Iterator[None]:
    """Call ``ring`` every ``every_s`` seconds (0: never) amid what runs or waits inside, where it may raise.

    An alarm within another one silences that until it is over. None rings outside of the main thread.
    """
    if not every_s or threading.current_thread() is not threading.main_thread():
        yield
        return
    handler = signal.signal(signal.SIGALRM, lambda _number, _frame: ring())
    outer = signal.setitimer(signal.ITIMER_REAL, every_s, every_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, *outer)
