"""The worker side of a device: what a live process asks of it.

Every hook may be missing on real devices. A session never raises for a missing hook: it returns the
reason as :class:`Absent` (or ``None`` where the hook is optional) and lists it in :attr:`notes`, so that
the result says what could not be measured instead of showing a zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, Union

from torchgauge.records import Configuration, Scalar


@dataclass(frozen=True)
class Absent:
    """A value that the device cannot give, with the reason."""

    reason: str


@dataclass(frozen=True)
class MemoryReading:
    """Bytes and the counter that they were read from."""

    bytes: int
    provenance: str


class EventTimer(Protocol):
    """Device-side timing of a block of work."""

    def start(self) -> None:
        """Record the first event on the current stream."""

    def stop(self) -> None:
        """Record the second event on the current stream."""

    def elapsed_s(self) -> float:
        """Seconds between the events; waits for the second one."""


class DeviceSession(Protocol):
    """A device as one worker process uses it."""

    @property
    def name(self) -> str:
        """The device's name in case ids."""

    @property
    def index(self) -> int:
        """Index of the device among the visible ones."""

    @property
    def torch_device(self) -> Any:
        """The ``torch.device``, or None where the device runs no torch."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Hooks that are missing or degraded on this device, each with its reason."""

    @property
    def distributed_backend(self) -> str | None:
        """Name of the collectives backend, None where there is none."""

    def synchronize(self) -> None:
        """Wait until all work submitted to the device has ended."""

    def event_timer(self) -> EventTimer | None:
        """A new timer, or None where the device has no working timing events."""

    def reset_peak_memory(self) -> None:
        """Start a new peak; does nothing where there is no counter."""

    def peak_memory(self) -> Union[MemoryReading, Absent]:
        """Peak bytes of the device's own allocator since the last reset."""

    def seed(self, seed: int) -> None:
        """Seed the device's generator and the host's."""

    def is_oom(self, error: BaseException) -> bool:
        """Whether ``error`` means that the device (or host allocator) ran out of memory."""

    def is_lost(self, error: BaseException) -> bool:
        """Whether ``error`` means that the device is gone, whatever the model did."""

    def rng_state(self) -> Any:
        """The state of the device's generator and the host's; opaque."""

    def set_rng_state(self, state: Any) -> None:
        """Restore what :meth:`rng_state` gave."""

    @property
    def profiler_activity(self) -> str | None:
        """The activity of ``torch.profiler`` that records the device, None where there is none."""

    def autocast_dtypes(self) -> tuple[str, ...]:
        """Low-precision dtypes that autocast accepts, the device's default first: ``("bfloat16",)``."""

    def unsupported(self, configuration: Configuration) -> str | None:
        """Why this configuration cannot run on the device in this process; None where it may."""

    def fingerprint(self) -> dict[str, Scalar]:
        """Identity of the device for the environment: model, driver, serial class. Hashed."""

    def telemetry(self) -> dict[str, Scalar]:
        """Clocks, temperature, power, load as far as they can be read. Never hashed."""

    def calibration_dtypes(self) -> tuple[str, ...]:
        """Dtypes in which the calibration multiplies matrices."""
