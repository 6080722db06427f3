"""The environment of a measurement: what is hashed as its identity, and the conditions beside it.

Worker side. Environment variables pass an allow-list, and nothing that may hold a secret or a path of this
machine is recorded.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import PurePath

from torchgauge.devices import installed
from torchgauge.devices.host import host_conditions, host_identity
from torchgauge.devices.library import library
from torchgauge.devices.session import DeviceSession
from torchgauge.records import Environment, Scalar

VARIABLE = re.compile(
    r"(?:OMP|GOMP|KMP|MKL|OPENBLAS|BLIS|VECLIB|NUMEXPR|ATEN|DNNL|ONEDNN|TORCH|TORCHINDUCTOR|TORCHDYNAMO|AOT"
    r"|PYTORCH|TRITON|CUBLAS|CUDNN|NCCL|MIOPEN|HIPBLASLT|NVIDIA_TF32|CUDA|HIP|HSA|ZE|SYCL|UR|ASCEND|HCCL"
    r"|HABANA|PT_HPU|PT_ENABLE|MALLOC)_[A-Z0-9_]+|GLIBC_TUNABLES|LD_PRELOAD|CXX"
)
"""Variables that change what torch computes or how fast; others are never read."""

VISIBILITY = re.compile(
    r"[A-Z0-9_]+_VISIBLE_(?:DEVICES|MODULES|CORES|CHIPS)|ZE_AFFINITY_MASK|ONEAPI_DEVICE_SELECTOR"
)
"""Variables that choose among equal devices: conditions, as the machine class is the same either way."""

PRIVATE = re.compile(r"TOKEN|KEY|SECRET|PASSW|CREDENTIAL|AUTH|URL|PROXY|USER")
CHANGES_PER_RUN = re.compile(
    r"(?:_DIR|_PATH|_HOME|_FILE|_LOGS|_TRACE|_DEBUG|_OUT|_CACHE|_ROOT)$|_LOGS_|_TRACE_|_DUMP_"
)
"""Places and logs: they differ between runs and say nothing of the machine, so they are left out."""


def environment(session: DeviceSession) -> Environment:
    """The record of where ``session`` runs; call it before a configuration sets threads or variables."""
    identity: dict[str, Scalar] = {**host_identity(), **_python(), **_packages(), **_variables()}
    identity.update(_compiler())
    if session.torch_device is not None:
        identity.update(_torch())
    identity.update(session.fingerprint())
    conditions = {**host_conditions(), **_visibility(), **session.telemetry()}
    return Environment(
        device=session.name,
        identity=tuple(sorted(identity.items())),
        conditions=tuple(sorted(conditions.items())),
        notes=session.notes,
    )


def _python() -> dict[str, Scalar]:
    return {
        "python.version": platform.python_version(),
        "python.implementation": sys.implementation.name,
    }


def _packages() -> dict[str, Scalar]:
    found: dict[str, Scalar] = {}
    for name, version in installed.versions().items():
        copy = library(name)
        usual = copy is None or (copy.version == version and not copy.edited)
        found[f"package.{name}"] = version if copy is None or usual else copy._replace(place="").text
    if os.environ.get("TORCH_DEVICE_BACKEND_AUTOLOAD", "1") == "1":
        for point in installed.extensions():
            found[f"extension.{point['name']}"] = f"{point['package']} {point['version']}".strip()
    return found


def _variables() -> dict[str, Scalar]:
    found: dict[str, Scalar] = {}
    for name, value in os.environ.items():
        if VISIBILITY.fullmatch(name) or PRIVATE.search(name) or CHANGES_PER_RUN.search(name):
            continue
        if VARIABLE.fullmatch(name):
            found[f"env.{name}"] = _without_paths(value)
    return found


def _visibility() -> dict[str, Scalar]:
    return {f"env.{name}": value[:200] for name, value in os.environ.items() if VISIBILITY.fullmatch(name)}


def _without_paths(value: str) -> str:
    """File names without their folders: the library counts, not where this machine keeps it."""
    parts = re.split(r"([:, ])", value)
    return "".join(PurePath(part).name if part.startswith("/") else part for part in parts)[:200]


def _compiler() -> dict[str, Scalar]:
    """The C++ compiler that inductor would call."""
    for name in (os.environ.get("CXX", ""), "g++", "clang++"):
        path = shutil.which(name) if name else None
        if path is None:
            continue
        try:
            found = subprocess.run(
                [path, "--version"], capture_output=True, text=True, timeout=10, check=False
            )
        except (OSError, subprocess.TimeoutExpired):
            continue
        lines = found.stdout.splitlines()
        if lines:
            return {"compiler.cxx": lines[0].strip()}
    return {}


def _torch() -> dict[str, Scalar]:
    import torch

    version = torch.version
    flavours = ((name, getattr(version, name, None)) for name in ("cuda", "hip", "xpu"))
    return {
        "torch.version": str(torch.__version__),
        "torch.git_commit": str(getattr(version, "git_version", "") or ""),
        "torch.flavour": next((f"{name} {value}" for name, value in flavours if value), "cpu"),
        "torch.debug": bool(getattr(version, "debug", False)),
        "torch.threads": int(torch.get_num_threads()),
        "torch.interop_threads": int(torch.get_num_interop_threads()),
        "torch.onednn": bool(torch.backends.mkldnn.is_available()),
        "torch.mkl": bool(torch.backends.mkl.is_available()),
    }
