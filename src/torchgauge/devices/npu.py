"""Ascend NPUs through ``torch_npu``, which renames PrivateUse1 when ``import torch`` loads it."""

from __future__ import annotations

from torchgauge.devices import hooks
from torchgauge.devices.device import DeviceDescriptor, Provision, RunnerImage
from torchgauge.devices.privateuse1 import PrivateUse1Session
from torchgauge.records import Scalar

DEVICE = DeviceDescriptor(
    name="npu",
    label="Ascend NPU",
    session="torchgauge.devices.npu:NpuSession",
    torch_type="npu",
    fork_safe=False,  # The ACL runtime does not survive a fork.
    runner_labels=("linux-arm64-npu-1",),
    runner_image=RunnerImage("ascendai/cann", "--privileged"),
    fixed_environment={"TORCH_DEVICE_BACKEND_AUTOLOAD": "1"},
    visibility_variables=("ASCEND_RT_VISIBLE_DEVICES",),
    provision=Provision(
        distributions=("torch-npu",),
        install="pip install torch-npu",
        tool="npu-smi",
        driver_files=("/usr/local/Ascend/driver/version.info",),
    ),
)


class NpuSession(PrivateUse1Session):
    """The out-of-tree device, with its own switches of precision."""

    provision = DEVICE.provision

    def _pin_precision(self) -> None:
        """HF32, a float32 of 19 bits, is on for convolutions by default (documentation of torch_npu)."""
        super()._pin_precision()
        for name in ("conv", "matmul"):
            switches = getattr(hooks.device_module(self._torch_type), name, None)
            if switches is None:
                self._note(
                    f"precision {name}",
                    f"torch.{self._torch_type}.{name} does not exist, so its precision is not pinned",
                )
                continue
            switches.allow_hf32 = False

    def precision(self) -> dict[str, Scalar]:
        """Also whether HF32 is allowed."""
        found = super().precision()
        for name in ("conv", "matmul"):
            allowed = getattr(getattr(hooks.device_module(self._torch_type), name, None), "allow_hf32", None)
            if allowed is not None:
                found[f"precision.{name}.allow_hf32"] = bool(allowed)
        return found
