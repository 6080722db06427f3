"""What inductor does once in a process, whatever it compiles first: modules, tables and patterns are made.

It belongs to the process, not to the configuration that happens to come first: 0.7 s of 2.7 for a small model
(torch 2.13). Every cold compilation is charged with it alike, as if each had a process of its own.
"""

from __future__ import annotations

import os
import tempfile
import time
from typing import Any

from torchgauge.harness.backends.prepared import BackendSession
from torchgauge.harness.worker.compilation import CACHE, reset
from torchgauge.harness.worker.cpu_time import CpuTime, spent_in

_SPENT: dict[Any, tuple[float, CpuTime]] = {}
"""What this process spent on it, by device."""


def compiler_start(session: BackendSession) -> tuple[float, CpuTime]:
    """Seconds by the wall and CPU time of it, spent at the first call, with the machine to itself.

    It compiles a view, for which no code is generated, into a cache that is thrown away, and goes backward
    where gradients are taken. What a compiler that cannot do this has spent is nobody's: the case that asked
    says what is wrong with it.
    """
    device = session.device.torch_device
    if device not in _SPENT:
        kept = os.environ.get(CACHE)
        try:
            with session.alone(), tempfile.TemporaryDirectory() as folder:
                os.environ[CACHE] = folder
                seconds, cpu = spent_in(lambda: _compile_a_view(device))
                _SPENT[device] = (seconds, cpu) if seconds else (0.0, CpuTime(0.0, 0.0))
        finally:
            reset()
            os.environ.pop(CACHE, None)
            if kept is not None:
                os.environ[CACHE] = kept
    return _SPENT[device]


def _compile_a_view(device: Any) -> float:
    import torch

    given = torch.ones(2, 2, device=device, requires_grad=torch.is_grad_enabled())
    began = time.perf_counter()
    try:
        flat = torch.compile(lambda x: x.view(-1))(given)
        if flat.requires_grad:
            flat.sum().backward()
    except Exception:  # noqa: BLE001  the case that asked finds the same, and is charged with it
        return 0.0
    return time.perf_counter() - began
