"""Intel Gaudi through Habana's plugin: a device key of torch's own, and a compiler of its own."""

from __future__ import annotations

from torchgauge.devices.accelerator import AcceleratorSession
from torchgauge.devices.device import DeviceDescriptor, Provision, RunnerImage
from torchgauge.records import Configuration, Scalar

COMPILE_BACKEND = "hpu_backend"
MODE_VARIABLE = "PT_HPU_LAZY_MODE"

DEVICE = DeviceDescriptor(
    name="hpu",
    label="Intel Gaudi",
    session="torchgauge.devices.hpu:HpuSession",
    torch_type="hpu",
    fork_safe=False,  # A process acquires its device exclusively.
    runner_labels=("linux.hpu.gaudi3.8",),
    runner_image=RunnerImage("vault.habana.ai/gaudi-docker", "--runtime habana"),
    fixed_environment={
        # Lazy mode collects operators into graphs: an eager time would be another thing there. Bridges
        # up to 1.19 start lazy unless told otherwise.
        MODE_VARIABLE: "0",
        # Without it the bridge computes 64-bit integers in 32 bits.
        "PT_ENABLE_INT64_SUPPORT": "1",
        "TORCH_DEVICE_BACKEND_AUTOLOAD": "1",
    },
    visibility_variables=("HABANA_VISIBLE_MODULES", "HABANA_VISIBLE_DEVICES"),
    compile_backend=COMPILE_BACKEND,
    provision=Provision(
        distributions=("habana-torch-plugin",),
        install="use the image vault.habana.ai/gaudi-docker",
        tool="hl-smi",
        driver_files=("/sys/module/habanalabs/version",),
    ),
)


class HpuSession(AcceleratorSession):
    """Compiles with a backend of its own; the execution mode is part of the identity."""

    provision = DEVICE.provision

    def unsupported(self, configuration: Configuration) -> str | None:
        """Inductor has no code generator here, and the reason names the backend that does."""
        reason = super().unsupported(configuration)
        if reason is not None and configuration.backend == "inductor":
            return f"{reason}; on this device torch.compile requires backend {COMPILE_BACKEND!r}"
        return reason

    def fingerprint(self) -> dict[str, Scalar]:
        """Also the execution mode."""
        import os

        return {**super().fingerprint(), "device.lazy_mode": os.environ.get(MODE_VARIABLE, "unset")}
