"""Kernels that go wrong as young ones do: they write to an input, misread it, or leave out the last block."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import torch

from torchgauge_npusim.faults import ACTIVE
from torchgauge_npusim.identity import DEVICE_NAME
from torchgauge_npusim.memory import host_alias

if TYPE_CHECKING:
    from torch._ops import OpOverload

BLOCK: Final = 1 << 17
"""Elements of one launch: a kernel that counts whole launches only leaves out what is beyond the last."""


def spoiled_arguments(op: OpOverload, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """What a kernel sees that takes expanded memory for as much memory as elements: zeros behind it."""
    if op._schema.name not in ACTIVE.ignores_expanded:
        return args
    return tuple(map(_misread, args))


def spoil(op: OpOverload, args: tuple[Any, ...], result: Any) -> None:
    """Write to the first input, or leave the tail of the result as it was: as the faults ask for `op`."""
    name = op._schema.name
    if name in ACTIVE.changes_input:
        first = next((each for each in args if _is_ours(each) and each.numel()), None)
        if first is not None and first.is_floating_point():
            host_alias(first).mul_(0.5)
    if name in ACTIVE.drops_tail and _is_ours(result) and result.numel() > BLOCK:
        host_alias(result).view(-1)[whole_blocks(result.numel()) :] = 0


def whole_blocks(elements: int) -> int:
    """How many of `elements` are in whole launches."""
    return elements // BLOCK * BLOCK


def _misread(value: Any) -> Any:
    if not _is_ours(value) or not any(
        step == 0 and length > 1 for step, length in zip(value.stride(), value.shape, strict=True)
    ):
        return value
    flat = torch.zeros(value.shape, dtype=value.dtype, device=DEVICE_NAME)
    kept = [slice(0, 1) if step == 0 else slice(None) for step in value.stride()]
    host_alias(flat)[tuple(kept)] = host_alias(value)[tuple(kept)]
    return flat


def _is_ours(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.device.type == DEVICE_NAME
