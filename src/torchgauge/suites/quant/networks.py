"""Build the linear layers of suite ``quant``: those of a language model's block, at the sizes of one."""

from __future__ import annotations

import torch
from torch import nn

from torchgauge.records import Workload
from torchgauge.suites.suite import BuiltWorkload, Work

DEVIATION = 0.02
"""Of the weights: that with which language models are initialised."""


def build(workload: Workload, recipe: dict[str, object]) -> BuiltWorkload:  # noqa: ARG001  sizes are the shape
    """Return layers of ``width`` to ``inner`` and back over ``rows`` (M) of inputs; one where both are equal.

    Raises ``NotImplementedError`` for a batch.
    """
    if workload.batch > 1:
        raise NotImplementedError("linear layers have no batch: their number of inputs is `rows`")
    sizes = workload.sizes
    rows, width, inner = (sizes[name] for name in ("rows", "width", "inner"))
    generator = torch.Generator().manual_seed(workload.seed)
    shapes = [(width, inner)] if width == inner else [(width, inner), (inner, width)]
    layers = [nn.Linear(*shape, bias=False) for shape in shapes]
    with torch.no_grad():
        for layer in layers:
            layer.weight.normal_(0.0, DEVIATION, generator=generator)
    inputs = torch.randn(rows, width, generator=generator)
    weights = sum(layer.weight.numel() for layer in layers)
    item = getattr(torch, workload.dtype).itemsize
    return BuiltWorkload(
        module=nn.Sequential(*layers).eval(),
        args=(inputs,),
        items_per_step=rows,
        item="row",
        work=Work(2 * rows * weights, (weights + rows * (2 * width)) * item),
    )
