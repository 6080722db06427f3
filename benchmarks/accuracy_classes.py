"""How far two correct implementations of one operation lie apart, by operation class and dtype.

Each operation runs on the host in the dtype and in float64 on the same numbers, forward and backward, from
normally distributed inputs at several sizes. The figure of a class is the smallest tolerance t with
``|result - float64| <= t + t |float64|`` everywhere, the largest over operations and seeds. Two correct
results may lie twice that apart; ``suites/data/tolerances.yaml`` takes four times it, rounded up to 1, 2
or 5, and at least the tolerance of ``torch.testing.assert_close``.

    python benchmarks/accuracy_classes.py
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as nn

DTYPES = (torch.float64, torch.float32, torch.float16, torch.bfloat16)
SEEDS = 3
LEAST = {torch.float64: 1e-7, torch.float32: 1e-5, torch.float16: 1e-3, torch.bfloat16: 1.6e-2}
"""The larger of both tolerances of ``torch.testing.assert_close``."""
Operation = tuple[Callable[..., torch.Tensor], tuple[tuple[int, ...], ...]]


CLASSES: dict[str, tuple[Operation, ...]] = {
    "elementwise": tuple(
        (function, ((512, 512),)) for function in (torch.exp, torch.tanh, nn.gelu, nn.silu, torch.sigmoid)
    )
    + tuple((function, ((512, 512), (512, 512))) for function in (torch.add, torch.mul)),
    "reduction": tuple(
        (function, ((64, n),))
        for n in (256, 4096)
        for function in (
            lambda x: x.mean(1),
            lambda x: x.var(1),
            lambda x: x.logsumexp(1),
            lambda x: x.norm(dim=1) / math.sqrt(x.shape[1]),
            lambda x: x.sum(1) / math.sqrt(x.shape[1]),
        )
    ),
    "matmul": tuple(
        (lambda a, b: a @ b / math.sqrt(a.shape[1]), ((64, k), (k, 128))) for k in (64, 512, 4096)
    ),
    "convolution": tuple(
        (lambda x, w: nn.conv2d(x, w, padding=1) / math.sqrt(9 * w.shape[1]), ((2, c, 14, 14), (c, c, 3, 3)))
        for c in (16, 64, 256)
    ),
    "normalisation": (
        (lambda x: nn.layer_norm(x, x.shape[-1:]), ((64, 1024),)),
        (lambda x: nn.group_norm(x, 8), ((4, 64, 14, 14),)),
        (lambda x: nn.batch_norm(x, None, None, training=True), ((8, 64, 14, 14),)),
        (lambda x: nn.softmax(x, -1), ((64, 1024),)),
        (lambda x: nn.log_softmax(x, -1), ((64, 1024),)),
    ),
    "attention": tuple((nn.scaled_dot_product_attention, ((2, 4, n, 64),) * 3) for n in (64, 512)),
}
"""Operations and the shapes of their inputs; sums are divided by their length's root, as in networks."""


def main() -> None:
    """Print one row per class and dtype: the figure, forward and backward, and the value taken."""
    warnings.simplefilter("ignore")
    print(
        "| class | dtype | forward | backward | taken: inference | training |\n|---|---|---:|---:|---:|---:|"
    )
    for name, operations in CLASSES.items():
        for dtype in DTYPES:
            forward, backward = figures(operations, dtype)
            most = max(LEAST[dtype], 4 * forward), max(LEAST[dtype], 4 * forward, 4 * backward)
            values = f"{round_up(most[0]):g} | {round_up(most[1]):g}"
            print(f"| {name} | {str(dtype)[6:]} | {forward:.1e} | {backward:.1e} | {values} |", flush=True)


def figures(operations: tuple[Operation, ...], dtype: Any) -> tuple[float, float]:
    """The figure of a class in one dtype, of results and of gradients; float64's are float32's, scaled."""
    forward = backward = 0.0
    for function, shapes in operations:
        for seed in range(SEEDS):
            generator = torch.Generator().manual_seed(seed)
            inputs = [torch.randn(shape, generator=generator, dtype=torch.float64) for shape in shapes]
            narrow = torch.float32 if dtype == torch.float64 else dtype
            inputs = [each.to(narrow).double() for each in inputs]
            out, grads = _run(function, inputs, narrow)
            wide, exact = _run(function, inputs, torch.float64)
            forward = max(forward, tolerance(out, wide))
            backward = max(backward, *(tolerance(g, e) for g, e in zip(grads, exact, strict=True)))
    if dtype == torch.float64:  # nothing here is more exact than float64: its errors scale with its unit
        ratio = torch.finfo(torch.float64).eps / torch.finfo(torch.float32).eps
        return forward * ratio, backward * ratio
    return forward, backward


def _run(function: Any, inputs: list[Any], dtype: Any) -> tuple[Any, list[Any]]:
    leaves = [each.to(dtype).requires_grad_() for each in inputs]
    out = function(*leaves)
    weight = torch.randn(out.shape, generator=torch.Generator().manual_seed(9), dtype=torch.float64)
    out.backward(weight.bfloat16().to(dtype))
    return out.detach(), [each.grad for each in leaves]


def tolerance(found: Any, exact: Any) -> float:
    """The smallest t with ``|found - exact| <= t + t |exact|`` everywhere."""
    return float(((found.double() - exact).abs() / (1 + exact.abs())).max())


def round_up(value: float) -> float:
    """The least of 1, 2 and 5 times a power of ten that is at least ``value``."""
    power = 10.0 ** math.floor(math.log10(value))
    return float(f"{next(step for step in (1, 2, 5, 10) if step * power >= value) * power:.0e}")


if __name__ == "__main__":
    main()
