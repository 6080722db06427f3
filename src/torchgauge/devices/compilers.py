"""Which backends of ``torch.compile`` can serve a device type, and why the others cannot.

The probe's child loads this file under a package name of its own, hence the relative import. Standard
library and torch only.
"""

from __future__ import annotations

import sysconfig
from pathlib import Path

from .hooks import HOOK_ERRORS, first_line

TRITON_TYPES = ("cuda", "xpu", "mtia")
"""Device types whose inductor kernels are Triton's (``init_backend_registration`` of torch 2.13)."""


def compile_refusal(torch_type: str, backend: str) -> str | None:
    """Why ``torch.compile(backend=...)`` cannot work for the device type; None where it may."""
    if backend == "inductor":
        return _inductor_refusal(torch_type)
    import torch._dynamo

    known = torch._dynamo.list_backends(exclude_tags=None)
    if backend not in known:
        return f"torch.compile has no backend {backend!r} in this process"
    try:
        torch._dynamo.lookup_backend(backend)
    except HOOK_ERRORS as error:
        return f"backend {backend!r} cannot be loaded: {first_line(error)}"
    return None


def _inductor_refusal(torch_type: str) -> str | None:
    try:
        from torch._inductor.codegen import common

        common.init_backend_registration()
        if common.get_scheduling_for_device(torch_type) is None:
            return f"inductor has no code generator registered for device type {torch_type!r}"
        if torch_type == "cpu":
            return _cpp_refusal()
        if torch_type in TRITON_TYPES:
            from torch.utils._triton import has_triton

            if not has_triton():
                return f"inductor needs Triton for {torch_type!r}, and no working Triton is installed"
    except HOOK_ERRORS as error:
        return f"inductor cannot be loaded: {first_line(error)}"
    return None


def _cpp_refusal() -> str | None:
    from torch._inductor import cpp_builder

    try:
        cpp_builder.get_cpp_compiler()
    except HOOK_ERRORS as error:
        return f"inductor needs a C++ compiler: {first_line(error)}"
    include = sysconfig.get_paths()["include"]
    if not Path(include, "Python.h").exists():
        return f"inductor needs the headers of this Python: Python.h is missing in {include}"
    return None
