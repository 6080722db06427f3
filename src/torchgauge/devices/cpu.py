"""The host CPU: the device that every machine has, and the reference of all others."""

from __future__ import annotations

from typing import Union

from torchgauge.devices.accelerator import AcceleratorSession
from torchgauge.devices.device import DeviceDescriptor
from torchgauge.devices.host import host_conditions, host_identity
from torchgauge.devices.native_isa import FACT, native_isa
from torchgauge.devices.session import Absent, EventTimer, MemoryReading
from torchgauge.errors import InfrastructureError
from torchgauge.records import Scalar

DEVICE = DeviceDescriptor(
    name="cpu",
    label="CPU",
    session="torchgauge.devices.cpu:CpuSession",
    torch_type="cpu",
    fork_safe=True,
    runner_labels=("ubuntu-24.04",),
    # No out-of-tree extension may slow down or break what runs on the CPU alone.
    fixed_environment={"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"},
)


class CpuSession(AcceleratorSession):
    """The CPU: work has ended when the call returns, and the host's clock is the device's."""

    def __init__(self, name: str = "cpu", index: int = 0) -> None:
        if index != 0:
            raise InfrastructureError(
                f"{name!r} is a single device: there is no index {index}",
                hint=f"pass {name} without an index; threads and pinning choose the cores",
            )
        super().__init__(name, index, torch_type="cpu")

    def synchronize(self) -> None:
        """Nothing to wait for: operators return when they have finished."""

    def event_timer(self) -> EventTimer | None:
        """None: an event would read the same clock as the host."""
        self._note("events", "the CPU has no timing events; wall time is device time")
        return None

    def reset_peak_memory(self) -> None:
        """Nothing to reset: there is no allocator counter."""

    def peak_memory(self) -> Union[MemoryReading, Absent]:
        """Absent: the harness measures the peak resident set of a process of its own."""
        reason = "the CPU has no allocator counter; the peak RSS of a separate process is used"
        self._note("peak memory", reason)
        return Absent(reason)

    def fingerprint(self) -> dict[str, Scalar]:
        """Model, cores, memory and the instruction set that torch's kernels use."""
        found = {**host_identity(), **self.precision()}
        found["device.type"] = "cpu"
        found["device.model"] = found["cpu.model"]
        try:
            import torch

            found["cpu.capability"] = str(torch.backends.cpu.get_cpu_capability())
        except (AttributeError, RuntimeError) as error:
            self._note("capability", f"torch.backends.cpu.get_cpu_capability: {error}")
        return found

    def dtype_facts(self, dtype: str) -> dict[str, Scalar]:
        """Which instructions of this processor compute in ``dtype``; nothing for one that needs none."""
        said = native_isa(dtype)
        return {FACT: said} if said else {}

    def telemetry(self) -> dict[str, Scalar]:
        """Load, clock, memory, throttling and stolen time of the host."""
        return host_conditions()
