"""Data: pinned memory and loaders."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils.data import DataLoader, TensorDataset

from torchgauge.suites.conformance.bench import Bench, check

GROUP = "data"


def _pins(bench: Bench) -> None:
    bench.not_on_host("pinned memory serves copies to an accelerator")


@check("torch.Tensor.pin_memory", tier="smoke")
def pin_memory(bench: Bench) -> None:
    """A host tensor is pinned, says so, and reaches the device."""
    _pins(bench)
    host = bench.numbers(16)
    with bench.unless_refused("the device pins no memory"):
        pinned = host.pin_memory()
    bench.expect(pinned.is_pinned(), "a pinned tensor says that it is not")
    bench.same(pinned.to(bench.device, non_blocking=True), host)


def _loaded(bench: Bench, **how: Any) -> list[torch.Tensor]:
    rows = bench.numbers(12, 3)
    loader = DataLoader(TensorDataset(rows), batch_size=4, **how)
    return [bench.send(batch) for (batch,) in loader]


@check("torch.utils.data.DataLoader(pin_memory=True)")
def loader_pins(bench: Bench) -> None:
    """A loader pins its batches."""
    _pins(bench)
    with bench.unless_refused("the loader pins no memory"):
        found = _loaded(bench, pin_memory=True)
    bench.same(torch.cat(found), bench.numbers(12, 3))


@check("torch.utils.data.DataLoader", tier="smoke")
def loader(bench: Bench) -> None:
    """Batches of a loader reach the device in order."""
    bench.same(torch.cat(_loaded(bench)), bench.numbers(12, 3))


@check("torch.utils.data.DataLoader(num_workers=1)", tier="full")
def loader_workers(bench: Bench) -> None:
    """Batches that worker processes load reach the device in order."""
    found = _loaded(bench, num_workers=1, multiprocessing_context="spawn")
    bench.same(torch.cat(found), bench.numbers(12, 3))
