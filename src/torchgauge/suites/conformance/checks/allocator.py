"""Allocator: what the device says of its memory."""

from __future__ import annotations

from typing import Any

import torch

from torchgauge.suites.conformance.bench import Bench, brief, check

GROUP = "allocator"
BYTES = 4 << 20


def _ask(bench: Bench, name: str) -> Any:
    """What ``torch.accelerator`` or the device's module answers; the check ends where neither does."""
    bench.not_on_host("the host's memory is the operating system's")
    said = []
    accelerator = getattr(torch, "accelerator", None)
    for label, owner in (("torch.accelerator", accelerator), (f"torch.{bench.type}", bench.module)):
        function = getattr(owner, name, None)
        if function is None:
            said.append(f"there is no {label}.{name}")
            continue
        try:
            return function()
        except (RuntimeError, NotImplementedError, AttributeError) as error:
            said.append(f"{label}.{name}: {brief(error)}")
    return bench.unsupported("; ".join(said))


def _hold(bench: Bench) -> torch.Tensor:
    held = torch.ones(BYTES, dtype=torch.uint8, device=bench.device)
    bench.session.synchronize()
    return held


@check("torch.accelerator.memory_allocated", tier="smoke")
def allocated(bench: Bench) -> None:
    """The bytes in use grow with a tensor and shrink when it goes."""
    before = _ask(bench, "memory_allocated")
    held = _hold(bench)
    during = _ask(bench, "memory_allocated")
    bench.expect(during - before >= BYTES, f"a tensor of {BYTES} B moved the counter by {during - before} B")
    del held
    bench.session.synchronize()
    after = _ask(bench, "memory_allocated")
    bench.expect(after < during, f"the counter stayed at {after} B after the tensor was freed")


@check("torch.accelerator.max_memory_allocated")
def peak(bench: Bench) -> None:
    """The peak holds what is gone, and can be reset."""
    _ask(bench, "reset_peak_memory_stats")
    before = _ask(bench, "memory_allocated")
    held = _hold(bench)
    del held
    found = _ask(bench, "max_memory_allocated")
    bench.expect(
        found - before >= BYTES, f"the peak is {found} B after {BYTES} B more than {before} B were held"
    )
    _ask(bench, "reset_peak_memory_stats")
    again = _ask(bench, "max_memory_allocated")
    bench.expect(again < found, f"the peak is still {again} B after its reset")


@check("torch.accelerator.memory_stats")
def statistics(bench: Bench) -> None:
    """The statistics have the keys that PyTorch's own tools read."""
    found = _ask(bench, "memory_stats")
    missing = [key for key in ("allocated_bytes.all.current", "allocated_bytes.all.peak") if key not in found]
    bench.expect(not missing, f"memory_stats() lacks {', '.join(missing)}")


@check("torch.accelerator.get_memory_info")
def free_and_total(bench: Bench) -> None:
    """Free and total memory are told, and free is not the larger."""
    bench.not_on_host("the host's memory is the operating system's")
    own = getattr(bench.module, "mem_get_info", None)
    free, total = own() if own is not None else _ask(bench, "get_memory_info")
    bench.facts["total_bytes"] = int(total)
    bench.expect(0 <= free <= total and total > 0, f"{free} B are free of {total} B")


@check("torch.accelerator.empty_cache")
def empty_cache(bench: Bench) -> None:
    """The cache is given back, and tensors in use stay as they are."""
    held = bench.send(bench.numbers(16))
    _ask(bench, "empty_cache")
    bench.same(held, bench.numbers(16))
    bench.compare(lambda x: x + 1, bench.numbers(8))


@check("torch.<device>.memory snapshot")
def snapshot(bench: Bench) -> None:
    """A snapshot of the allocator can be taken for the memory viewer."""
    bench.not_on_host("the host's memory is the operating system's")
    owner = getattr(bench.module, "memory", bench.module)
    take = getattr(owner, "_snapshot", None) or getattr(bench.module, "memory_snapshot", None)
    if take is None:
        bench.unsupported(f"torch.{bench.type} has no memory snapshot")
    bench.expect(take() is not None, "the snapshot is None")
