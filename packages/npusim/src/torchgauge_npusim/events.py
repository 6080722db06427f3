"""Events: taken away, or given with a clock that is right or wrong in one of the ways of `CLOCKS`.

Without a fault the device's events can be recorded and cannot be asked for a time, as PyTorch gives them to a
device that is registered from Python.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

import torch

from torchgauge_npusim.identity import DEVICE_NAME
from torchgauge_npusim.queue import QUEUE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

CLOCKS: Final[Mapping[str, Callable[[int], float]]] = {
    "right": lambda ns: ns / 1e6,
    "submission": lambda ns: ns / 1e6,
    "seconds": lambda ns: ns / 1e9,
    "microseconds": lambda ns: ns / 1e3,
    "nanoseconds": float,
    "zero": lambda ns: 0.0,
    "backwards": lambda ns: -ns / 1e6,
    "fast": lambda ns: 1.5 * ns / 1e6,
}
"""What `elapsed_time`, whose unit is the millisecond, says of nanoseconds between two events.

Events of `submission` are stamped when the host records them, whenever the device gets there.
"""


def take_away() -> None:
    """Let every event of the device refuse what it is asked, in PyTorch's words."""
    # The class is C++ and takes no new attributes; a subclass in its place does.
    given: Any = torch.Event

    class Event(given):  # type: ignore[misc]
        def record(self, *args: Any, **kwargs: Any) -> Any:
            """Record, on any device but ours."""
            if self.device.type == DEVICE_NAME:
                # c10/core/impl/DeviceGuardImplInterface.h
                message = "Backend doesn't support events."
                raise RuntimeError(message)
            return super().record(*args, **kwargs)

    torch.Event = Event  # type: ignore[misc]


def give(clock: str) -> None:
    """Give the device's events the times of its queue, read by the `clock` of that name."""
    given: Any = torch.Event
    said = CLOCKS[clock]
    at_once = clock == "submission"

    class Event(given):  # type: ignore[misc]
        def record(self, *args: Any, **kwargs: Any) -> Any:
            """Record: on our device, note when its queue will get here."""
            if self.device.type != DEVICE_NAME:
                return super().record(*args, **kwargs)
            self.reached_ns = time.perf_counter_ns() if at_once else QUEUE.reached()
            return None

        def query(self) -> Any:
            """Whether the queue has got to the event."""
            if self.device.type != DEVICE_NAME:
                return super().query()
            return time.perf_counter_ns() >= self.reached_ns

        def synchronize(self) -> Any:
            """Wait until the queue has got to the event."""
            if self.device.type != DEVICE_NAME:
                return super().synchronize()
            return QUEUE.wait(self.reached_ns)

        def elapsed_time(self, end: Any) -> Any:
            """What the clock shows between this event and `end`: milliseconds, if it is right."""
            if self.device.type != DEVICE_NAME:
                return super().elapsed_time(end)
            return said(end.reached_ns - self.reached_ns)

    torch.Event = Event  # type: ignore[misc]
