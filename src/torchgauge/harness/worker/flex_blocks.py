"""What the block mask of a call of ``flex_attention`` leaves out: read from the operator's own arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

ROWS, COLUMNS = -3, -2
"""Where in the operator's tuple a block's sizes stand."""
WAY_BACK = 2.5
"""Work of the way back beside that of the way there, where blocks are computed again: what PyTorch's own
``benchmarks/transformer`` counts."""


class Blocks(NamedTuple):
    """Blocks of scores of ``rows`` x ``columns`` in one call: how many are ``kept`` of how many there are.

    ``work`` is in floating-point operations, whole blocks counted.
    """

    kept: int
    there: int
    rows: int
    columns: int
    work: float


def blocks_of(query: Any, key: Any, value: Any, mask: Sequence[Any]) -> Blocks | None:
    """Those of a call with the operator's tuple ``mask``; None where its numbers are not known yet.

    Tensors are (batch, heads, length, width), or stand for such while a graph is captured. A call without a
    mask has one block that is larger than the scores.
    """
    import torch
    from torch._subclasses import FakeTensor

    batch, heads, queries, width = map(_number, query.shape)
    keys, value_width = _number(key.shape[-2]), _number(value.shape[-1])
    rows, columns = _number(mask[ROWS]), _number(mask[COLUMNS])
    there = -(-queries // rows) * -(-keys // columns)
    each = kept = 1
    if there > 1:
        first = next(place for place, each in enumerate(mask) if isinstance(each, torch.Tensor))
        numbers = [each for each in (mask[first], mask[first + 2]) if each is not None]  # partial, full
        if any(isinstance(number, FakeTensor) for number in numbers):
            return None
        each = numbers[0].shape[:-1].numel()  # batch and heads, for all of which a mask may be the same
        kept, there = sum(int(number.sum()) for number in numbers), there * each
    pairs = kept * min(rows, queries) * min(columns, keys) * batch * heads / each
    work = 2.0 * pairs * (width + value_width)
    if torch.is_grad_enabled() and query.requires_grad:
        work *= 1 + WAY_BACK
    return Blocks(kept, there, rows, columns, work)


def _number(size: Any) -> int:
    """``size``, or that of the inputs which a symbol stands for."""
    return int(size if isinstance(size, int) else size.node.hint)
