"""Data: pinned memory and loaders."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils.data import DataLoader, TensorDataset

from torchgauge.suites.conformance.check_context import CheckContext, check

GROUP = "data"


def _pins(context: CheckContext) -> None:
    context.not_on_host("pinned memory serves copies to an accelerator")


@check("torch.Tensor.pin_memory", tier="smoke")
def pin_memory(context: CheckContext) -> None:
    """A host tensor is pinned, says so, and reaches the device."""
    _pins(context)
    host = context.numbers(16)
    with context.unless_refused("the device cannot pin memory"):
        pinned = host.pin_memory()
    context.expect(pinned.is_pinned(), "is_pinned() is false for a pinned tensor")
    context.same(pinned.to(context.device, non_blocking=True), host)


def _loaded(context: CheckContext, **how: Any) -> list[torch.Tensor]:
    rows = context.numbers(12, 3)
    loader = DataLoader(TensorDataset(rows), batch_size=4, **how)
    return [context.send(batch) for (batch,) in loader]


@check("torch.utils.data.DataLoader(pin_memory=True)")
def loader_pins(context: CheckContext) -> None:
    """A loader pins its batches."""
    _pins(context)
    with context.unless_refused("the DataLoader cannot pin memory"):
        found = _loaded(context, pin_memory=True)
    context.same(torch.cat(found), context.numbers(12, 3))


@check("torch.utils.data.DataLoader", tier="smoke")
def loader(context: CheckContext) -> None:
    """Batches of a loader reach the device in order."""
    context.same(torch.cat(_loaded(context)), context.numbers(12, 3))


@check("torch.utils.data.DataLoader(num_workers=1)", tier="full")
def loader_workers(context: CheckContext) -> None:
    """Batches that worker processes load reach the device in order."""
    found = _loaded(context, num_workers=1, multiprocessing_context="spawn")
    context.same(torch.cat(found), context.numbers(12, 3))
