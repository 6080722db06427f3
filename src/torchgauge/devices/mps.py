"""Apple GPUs through Metal: one device, no streams, and no counter of peak memory."""

from __future__ import annotations

import platform
from typing import Union

from torchgauge.devices import hooks
from torchgauge.devices.accelerator import AcceleratorSession
from torchgauge.devices.device import DeviceDescriptor, Provision
from torchgauge.devices.session import Absent, MemoryReading
from torchgauge.records import Scalar

DEVICE = DeviceDescriptor(
    name="mps",
    label="Apple GPU (Metal)",
    session="torchgauge.devices.mps:MpsSession",
    torch_type="mps",
    fork_safe=False,  # Objective-C runtimes refuse to be used after a fork.
    runner_labels=("macos-m1-stable", "macos-m2-15"),
    # An operator that Metal lacks must fail instead of running on the CPU unseen.
    fixed_environment={"PYTORCH_ENABLE_MPS_FALLBACK": "0"},
    provision=Provision(install="use a Mac with Apple silicon", tool="powermetrics"),
)


class MpsSession(AcceleratorSession):
    """Memory is what is allocated now, and the operating system is the driver."""

    provision = DEVICE.provision

    def reset_peak_memory(self) -> None:
        """Nothing to reset: Metal counts no peak."""

    def peak_memory(self) -> Union[MemoryReading, Absent]:
        """Absent: ``torch.mps`` gives current bytes only."""
        reason = "Metal reports only the memory allocated now, not a peak"
        self._note("peak memory", reason)
        return Absent(reason)

    def driver(self) -> str:
        """The release of macOS, which holds the driver."""
        return f"macOS {platform.mac_ver()[0]}"

    def telemetry(self) -> dict[str, Scalar]:
        """Also the bytes allocated now, by torch and by the driver."""
        found = super().telemetry()
        module = hooks.device_module(self._torch_type)
        for name in ("current_allocated_memory", "driver_allocated_memory"):
            try:
                found[f"device.{name}_bytes"] = int(getattr(module, name)())
            except hooks.HOOK_ERRORS as error:
                self._note(name, hooks.first_line(error))
        return found
