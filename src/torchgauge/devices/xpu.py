"""Intel GPUs: ``xpu`` is in torch's own tree."""

from __future__ import annotations

from torchgauge.devices.accelerator import AcceleratorSession
from torchgauge.devices.device import DeviceDescriptor, Provision, RunnerImage
from torchgauge.records import Scalar

DEVICE = DeviceDescriptor(
    name="xpu",
    label="Intel GPU",
    session="torchgauge.devices.xpu:XpuSession",
    torch_type="xpu",
    fork_safe=False,  # A Level Zero context does not survive a fork.
    runner_labels=("pvc", "bmg-test"),
    runner_image=RunnerImage("intelgpu/ubuntu-24.04-lts2", "--device=/dev/dri"),
    visibility_variables=("ZE_AFFINITY_MASK", "ONEAPI_DEVICE_SELECTOR"),
    provision=Provision(
        install="pip install torch --index-url https://download.pytorch.org/whl/xpu",
        tool="xpu-smi",
        driver_files=("/sys/module/xe/version", "/sys/module/i915/version"),
    ),
)


class XpuSession(AcceleratorSession):
    """Inherits everything; the identity also says whether float64 runs in hardware."""

    provision = DEVICE.provision

    def fingerprint(self) -> dict[str, Scalar]:
        """Also ``device.has_fp64``: client parts lack it, and emulation is slow or refused."""
        found = super().fingerprint()
        has_fp64 = self._property("has_fp64")
        if has_fp64 is not None:
            found["device.has_fp64"] = bool(has_fp64)
        return found
