"""Operators that return indices of values: among equal values, any index is right. Worker side."""

from __future__ import annotations

import re
from typing import Any

from torchgauge.suites.ops.closeness import plain_host
from torchgauge.suites.ops.samples import tensors_of

POSITIONS = re.compile(
    r"(masked\.)?(arg(max|min|sort)|sort|msort|topk|kthvalue|(nan)?median|mode|cum(max|min)|(max|min))"
    r"|nn\.functional\.(adaptive_|fractional_)?max_pool\dd"
)
"""Names of operators that return indices, without a documented order of equal values."""
_SECOND = ("topk", "kthvalue")
"""Operators whose dimension is their second argument."""
_WHOLE = ("argmax", "argmin")
"""Operators that index the flattened input if they get no dimension."""
_ORDERS = ("sort", "argsort", "topk")
"""Operators that return each index once."""


def is_free(op: Any, sample: Any) -> bool:
    """Return whether any order of equal values is right for ``sample``."""
    return POSITIONS.fullmatch(op.name) is not None and not sample.kwargs.get("stable")


def gives_places(op: Any) -> bool:
    """Return whether the result is indices alone, without values."""
    return bool(op.name.rpartition(".")[2].startswith("arg"))


def has_equal_values(sample: Any) -> bool:
    """Return whether a tensor in the input of ``sample`` contains a value twice."""
    inputs = map(plain_host, tensors_of((sample.input,)))
    return any(each.unique().numel() < each.numel() for each in inputs)


def with_equal_places(op: Any, sample: Any, actual: Any, expected: Any) -> Any:
    """Return ``actual`` with ``expected``'s index wherever the input has equal values at both indices."""
    if not is_free(op, sample):
        return actual
    if gives_places(op):
        return _equalled(op, sample, actual, expected)
    if all(isinstance(each, tuple) and len(each) == 2 for each in (actual, expected)):
        return actual[0], _equalled(op, sample, actual[1], expected[1])
    return actual


def _equalled(op: Any, sample: Any, actual: Any, expected: Any) -> Any:
    if actual.shape != expected.shape or actual.dtype != expected.dtype or not actual.numel():
        return actual
    found, wanted, x = (plain_host(each) for each in (actual, expected, sample.input))
    name, pooled = op.name.rpartition(".")[2], re.search(r"max_pool(\d)d", op.name)
    at = 1 if name in _SECOND else 0
    dim = (
        sample.args[at] if len(sample.args) > at else sample.kwargs.get("dim", None if name in _WHOLE else -1)
    )
    if pooled:
        x, found, wanted, dim = *(each.flatten(-int(pooled[1])) for each in (x, found, wanted)), -1
    elif dim is None or not x.ndim:
        x, found, wanted, dim = x.flatten(), found.flatten(), wanted.flatten(), 0
    elif found.ndim < x.ndim:
        found, wanted = found.unsqueeze(dim), wanted.unsqueeze(dim)
    repeated = name in _ORDERS and not found.sort(dim).values.diff(dim=dim).all()
    if repeated or found.min() < 0 or found.max() >= x.shape[dim]:
        return actual
    here, there = x.gather(dim, found), x.gather(dim, wanted)
    equal = (here == there) | (here.isnan() & there.isnan())
    return wanted.where(equal, found).reshape(actual.shape)
