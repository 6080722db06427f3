"""What is installed in an interpreter, read from package metadata without importing anything.

Standard library only: the probe's child loads this file by its path.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
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
        found[point.name, point.value, package] = {
            "name": point.name,
            "value": point.value,
            "package": package,
            "version": version,
        }
    return [found[key] for key in sorted(found)]


def silent_packages(names: Iterable[str] = ()) -> dict[str, str]:
    """Distribution to version, for those that name nothing in :data:`AUTOLOAD_GROUP`, sorted by name.

    Of those in ``names``, all where there is none. Such a package may hold a device all the same; who wants
    to use it must import it by name.
    """
    loud = {plain(item["package"]) for item in extensions()}
    wanted = {plain(name) for name in names}
    found: dict[str, str] = {}
    for distribution in metadata.distributions():
        name = plain(distribution.metadata["Name"] or "")
        if name and name not in loud and (not wanted or name in wanted):
            found.setdefault(name, distribution.version)
    return dict(sorted(found.items()))


def plain(package: str) -> str:
    """A distribution's name as package indexes normalise it."""
    return re.sub(r"[-_.]+", "-", package).lower()


def provides(package: str, device: str) -> bool:
    """Whether a distribution is called after a device: ``torch-xyz`` or ``xyz`` for ``xyz``."""
    return device.lower() in set(plain(package).split("-")) - {"torch", "pytorch"}


def without_entry(package: str, version: str) -> str:
    """Why a device whose package is installed is not there."""
    return (
        f"package {package} {version} is installed without an entry point in {AUTOLOAD_GROUP}, "
        "so import torch does not load it"
    )


ADD_ENTRY = (
    f'add [project.entry-points."{AUTOLOAD_GROUP}"] to the package\'s metadata, or import it by name; see '
    "https://docs.pytorch.org/tutorials/unstable/python_extension_autoload.html"
)
"""What to do about :func:`without_entry`."""
