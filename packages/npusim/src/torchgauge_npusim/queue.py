"""When the device is done with what it was given: in time only, since results are there at once.

Every operator that computes occupies the device for `kernel_us` microseconds, one after another, beginning
when it is submitted or when the one before has ended. Whoever waits truthfully sleeps until then, and so does
whoever wants a value on the host. Without the fault nothing takes any time here.
"""

from __future__ import annotations

import threading
import time

from torchgauge_npusim.faults import ACTIVE


class Queue:
    """The one queue of the device; times are nanoseconds of `time.perf_counter_ns`."""

    def __init__(self, kernel_ns: int) -> None:
        """Each operator takes `kernel_ns`."""
        self.kernel_ns = kernel_ns
        self._end = 0
        self._lock = threading.Lock()  # autograd submits from its own thread

    def submit(self) -> None:
        """Accept one operator; returns at once."""
        if self.kernel_ns:
            with self._lock:
                self._end = max(self._end, time.perf_counter_ns()) + self.kernel_ns

    def reached(self) -> int:
        """When the device will be done with all that it was given, or now."""
        return max(self._end, time.perf_counter_ns())

    def wait(self, until: int | None = None) -> None:
        """Return when the device is done with all that it was given, or at the moment `until`."""
        end = self._end if until is None else until
        while (left := end - time.perf_counter_ns()) > 0:
            time.sleep(left * 1e-9)


QUEUE = Queue(1000 * (ACTIVE.kernel_us or 0))
