"""Device-side timing with two events, whichever kind the device has."""

from __future__ import annotations

from typing import Any


class TorchEventTimer:
    """Two events of the device; ``elapsed_s`` waits for the second."""

    def __init__(self, first: Any, second: Any) -> None:
        self._first = first
        self._second = second

    def start(self) -> None:
        """Record the first event on the current stream."""
        self._first.record()

    def stop(self) -> None:
        """Record the second event on the current stream."""
        self._second.record()

    def elapsed_s(self) -> float:
        """Seconds between the events."""
        self._second.synchronize()
        return float(self._first.elapsed_time(self._second)) / 1e3
