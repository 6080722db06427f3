"""NVIDIA and AMD GPUs: both are ``cuda`` to torch, and the torch build says which."""

from __future__ import annotations

from torchgauge.devices.accelerator import AcceleratorSession
from torchgauge.devices.device import DeviceDescriptor, Provision, RunnerImage
from torchgauge.devices.hooks import HOOK_ERRORS
from torchgauge.records import Scalar

DEVICE = DeviceDescriptor(
    name="cuda",
    label="NVIDIA or AMD GPU (CUDA, ROCm)",
    session="torchgauge.devices.cuda:CudaSession",
    torch_type="cuda",
    fork_safe=False,  # A context does not survive a fork, and some imports already make one.
    runner_labels=("linux.g5.4xlarge.nvidia.gpu", "linux.rocm.gpu.gfx942.1"),
    runner_image=RunnerImage(options="--gpus all"),
    # HIP reads CUDA's variable as well, so one variable selects on both.
    visibility_variables=("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"),
    provision=Provision(
        install="pip install torch --index-url https://download.pytorch.org/whl/cu130",
        tool="nvidia-smi",
        driver_files=("/sys/module/nvidia/version", "/sys/module/amdgpu/version"),
    ),
    flavour_labels={"cuda": "NVIDIA GPU (CUDA)", "hip": "AMD GPU (ROCm)"},
)


class CudaSession(AcceleratorSession):
    """Inherits everything but the precision: cuDNN and MIOpen convolve in TF32 unless told otherwise."""

    provision = DEVICE.provision

    def _pin_precision(self) -> None:
        import torch

        super()._pin_precision()
        torch.backends.cudnn.allow_tf32 = False

    def precision(self) -> dict[str, Scalar]:
        """Also the switches of cuDNN (MIOpen) and cuBLAS (hipBLAS)."""
        import torch

        found = super().precision()
        cudnn, matmul = torch.backends.cudnn, torch.backends.cuda.matmul
        for owner, prefix, names in (
            (cudnn, "cudnn", ("allow_tf32", "benchmark", "deterministic")),
            (matmul, "matmul", ("allow_tf32", "allow_fp16_reduced_precision_reduction")),
        ):
            for name in names:
                try:
                    found[f"precision.{prefix}.{name}"] = bool(getattr(owner, name))
                except HOOK_ERRORS as error:
                    self._note(f"precision {prefix}.{name}", str(error).partition("\n")[0])
        return found

    def fingerprint(self) -> dict[str, Scalar]:
        """Also the platform (``cuda`` or ``rocm``) and the library versions of the build."""
        import torch

        found = super().fingerprint()
        hip = getattr(torch.version, "hip", None)
        found["device.platform"] = "rocm" if hip else "cuda"
        found["device.toolkit"] = str(hip or torch.version.cuda)
        found["device.cudnn"] = str(torch.backends.cudnn.version())
        return found
