"""Settings that a process has once, and that a model may change for the steps which are measured in it."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from torchgauge.harness.backends.prepared import SHARED

CONFIGS = ("torch._dynamo.config", "torch._inductor.config", "torch._functorch.config")
"""The modules that hold the settings of the compiler."""
LIMITS = ("recompile_limit", "cache_size_limit")
"""Endings of the names of limits of recompilation, the second in older versions of PyTorch."""


def compiler_settings() -> dict[str, Any]:
    """Return settings of the compiler by name, such as ``inductor.freezing``, of modules imported so far.

    Limits of recompilation are left out: code beyond them runs in eager, which is observed. timm raises one
    when it is imported.
    """
    settings: dict[str, Any] = {}
    for name in CONFIGS:
        copy = getattr(sys.modules.get(name), "get_config_copy", dict)  # torch before 2.6 has none
        part = name.split(".")[1].removeprefix("_")
        settings.update((f"{part}.{key}", value) for key, value in copy().items() if not key.endswith(LIMITS))
    return settings


def process_settings(device_type: str) -> dict[str, Any]:
    """Return the settings of ``torch`` that decide how operators run, by their names in a sentence."""
    import torch

    def read(get: str) -> Any:
        try:
            return getattr(torch, get)()
        except RuntimeError:  # float32 precision, if each kind of operator has its own
            return "mixed"

    return {
        **{name: read(get) for name, (get, _) in SHARED.items()},
        "autocast": torch.is_autocast_enabled(device_type),
        "oneDNN": torch.backends.mkldnn.enabled,
    }


def altered(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Return a reason that names the settings which differ; empty if none does."""
    odd = [name for name, value in before.items() if name in now and _differ(value, now[name])]
    texts = [f"{name} = {str(now[name])[:60]} instead of {str(before[name])[:60]}" for name in odd[:3]]
    more = f" and {len(odd) - 3} more" if len(odd) > 3 else ""
    return f"changed: {', '.join(texts)}{more}" if odd else ""


def _differ(one: Any, other: Any) -> bool:
    """Return whether two settings differ; functions and objects that were copied have no other equality."""
    plain = (bool, int, float, str, type(None))
    return isinstance(one, plain) and isinstance(other, plain) and one != other
