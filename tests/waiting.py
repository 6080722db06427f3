"""How a test waits for a process, a server or a page: on a slow machine it is late, and never wrong."""

from __future__ import annotations

import time
from collections.abc import Callable, Sized
from typing import TypeVar

Answer = TypeVar("Answer")
Rest = TypeVar("Rest", bound=Sized)

PATIENCE_S = 240.0
"""What success may take. It costs nothing where the machine is quick; only a failure lasts that long."""


def _pause() -> None:
    time.sleep(0.02)


def wait_until(
    condition: Callable[[], Answer],
    waiting_for: str | Callable[[], object],
    pause: Callable[[], object] = _pause,
) -> Answer:
    """Return what ``condition`` returns, once that is true; fail with what was waited for.

    ``waiting_for`` is a text, or is called for one after the last attempt; ``pause`` comes between attempts.
    """
    deadline = time.monotonic() + PATIENCE_S
    while not (answer := condition()):
        if time.monotonic() >= deadline:
            what = waiting_for if isinstance(waiting_for, str) else waiting_for()
            raise AssertionError(f"waited {PATIENCE_S:.0f} s in vain for {what}")
        pause()
    return answer


def left_after_patience(remaining: Callable[[], Rest]) -> Rest:
    """Return what ``remaining`` returns, once that is empty or patience has ended."""
    deadline = time.monotonic() + PATIENCE_S
    while len(left := remaining()) and time.monotonic() < deadline:
        _pause()
    return left
