"""PyTorch's samples in other forms: without rows, expanded over memory that is shared, and large.

Worker side. What an operator gives for such inputs is asked of the host; nothing here judges.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from torchgauge.clock import SYSTEM_CLOCK
from torchgauge.suites.ops.samples import SEED, tensors_of

SIZES = (1 << 17, 1 << 20)
"""Elements that the first input of a large sample exceeds. Kernels count blocks, and their last one is where
they go wrong: 2^17 is beyond one launch of most, 2^20 beyond one pass of what is tiled."""
TAIL = 3
"""Rows beyond them, so that the last block is not full."""
STEPS = {1 << 10: 0.05, 1 << 14: 0.05, SIZES[0]: 0.25}
"""Elements of the trials before a large sample is made, and the seconds that the host may take for each: what
takes more grows faster than its input, and would take minutes or all memory at the next size."""
GROWTH = 16
"""Elements of a result for one of the input, at most: a table of all pairs is not made large."""
PARTS = 1024
"""Tensors of a result, at most: one for each row would be none of them large."""

MOST = 16
"""All tensors of a large sample together hold at most so many times the elements asked for."""
ROWS, ROWS_OF_INPUT, BATCH = WAYS = ("rows", "rows_of_input", "batch")
"""How a sample grows: more rows of the input and of all tensors of as many rows, more rows of the input
alone, or a batch of the whole."""


@dataclass(frozen=True)
class Large:
    """A sample on the host made of PyTorch's number ``index`` in one of :data:`WAYS`."""

    index: int
    way: str
    elements: int
    sample: Any


def has_empty(sample: Any) -> bool:
    """Whether a tensor among the inputs has no elements."""
    return any(tensor.numel() == 0 for tensor in tensors_of((sample.input, sample.args, sample.kwargs)))


def emptied(sample: Any) -> Any | None:
    """``sample`` with the first dimension of its input, and of all tensors of as many rows, cut to none.

    None where the first input is no dense tensor with a dimension to cut.
    """
    first = _first(sample)
    return None if first is None else sample.transform(_rows_of(first, lambda value: value[:0].clone()))


def expanded(sample: Any) -> Any | None:
    """``sample`` with its inputs expanded along their first dimension of more than one: a stride of 0.

    Numbers that serve as an index stay as they are, as they must not repeat in every operator. None where
    nothing can be expanded. What is expanded already is left equal.
    """
    inputs = {id(tensor) for tensor in tensors_of((sample.input,))}
    spread = []

    def spread_out(value: Any) -> Any:
        if not _is_dense(value) or not (id(value) in inputs or _is_inexact(value)):
            return value
        dim = next((place for place, length in enumerate(value.shape) if length > 1), None)
        if dim is None:
            return value
        spread.append(dim)
        return value.detach().narrow(dim, 0, 1).expand(value.shape)

    found = sample.transform(spread_out)
    return found if spread else None


def large_samples(call: Callable[[Any], Any], made: Iterator[tuple[int, Any]]) -> Iterator[Large]:
    """For each of :data:`SIZES` the first of ``made`` (number and sample) that the host takes so large.

    ``call`` is the operator on the host.
    """
    left = list(SIZES)
    for index, sample in made:
        for way in WAYS:
            while left and _may_grow(call, sample, way, left[0]):
                yield Large(index, way, left[0], _grown(sample, way, left.pop(0)))
        if not left:
            return


def _may_grow(call: Callable[[Any], Any], sample: Any, way: str, elements: int) -> bool:
    """Whether the host takes ``sample`` in all sizes before ``elements``, and none of them is dear."""
    for smaller, limit_s in STEPS.items():
        if smaller < elements:
            tried = _grown(sample, way, smaller)
            if tried is None or not _is_cheap(call, tried, smaller, limit_s):
                return False
    return _grown(sample, way, elements) is not None


def _grown(sample: Any, way: str, elements: int) -> Any | None:
    """``sample`` with a first input of more than ``elements`` elements, None where there is no such form."""
    first = _first(sample)
    if first is None or not first.numel() or (way == BATCH and first.dim() < 2):
        return None
    inputs = {id(tensor) for tensor in tensors_of((sample.input,))}
    rows = int(first.shape[0])
    number = elements // (first.numel() if way == BATCH else first.numel() // rows) + TAIL
    index = _places(rows, number)

    def grow(value: Any) -> Any:
        if way == BATCH:
            tall = _is_dense(value) and value.dim() > 1
            return value.detach().expand(number, *value.shape).contiguous() if tall else value
        chosen = way == ROWS or id(value) in inputs
        return fitting(value) if chosen else value

    fitting = _rows_of(first, lambda value: value.index_select(0, index))
    found = sample.transform(grow)
    held = sum(tensor.numel() for tensor in tensors_of((found.input, found.args, found.kwargs)))
    return found if held <= MOST * elements else None


def _first(sample: Any) -> Any | None:
    """The first input where it is a dense tensor with a dimension."""
    first = next(tensors_of((sample.input,)), None)
    return first if first is not None and _is_dense(first) and first.dim() else None


def _rows_of(first: Any, change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """``change`` for all dense tensors with as many rows as ``first``."""

    def changed(value: Any) -> Any:
        fits = _is_dense(value) and value.shape[:1] == first.shape[:1]
        return change(value.detach()) if fits else value

    return changed


def _places(rows: int, number: int) -> Any:
    """``number`` of ``rows`` rows, sorted and each several times in no rhythm.

    Sorted, since some operators ask for it; without a rhythm, so that a kernel which starts over is seen.
    """
    import torch

    return torch.randint(0, rows, (number,), generator=torch.Generator().manual_seed(SEED)).sort().values


def _is_cheap(call: Callable[[Any], Any], sample: Any, elements: int, limit_s: float) -> bool:
    """Whether the host takes ``sample``, and time and result do not outgrow it; two tries for a busy core."""
    for _ in range(2):
        began = SYSTEM_CLOCK.steady()
        try:
            result = call(sample)
        except Exception:  # noqa: BLE001  what the host refuses is no sample
            return False
        sizes = [tensor.numel() for tensor in tensors_of((result,))]
        if len(sizes) > PARTS or sum(sizes) > GROWTH * elements:
            return False
        if SYSTEM_CLOCK.steady() - began <= limit_s:
            return True
    return False


def _is_dense(value: Any) -> bool:
    import torch

    return isinstance(value, torch.Tensor) and value.layout == torch.strided and not value.is_nested


def _is_inexact(value: Any) -> bool:
    return bool(value.is_floating_point() or value.is_complex())
