"""The operators that need a kernel of their own: allocation, copies, metadata and convolution.

The boxed fallback cannot serve these: it would recurse, or PyTorch has a default
kernel in the way that only raises.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from torchgauge_npusim import spoiling
from torchgauge_npusim.faults import ACTIVE, answer_or_vanish, is_spoiled_fork
from torchgauge_npusim.identity import DEVICE_NAME
from torchgauge_npusim.memory import (
    CPU,
    CPU_KEYS,
    adopt,
    check_index,
    device_storage,
    full_memory,
    host_alias,
    mixed_devices,
    set_layout,
)
from torchgauge_npusim.queue import QUEUE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch._ops import OpOverload

aten = torch.ops.aten


def empty(
    size: Sequence[int],
    *,
    dtype: torch.dtype | None = None,
    layout: torch.layout | None = None,
    device: torch.device | None = None,
    pin_memory: bool | None = None,
    memory_format: torch.memory_format | None = None,
) -> torch.Tensor:
    """Allocate; raises RuntimeError for an absent device index, pinned memory or a sparse layout."""
    answer_or_vanish(DEVICE_NAME)
    _check_placement(device, layout, pin_memory)
    try:
        host = torch.empty(size, dtype=dtype, device=CPU, memory_format=memory_format)
    except RuntimeError as error:
        if "can't allocate memory" not in str(error):
            raise
        raise full_memory(f"{DEVICE_NAME} out of memory: the host behind it has no more") from error
    return adopt(host)


def empty_strided(
    size: Sequence[int],
    stride: Sequence[int],
    *,
    dtype: torch.dtype | None = None,
    layout: torch.layout | None = None,
    device: torch.device | None = None,
    pin_memory: bool | None = None,
) -> torch.Tensor:
    """Allocate with strides in elements; raises as `empty` does."""
    _check_placement(device, layout, pin_memory)
    return adopt(torch.empty_strided(size, stride, dtype=dtype, device=CPU))


def efficient_zeros(size: Sequence[int], **options: Any) -> torch.Tensor:
    """Allocate zeros: a zero tensor without memory can only be made in C++."""
    return empty(size, **options).zero_()


def resize_(
    tensor: torch.Tensor, size: Sequence[int], *, memory_format: torch.memory_format | None = None
) -> torch.Tensor:
    """Resize in place; a tensor that outgrows its storage gets a new one with the old bytes in front."""
    shape_only = torch.empty(0, dtype=tensor.dtype, device="meta").resize_(size)
    if memory_format not in (None, torch.preserve_format, torch.contiguous_format):
        shape_only = torch.empty(size, dtype=tensor.dtype, device="meta", memory_format=memory_format)
    storage = tensor.untyped_storage()
    needed = (
        (tensor.storage_offset() + _span(shape_only)) * tensor.element_size() if shape_only.numel() else 0
    )
    if needed > storage.nbytes():
        larger = torch.UntypedStorage(needed)  # type: ignore[no-untyped-call]  # torch has no hints here
        if storage.nbytes():
            kept = torch.empty(0, dtype=torch.uint8, device=CPU).set_(larger)
            kept[: storage.nbytes()].copy_(_bytes_of(tensor))
        storage = device_storage(larger)
    return set_layout(tensor, storage, shape_only, tensor.storage_offset())


def copy_from(source: torch.Tensor, target: torch.Tensor, non_blocking: bool = False) -> torch.Tensor:
    """Copy between host and device, or within the device; the host has its copy when the queue got there."""
    del non_blocking
    answer_or_vanish(DEVICE_NAME)
    kept = _tail_to_drop(source, target)
    _host_side(target).copy_(_host_side(source))
    if is_spoiled_fork():
        _host_side(target).zero_()
    if kept is not None:
        _host_side(target).view(-1)[-kept.numel() :] = kept
    if source.device.type == DEVICE_NAME:
        QUEUE.submit()
    if target.device.type != DEVICE_NAME:
        QUEUE.wait()
    return target


def _tail_to_drop(source: torch.Tensor, target: torch.Tensor) -> torch.Tensor | None:
    """What the target's last, unfinished block held, where a fault leaves it out of copies this way."""
    way = "2".join("d" if each.device.type == DEVICE_NAME else "h" for each in (source, target))
    cut = spoiling.whole_blocks(target.numel())
    if way not in ACTIVE.copy_drops_tail or not 0 < cut < target.numel() or not target.is_contiguous():
        return None
    return _host_side(target).view(-1)[cut:].clone()


def copy_from_and_resize(source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """Copy after giving the target the source's shape."""
    target.resize_(source.shape)
    return copy_from(source, target)


def convolution(
    tensor: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, *geometry: Any
) -> torch.Tensor:
    """Convolve; geometry is stride, padding, dilation, transposed, output padding, groups."""
    answer_or_vanish(DEVICE_NAME)
    _refuse_cpu(tensor, weight, bias)
    host_bias = None if bias is None else host_alias(bias)
    result = aten.convolution.default(host_alias(tensor), host_alias(weight), host_bias, *geometry)
    QUEUE.submit()
    return adopt(result)


def convolution_backward(
    gradient: torch.Tensor, tensor: torch.Tensor, weight: torch.Tensor, *geometry_and_mask: Any
) -> tuple[torch.Tensor | None, ...]:
    """Gradients with respect to input, weight and bias, each only where the mask asks for it."""
    _refuse_cpu(gradient, tensor, weight)
    *geometry, mask = geometry_and_mask
    bias_sizes = [gradient.shape[1]] if mask[2] else None
    hosts = (host_alias(gradient), host_alias(tensor), host_alias(weight))
    results = aten.convolution_backward.default(*hosts, bias_sizes, *geometry, mask)
    QUEUE.submit()
    return tuple(None if result is None else adopt(result) for result in results)


def _check_placement(
    device: torch.device | None, layout: torch.layout | None, pin_memory: bool | None
) -> None:
    check_index(device)
    if pin_memory:
        message = "Only dense CPU tensors can be pinned"
        raise RuntimeError(message)
    if layout not in (None, torch.strided):
        message = f"{DEVICE_NAME} has no tensors of layout {layout}"
        raise RuntimeError(message)


def _span(tensor: torch.Tensor) -> int:
    # Elements from the first to the last, both included.
    return 1 + sum((length - 1) * step for length, step in zip(tensor.shape, tensor.stride(), strict=True))


def _bytes_of(tensor: torch.Tensor) -> torch.Tensor:
    storage = host_alias(tensor).untyped_storage()
    content: torch.Tensor = torch.empty(0, dtype=torch.uint8, device=CPU).set_(storage)
    return content


def _host_side(tensor: torch.Tensor) -> torch.Tensor:
    return host_alias(tensor) if tensor.device.type == DEVICE_NAME else tensor


def _refuse_cpu(*tensors: torch.Tensor | None) -> None:
    if any(tensor is not None and tensor.device.type != DEVICE_NAME for tensor in tensors):
        raise mixed_devices("aten::convolution")


def _on_cpu_kernel(op: OpOverload) -> Callable[..., Any]:
    def redispatch(*args: Any, **kwargs: Any) -> Any:
        return op.redispatch(CPU_KEYS, *args, **kwargs)

    return redispatch


KERNELS: dict[OpOverload, Callable[..., Any]] = {
    aten.empty.memory_format: empty,
    aten.empty_strided.default: empty_strided,
    aten._efficientzerotensor.default: efficient_zeros,
    aten.resize_.default: resize_,
    aten._copy_from.default: copy_from,
    aten._copy_from_and_resize.default: copy_from_and_resize,
    aten.convolution_overrideable.default: convolution,
    aten.convolution_backward_overrideable.default: convolution_backward,
}

# The CPU kernels of these read and write metadata only, so they serve a device tensor as they are.
# Every other view is built from them.
METADATA_ONLY: tuple[OpOverload, ...] = (
    aten.as_strided.default,
    aten.view.default,
    aten._reshape_alias.default,
    aten.unfold.default,
    aten.set_.source_Storage,
    aten.set_.source_Storage_storage_offset,
    aten.set_.source_Tensor,
    aten.set_.default,
)
KERNELS.update({op: _on_cpu_kernel(op) for op in METADATA_ONLY})
