"""What is installed in an interpreter, read from package metadata without importing anything.

Standard library only: the probe's child loads this file by its path.
"""

from __future__ import annotations

from importlib import metadata

TORCH_LIBRARIES = (
    "torch",
    "torchvision",
    "torchaudio",
    "torchao",
    "timm",
    "transformers",
    "diffusers",
    "accelerate",
    "safetensors",
    "numpy",
    "triton",
    "pytorch-triton",
    "pytorch-triton-rocm",
    "pytorch-triton-xpu",
    "intel-extension-for-pytorch",
    "torch-npu",
    "habana-torch-plugin",
)
"""Distributions whose version may change a number or a status."""

AUTOLOAD_GROUP = "torch.backends"
"""Entry points that ``import torch`` loads (``torch._import_device_backends``)."""

COMPILE_GROUP = "torch_dynamo_backends"
"""Entry points that register backends of ``torch.compile``."""


def versions(names: tuple[str, ...] = TORCH_LIBRARIES) -> dict[str, str]:
    """Distribution to version, for those of ``names`` that are installed, sorted by name."""
    found = {}
    for name in names:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return dict(sorted(found.items()))


def extensions(group: str = AUTOLOAD_GROUP) -> list[dict[str, str]]:
    """Name, value, package and version of every entry point in ``group``, sorted by name."""
    found = {}
    for point in metadata.entry_points(group=group):
        package = point.dist.name if point.dist is not None else ""
        version = point.dist.version if point.dist is not None else ""
        found[point.name, point.value] = {
            "name": point.name,
            "value": point.value,
            "package": package,
            "version": version,
        }
    return [found[key] for key in sorted(found)]
