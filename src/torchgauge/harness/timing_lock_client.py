"""The worker's half of the timing lock: one worker of a machine times at once, the others stand still.

The parent makes two named pipes per worker. Through ``asks`` the worker wakes the parent whenever it wants
the lock or gives it back (what it wants is in its events file); through ``grants`` the parent lets it go on.
A job without pipes has the machine to itself and never waits.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from torchgauge.harness.events import TIMING_LOCK, EventWriter


class TimingLockClient:
    """What a worker holds while it times; :meth:`held` may be nested, :meth:`away` leaves it for a while."""

    def __init__(self, pipes: str, events: EventWriter) -> None:
        """``pipes`` is the path of the pipes without their endings, "" where nobody else is about."""
        self._pipes, self._events = pipes, events
        self._depth = 0
        self._asks = self._grants = -1

    @contextmanager
    def held(self) -> Iterator[None]:
        """Wait until every other worker stands still; they go on when the block ends."""
        self._depth += 1
        if self._pipes and self._depth == 1:
            self._wait()
        try:
            yield
        finally:
            self._depth -= 1
            if self._pipes and self._depth == 0:
                self._say(wanted=False)

    @contextmanager
    def away(self) -> Iterator[None]:
        """Give the lock that is held back to the others while the block runs, and wait for it again."""
        depth, self._depth = self._depth, 0
        if self._pipes and depth:
            self._say(wanted=False)
        try:
            yield
        finally:
            if self._pipes and depth:
                self._wait()
            self._depth = depth

    def _wait(self) -> None:
        if self._grants < 0:
            self._asks = os.open(asks_of(self._pipes), os.O_WRONLY)
            self._grants = os.open(grants_of(self._pipes), os.O_RDONLY)
        self._say(wanted=True)
        os.read(self._grants, 1)

    def _say(self, *, wanted: bool) -> None:
        self._events.emit(TIMING_LOCK, wanted=wanted)
        os.write(self._asks, b".")


def asks_of(pipes: str) -> str:
    """Path of the pipe through which a worker wakes its parent."""
    return f"{pipes}.asks"


def grants_of(pipes: str) -> str:
    """Path of the pipe through which the parent gives the lock."""
    return f"{pipes}.grants"
