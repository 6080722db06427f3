"""Build single operations with their work: floating-point operations and bytes of one step.

Worker side. Work is what the operation cannot do without: each input read once, the output written once, and
the multiplications and additions of its definition; an implementation may do more. Peaks to compare it with
are measured by the same worker (``harness/worker/roofline.py``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from torchgauge.records import AUTOCAST, Workload
from torchgauge.suites.suite import BuiltWorkload, Work


def build(workload: Workload, recipe: dict[str, object]) -> BuiltWorkload:  # noqa: ARG001  # sizes say it all
    """Return the operation that ``workload`` names; it can do a forward pass.

    Raises ``NotImplementedError`` for a batch of matrices.
    """
    if workload.batch > 1 and workload.model in ("matmul", "copy"):
        raise NotImplementedError(f"{workload.model} has no batch: its size is `n`")
    torch.manual_seed(workload.seed)
    module, args, item, flops = _OPERATIONS[workload.model](workload)
    module.eval()
    with torch.no_grad():
        output = module(*args)
    table = workload.model == "embedding"  # of which only the rows that are looked up are read
    touched = [*args, output, output] if table else [*args, *module.parameters(), output]
    return BuiltWorkload(
        module=module,
        args=args,
        items_per_step=workload.batch,
        item=item,
        work=Work(flops, sum(_size(tensor, workload.dtype) for tensor in touched)),
    )


def _size(tensor: Any, dtype: str) -> int:
    """Bytes of ``tensor``; floating-point ones will be cast to the workload's dtype."""
    autocast = dtype.startswith(AUTOCAST)
    width = getattr(torch, dtype).itemsize if tensor.is_floating_point() and not autocast else tensor.itemsize
    return int(tensor.numel() * width)


class Product(nn.Module):  # type: ignore[misc]  # torch is not seen by mypy
    """The product of two matrices."""

    def forward(self, left: Any, right: Any) -> Any:
        """(n, n) of (n, n) and (n, n)."""
        return left @ right


class Attention(nn.Module):  # type: ignore[misc]
    """Scaled dot-product attention, causal or without a mask."""

    def __init__(self, *, causal: bool) -> None:
        super().__init__()
        self.causal = causal

    def forward(self, query: Any, key: Any, value: Any) -> Any:
        """(batch, heads, seq, head_width) of three of that shape."""
        return functional.scaled_dot_product_attention(query, key, value, is_causal=self.causal)


class Copy(nn.Module):  # type: ignore[misc]
    """A copy of a matrix into new memory, as it lies or transposed."""

    def __init__(self, *, transposed: bool) -> None:
        super().__init__()
        self.transposed = transposed

    def forward(self, matrix: Any) -> Any:
        """(n, n) of (n, n)."""
        return matrix.t().clone(memory_format=torch.contiguous_format) if self.transposed else matrix.clone()


Operation = tuple[nn.Module, tuple[Any, ...], str, int]
"""Module, arguments, what an item of the batch is, floating-point operations of one step."""


def _matmul(workload: Workload) -> Operation:
    n = workload.sizes["n"]
    return Product(), (torch.randn(n, n) / n**0.5, torch.randn(n, n)), "product", 2 * n**3


def _convolution(workload: Workload) -> Operation:
    sizes = workload.sizes
    channels, image, kernel = sizes["channels"], sizes["image"], sizes["kernel"]
    module = nn.Conv2d(channels, channels, kernel, padding=kernel // 2, bias=False)
    flops = 2 * workload.batch * channels**2 * image**2 * kernel**2
    return module, (torch.randn(workload.batch, channels, image, image),), "image", flops


def _softmax(workload: Workload) -> Operation:
    return nn.Softmax(dim=-1), (torch.randn(workload.batch, workload.sizes["width"]),), "row", 0


def _layer_norm(workload: Workload) -> Operation:
    width = workload.sizes["width"]
    return nn.LayerNorm(width), (torch.randn(workload.batch, width),), "row", 0


def _attention(workload: Workload) -> Operation:
    sizes, causal = workload.sizes, dict(workload.shape)["mask"] == "causal"
    seq, heads, width = sizes["seq"], sizes["heads"], sizes["head_width"]
    inputs = tuple(torch.randn(workload.batch, heads, seq, width) for _ in range(3))
    pairs = seq * (seq + 1) // 2 if causal else seq**2
    return Attention(causal=causal), inputs, "sequence", 4 * workload.batch * heads * pairs * width


def _embedding(workload: Workload) -> Operation:
    rows, width = workload.sizes["rows"], workload.sizes["width"]
    return nn.Embedding(rows, width), (torch.randint(rows, (workload.batch,)),), "row", 0


def _copy(workload: Workload) -> Operation:
    n, layout = workload.sizes["n"], dict(workload.shape)["layout"]
    return Copy(transposed=layout == "transposed"), (torch.randn(n, n),), "matrix", 0


_OPERATIONS: dict[str, Callable[[Workload], Operation]] = {
    "matmul": _matmul,
    "convolution": _convolution,
    "softmax": _softmax,
    "layer_norm": _layer_norm,
    "attention": _attention,
    "embedding": _embedding,
    "copy": _copy,
}
