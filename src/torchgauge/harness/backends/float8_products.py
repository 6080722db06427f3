"""Whether a device multiplies in float8 at all: the smallest product, tried by itself; worker side."""

from __future__ import annotations

from typing import Any

from torchgauge.harness.backends.prepared import BackendSession
from torchgauge.harness.worker.verdicts import first_line

MULTIPLE = 16
"""Widths of a layer that float8 products take are multiples of it."""
TILE, SCALES = 128, 512
"""Width of the smallest product with a scale for each block of 32, and how many scales it has."""


def refused(session: BackendSession, *, in_blocks: bool = False) -> str:
    """What the device says to the smallest product, scaled by tensor or by block; "" where it runs."""
    import torch

    place = session.device.torch_device
    try:
        if in_blocks:
            width, scale = TILE, torch.ones(SCALES, device=place).to(torch.float8_e8m0fnu)
        else:
            width, scale = MULTIPLE, torch.ones((), device=place)
        tile = torch.ones(width, width, device=place).to(torch.float8_e4m3fn)
        torch._scaled_mm(tile, tile.t(), scale_a=scale, scale_b=scale, out_dtype=torch.bfloat16)
        session.device.synchronize()
    except Exception as error:  # noqa: BLE001  whatever it says is the reason
        scaled = " with block-wise scales" if in_blocks else ""
        return f"no float8 matmul{scaled} runs on {session.device.name}: {first_line(error)}"
    return ""


def refused_of(module: Any, session: BackendSession) -> str:
    """The same for the products that the quantised weights of ``module`` need; "" where none is in float8."""
    import torch

    kinds = {
        kind
        for each in module.parameters()
        if hasattr(each, "__tensor_flatten__")
        for name in each.__tensor_flatten__()[0]
        for kind in [getattr(getattr(each, name), "dtype", None)]
    }
    if not any(kind is not None and str(kind).startswith("torch.float8") for kind in kinds):
        return ""
    return refused(session, in_blocks=getattr(torch, "float8_e8m0fnu", None) in kinds)
