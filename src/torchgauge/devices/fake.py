"""A device that runs no torch at all, so that tests and demonstrations exercise the whole harness in seconds.

Its memory is made up, with the provenance ``fake``; its time is wall time.
"""

from __future__ import annotations

import os
import random
import time
from typing import Any, Union

from torchgauge.devices.device import DeviceDescriptor
from torchgauge.devices.session import Absent, EventTimer, MemoryReading
from torchgauge.records import Configuration, Scalar

PEAK_VARIABLE = "TORCHGAUGE_FAKE_PEAK_BYTES"
"""Bytes that the peak counter shows, or ``absent`` for a device without one."""

DEFAULT_PEAK_BYTES = 1 << 20

DEVICE = DeviceDescriptor(
    name="fake",
    label="Fake device (no torch)",
    session="torchgauge.devices.fake:FakeSession",
    torch_type=None,
    fork_safe=True,
)


class FakeEventTimer:
    """Host time under the interface of device events."""

    def __init__(self) -> None:
        self._start_s = 0.0
        self._stop_s = 0.0

    def start(self) -> None:
        """Read the clock."""
        self._start_s = time.perf_counter()

    def stop(self) -> None:
        """Read the clock again."""
        self._stop_s = time.perf_counter()

    def elapsed_s(self) -> float:
        """Seconds between the two readings."""
        return self._stop_s - self._start_s


class FakeSession:
    """A device whose work ends at once."""

    torch_device: Any = None  # the device runs no torch, so it has no collectives and nothing to profile
    distributed_backend: str | None = None
    profiler_activity: str | None = None

    def __init__(self, name: str = "fake", index: int = 0) -> None:
        self.name = name
        self.index = index
        self._notes = ["fake: nothing was measured on hardware"]

    @property
    def notes(self) -> tuple[str, ...]:
        """That the device is fake, and what it was told to lack."""
        return tuple(self._notes)

    def synchronize(self) -> None:
        """Nothing to wait for."""

    def event_timer(self) -> EventTimer | None:
        """A timer over the host's steady clock."""
        return FakeEventTimer()

    def reset_peak_memory(self) -> None:
        """Nothing to reset: the peak is a constant."""

    def peak_memory(self) -> Union[MemoryReading, Absent]:
        """The constant that :data:`PEAK_VARIABLE` sets."""
        value = os.environ.get(PEAK_VARIABLE, str(DEFAULT_PEAK_BYTES))
        if value == "absent":
            reason = f"peak memory: {PEAK_VARIABLE} is set to 'absent'"
            if reason not in self._notes:
                self._notes.append(reason)
            return Absent(reason)
        return MemoryReading(int(value), "fake")

    def seed(self, seed: int) -> None:
        """Seed Python's own generator."""
        random.seed(seed)

    def is_oom(self, error: BaseException) -> bool:
        """Whether the host ran out of memory."""
        return isinstance(error, MemoryError)

    def is_lost(self, error: BaseException) -> bool:
        """Never: what does not exist cannot go away."""
        return False

    def rng_state(self) -> Any:
        """The state of Python's own generator."""
        return random.getstate()

    def set_rng_state(self, state: Any) -> None:
        """Restore it."""
        random.setstate(state)

    def autocast_dtypes(self) -> tuple[str, ...]:
        """None: there is no autocast without torch."""
        return ()

    def unsupported(self, configuration: Configuration) -> str | None:
        """Everything that is compiled: there is no torch.compile without torch."""
        return (
            "the fake device does not run torch, so nothing is compiled" if configuration.compiled else None
        )

    def fingerprint(self) -> dict[str, Scalar]:
        """That the device is fake."""
        return {"device.type": "fake", "device.model": "fake"}

    def telemetry(self) -> dict[str, Scalar]:
        """Nothing: there is no hardware."""
        return {}

    def calibration_dtypes(self) -> tuple[str, ...]:
        """None: there is nothing to calibrate."""
        return ()
