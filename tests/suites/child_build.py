"""Child: build models of a suite, run one eager inference and one training step, print JSON.

Usage: child_build.py SUITE WHICH run|digest. WHICH is a tier (without those before it) or names with commas
between them. ``digest`` only builds, for inference.
"""

from __future__ import annotations

import json
import math
import sys
import zlib
from typing import Any

import torch

from torchgauge.records import Workload
from torchgauge.registry import load, resolve
from torchgauge.suites.catalog import workload_for
from torchgauge.suites.suite import BuiltWorkload, ModelEntry, Suite


def main(name: str, which: str, what: str) -> None:
    torch.set_num_threads(1)
    suite: Suite = load("torchgauge.suites", name)
    rows = []
    for entry in suite.models():
        if which in entry.tiers or entry.name in which.split(","):
            if entry.framework != "torch":
                continue
            modes = sorted(entry.batch) if what == "run" else ["inference"]
            rows += [row(suite, entry, mode, what) for mode in modes]
    print(json.dumps(rows))


def row(suite: Suite, entry: ModelEntry, mode: str, what: str) -> dict[str, Any]:
    workload = workload_for(suite.name, entry, mode)
    built = build(suite, workload, entry)
    facts = {"model": entry.name, "mode": mode, "digest": digest(built), "items": built.items_per_step}
    facts |= {"training": built.module.training, "notes": list(built.notes), "float32": all_float32(built)}
    if what == "run":
        facts |= inference(built) if mode == "inference" else training(built)
    return facts


def build(suite: Suite, workload: Workload, entry: ModelEntry) -> BuiltWorkload:
    return resolve(suite.builder)(workload, json.loads(json.dumps(entry.recipe)))


def digest(built: BuiltWorkload) -> int:
    """CRC-32 over every bit of the weights, buffers and inputs, in order."""
    value = 0
    for name, tensor in built.module.state_dict().items():
        value = zlib.crc32(tensor.detach().contiguous().numpy(), zlib.crc32(name.encode(), value))
    for item in (*built.args, *built.kwargs.values()):
        value = zlib.crc32(item.numpy() if isinstance(item, torch.Tensor) else repr(item).encode(), value)
    return value


def all_float32(built: BuiltWorkload) -> bool:
    return all(p.dtype == torch.float32 and p.device.type == "cpu" for p in built.module.parameters())


def inference(built: BuiltWorkload) -> dict[str, Any]:
    with torch.no_grad():
        output = first(built.module(*built.args, **built.kwargs))
    return {
        "finite": bool(output.isfinite().all()),
        "spread": output.std().item(),
        "loss": built.loss is not None,
    }


def training(built: BuiltWorkload) -> dict[str, Any]:
    assert built.loss is not None
    losses = []
    for seed in (1, 2):  # no dropout: the loss must not depend on the generator
        torch.manual_seed(seed)
        losses.append(built.loss(built.module(*built.args, **built.kwargs)))
    losses[0].backward()
    with_gradient = sum(p.grad is not None for p in built.module.parameters())
    values = [loss.item() for loss in losses]
    return {
        "finite": all(math.isfinite(value) for value in values),
        "repeatable": values[0] == values[1],
        "with_gradient": with_gradient,
    }


def first(output: Any) -> Any:
    return output if isinstance(output, torch.Tensor) else output[0]


if __name__ == "__main__":
    main(*sys.argv[1:])
