"""In which low-precision dtypes ``torch.autocast`` really works on a device type.

The probe's child loads this file under a package name of its own, hence the relative import. Standard
library and torch only.
"""

from __future__ import annotations

import warnings
from typing import Any

from .hooks import HOOK_ERRORS, device_module


def autocast_dtypes(torch_type: str) -> tuple[str, ...]:
    """Low-precision dtypes in which a matrix product really runs under autocast; the default first."""
    import torch

    offered = getattr(device_module(torch_type), "get_amp_supported_dtype", None)
    try:
        dtypes = list(offered()) if offered is not None else [torch.bfloat16, torch.float16]
    except HOOK_ERRORS:
        dtypes = [torch.bfloat16, torch.float16]
    low = [dtype for dtype in dtypes if dtype not in (torch.float32, torch.float64)]
    default = _default_autocast_dtype(torch_type)
    low.sort(key=lambda dtype: dtype != default)  # stable: only the default moves to the front
    return tuple(str(dtype).removeprefix("torch.") for dtype in low if _autocasts(torch_type, dtype))


def _default_autocast_dtype(torch_type: str) -> Any:
    import torch

    try:
        return torch.get_autocast_dtype(torch_type)
    except HOOK_ERRORS:
        return None


def _autocasts(torch_type: str, dtype: Any) -> bool:
    import torch

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            operand = torch.ones(8, 8, device=torch_type)
            with torch.autocast(torch_type, dtype=dtype):
                return bool((operand @ operand).dtype == dtype)
    except HOOK_ERRORS:
        return False
