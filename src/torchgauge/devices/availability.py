"""Whether torch is built for a device type, and how many such devices it counts.

The probe's child loads this file under a package name of its own, hence the relative import. Standard
library and torch only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .hooks import HOOK_ERRORS, device_count, device_module, first_line

IN_TREE = ("cuda", "xpu", "mps", "hpu", "mtia")
"""Accelerator types that torch itself has a key for (``c10::DeviceType`` of torch 2.13)."""


@dataclass(frozen=True)
class Availability:
    """A device type in this torch: built for it, devices counted, and what it says where there is none."""

    torch_type: str
    built: bool
    count: int
    problem: str = ""


def availability(torch_type: str) -> Availability:
    """Ask without touching a device; only where none is counted, one allocation is tried for its message."""
    if torch_type == "cpu":
        return Availability("cpu", True, 1)
    if not _built(torch_type):
        return Availability(torch_type, False, 0)
    count = device_count(torch_type)
    return Availability(torch_type, True, count, "" if count else _refusal(torch_type))


def _built(torch_type: str) -> bool:
    """Whether this torch (or an extension of it) has code for the type."""
    import torch

    module: Any = device_module(torch_type)
    if module is None:
        return False
    asked = (
        getattr(getattr(torch.backends, torch_type, None), "is_built", None),
        getattr(module, "_is_compiled", None),
    )
    try:
        return all(bool(function()) for function in asked if function is not None)
    except HOOK_ERRORS:
        return False


def _refusal(torch_type: str) -> str:
    import torch

    try:
        torch.empty(1, device=torch_type)
    except HOOK_ERRORS as error:
        return first_line(error)
    return ""
