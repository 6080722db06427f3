"""Allocator: what the device says of its memory."""

from __future__ import annotations

from typing import Any

import torch

from torchgauge.suites.conformance.check_context import CheckContext, brief, check

GROUP = "allocator"
BYTES = 4 << 20


def _ask(context: CheckContext, name: str) -> Any:
    """What ``torch.accelerator`` or the device's module answers; the check ends where neither does."""
    context.not_on_host("the host has no device allocator")
    said = []
    accelerator = getattr(torch, "accelerator", None)
    for label, owner in (("torch.accelerator", accelerator), (f"torch.{context.type}", context.module)):
        function = getattr(owner, name, None)
        if function is None:
            said.append(f"there is no {label}.{name}")
            continue
        try:
            return function()
        except (RuntimeError, NotImplementedError, AttributeError) as error:
            said.append(f"{label}.{name}: {brief(error)}")
    return context.unsupported("; ".join(said))


def _hold(context: CheckContext) -> torch.Tensor:
    held = torch.ones(BYTES, dtype=torch.uint8, device=context.device)
    context.session.synchronize()
    return held


@check("torch.accelerator.memory_allocated", tier="smoke")
def allocated(context: CheckContext) -> None:
    """The bytes in use grow with a tensor and shrink when it goes."""
    before = _ask(context, "memory_allocated")
    held = _hold(context)
    during = _ask(context, "memory_allocated")
    context.expect(
        during - before >= BYTES, f"a tensor of {BYTES} B changed the bytes in use by {during - before} B"
    )
    del held
    context.session.synchronize()
    after = _ask(context, "memory_allocated")
    context.expect(after < during, f"the bytes in use stayed at {after} B after the tensor was freed")


@check("torch.accelerator.max_memory_allocated")
def peak(context: CheckContext) -> None:
    """The peak holds what is gone, and can be reset."""
    _ask(context, "reset_peak_memory_stats")
    before = _ask(context, "memory_allocated")
    held = _hold(context)
    del held
    found = _ask(context, "max_memory_allocated")
    context.expect(found - before >= BYTES, f"the peak is {found} B instead of at least {before + BYTES} B")
    _ask(context, "reset_peak_memory_stats")
    again = _ask(context, "max_memory_allocated")
    context.expect(again < found, f"the peak is still {again} B after its reset")


@check("torch.accelerator.memory_stats")
def statistics(context: CheckContext) -> None:
    """The statistics have the keys that PyTorch's own tools read."""
    found = _ask(context, "memory_stats")
    missing = [key for key in ("allocated_bytes.all.current", "allocated_bytes.all.peak") if key not in found]
    context.expect(not missing, f"memory_stats() lacks {', '.join(missing)}")


@check("torch.accelerator.get_memory_info")
def free_and_total(context: CheckContext) -> None:
    """Free and total memory are told, and free is not the larger."""
    context.not_on_host("the host has no device allocator")
    own = getattr(context.module, "mem_get_info", None)
    free, total = own() if own is not None else _ask(context, "get_memory_info")
    context.facts["total_bytes"] = int(total)
    context.expect(0 <= free <= total and total > 0, f"get_memory_info() gave {free} B free of {total} B")


@check("torch.accelerator.empty_cache")
def empty_cache(context: CheckContext) -> None:
    """The cache is given back, and tensors in use stay as they are."""
    held = context.send(context.numbers(16))
    _ask(context, "empty_cache")
    context.same(held, context.numbers(16))
    context.compare(lambda x: x + 1, context.numbers(8))


@check("torch.<device>.memory snapshot")
def snapshot(context: CheckContext) -> None:
    """A snapshot of the allocator can be taken for the memory viewer."""
    context.not_on_host("the host has no device allocator")
    owner = getattr(context.module, "memory", context.module)
    take = getattr(owner, "_snapshot", None) or getattr(context.module, "memory_snapshot", None)
    if take is None:
        context.unsupported(f"torch.{context.type} has no memory snapshot")
    context.expect(take() is not None, "the snapshot is None")
