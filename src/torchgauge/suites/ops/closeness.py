"""Whether two results of an operator agree, as ``torch.testing`` asks for it. Worker side.

Results are tensors of any layout, numbers, and tuples, lists and dicts of them.
"""

from __future__ import annotations

import cmath
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torchgauge.counted import counted


@dataclass(frozen=True)
class Tolerances:
    """The least absolute and relative tolerance; the defaults of each tensor's dtype count where larger."""

    atol: float = 0.0
    rtol: float = 0.0

    def of(self, dtype: Any) -> tuple[float, float]:
        """Absolute and relative tolerance for ``dtype``: PyTorch's defaults, or more where asked for."""
        import torch

        if not (dtype.is_floating_point or dtype.is_complex):
            return 0.0, 0.0
        try:
            rtol, atol = torch.testing._comparison.default_tolerances(dtype)
        except (AttributeError, ValueError, KeyError):
            # Relative and absolute tolerance where PyTorch names none: two units in the last place.
            import torch

            eps = float(torch.finfo(dtype).eps)
            rtol, atol = 2 * eps, eps
        return max(atol, self.atol), max(rtol, self.rtol)


def difference(actual: Any, expected: Any, tolerances: Tolerances, *, wide: bool = False) -> str:
    """What differs first, in one line; empty where all agree.

    ``wide`` says that ``expected`` was computed in a wider dtype: dtypes may differ in width only, and the
    tolerance is that of ``actual``'s.
    """
    if _is_tensor(actual) and _is_tensor(expected):
        return _tensors(actual, expected, tolerances, wide)
    if isinstance(actual, Mapping) and isinstance(expected, Mapping):
        if actual.keys() != expected.keys():
            return f"keys {sorted(map(str, actual))} where the host has {sorted(map(str, expected))}"
        pairs = [(f"[{key!r}]", actual[key], expected[key]) for key in actual]
    elif _is_sequence(actual) and _is_sequence(expected):
        if len(actual) != len(expected):
            return f"{counted(len(actual), 'result')} where the host has {len(expected)}"
        pairs = [(f"[{i}]", a, e) for i, (a, e) in enumerate(zip(actual, expected, strict=True))]
    elif isinstance(actual, (int, float, complex)) and isinstance(expected, (int, float, complex)):
        return _numbers(actual, expected, tolerances)
    elif _is_tensor(actual) or _is_tensor(expected) or type(actual) is not type(expected):
        return f"a {type(actual).__name__} where the host has a {type(expected).__name__}"
    else:
        same = actual is expected or actual == expected
        return "" if same or not _plain(expected) else f"{actual!r} where the host has {expected!r}"[:200]
    for place, a, e in pairs:
        found = difference(a, e, tolerances, wide=wide)
        if found:
            return f"{place}: {found}"
    return ""


def furthest(actual: Any, expected: Any) -> float:
    """The largest finite difference between tensors of two results of one structure; 0 without any."""
    import torch
    from torch.utils._pytree import tree_leaves

    found = 0.0
    for a, e in zip(tree_leaves(actual), tree_leaves(expected), strict=False):
        if _is_tensor(a) and _is_tensor(e) and (a.is_floating_point() or a.is_complex()) and not a.is_nested:
            wide = torch.complex128 if a.is_complex() else torch.float64
            gap = (plain_host(a).to(wide) - plain_host(e).to(wide)).abs()
            finite = gap[torch.isfinite(gap)]
            found = max(found, float(finite.max()) if finite.numel() else 0.0)
    return found


def of_sums(inputs: Any, result: Any) -> float:
    """What another order of sums may change where a large input becomes a small result, in float32.

    Partial sums of n terms of size x wander as sqrt(n) x, and are rounded about log2(n) times on their way.
    """
    import torch
    from torch.utils._pytree import tree_leaves

    given = [each for each in tree_leaves(inputs) if _is_tensor(each) and each.is_floating_point()]
    terms = max((each.numel() for each in given), default=0)
    if terms <= 16 * sum(each.numel() for each in tree_leaves(result) if _is_tensor(each)):
        return 0.0
    size = max(float(each.abs().max()) for each in given if each.numel())
    return float(torch.finfo(torch.float32).eps) * size * math.sqrt(terms) * math.log2(terms)


def of_partials(inputs_and_result: Any, dtype: Any) -> float:
    """Return the change that another order may cause in results with partial results rounded to ``dtype``.

    The rounding errors of n partial results, each as large as the largest number, add up as sqrt(n).
    """
    import torch
    from torch.utils._pytree import tree_leaves

    tensors = [each for each in tree_leaves(inputs_and_result) if _is_tensor(each) and each.numel()]
    terms = max((max(each.shape, default=1) for each in tensors), default=1)
    sizes = (plain_host(each).abs() for each in tensors if each.is_floating_point() or each.is_complex())
    size = max((float(each[each.isfinite()].amax()) for each in sizes if each.isfinite().any()), default=0.0)
    return float(torch.finfo(dtype).eps) * size * math.sqrt(terms)


def _tensors(actual: Any, expected: Any, tolerances: Tolerances, wide: bool) -> str:
    import torch

    if actual.layout != expected.layout:
        return f"layout {actual.layout} where the host has {expected.layout}"
    if actual.is_nested or expected.is_nested:
        if actual.is_nested != expected.is_nested:
            return "only one of the two results is nested"
        return difference(list(actual.unbind()), list(expected.unbind()), tolerances, wide=wide)
    if tuple(actual.shape) != tuple(expected.shape):
        return f"shape {list(actual.shape)} where the host has {list(expected.shape)}"
    if actual.dtype != expected.dtype and not (wide and _kind(actual.dtype) == _kind(expected.dtype)):
        return f"{actual.dtype} where the host has {expected.dtype}"
    a, e = plain_host(actual), plain_host(expected)
    atol, rtol = tolerances.of(actual.dtype)
    if a.is_floating_point() or a.is_complex():
        if a.is_floating_point():
            to = torch.float64 if wide or torch.float64 in (a.dtype, e.dtype) else torch.float32
        else:
            to = torch.complex128 if wide or torch.complex128 in (a.dtype, e.dtype) else torch.complex64
        a, e = a.to(to), e.to(to)
    elif torch.equal(a, e):
        return ""
    close = torch.isclose(a, e, rtol=rtol, atol=atol, equal_nan=True)
    if bool(close.all()):
        return ""
    return _how_far(a, e, close, atol, rtol)


def _how_far(a: Any, e: Any, close: Any, atol: float, rtol: float) -> str:
    import torch

    wrong = ~close
    where = [int(i) for i in wrong.nonzero()[0]] if wrong.dim() else []
    value, wanted = a[wrong].flatten()[0].item(), e[wrong].flatten()[0].item()
    if a.dtype == torch.bool:
        gap = ""
    else:
        kind = torch.complex128 if a.is_complex() else torch.float64
        gap = f", largest difference {float((a[wrong].to(kind) - e[wrong].to(kind)).abs().max()):.3g}"
    return (
        f"{int(wrong.sum())} of {wrong.numel()} values differ{gap}: at {where} {value!r} where the host has "
        f"{wanted!r} (atol {atol:g}, rtol {rtol:g})"
    )


def plain_host(tensor: Any) -> Any:
    """Return a dense, detached tensor on the host, not lazily conjugated, of a dtype PyTorch computes in."""
    import torch

    tensor = tensor.detach()
    if tensor.layout != torch.strided:
        tensor = tensor.to_dense()
    if tensor.is_quantized:
        tensor = tensor.dequantize()
    tensor = tensor.cpu().resolve_conj().resolve_neg()
    if tensor.dtype is torch.complex32:
        return tensor.to(torch.complex64)
    eight = tensor.is_floating_point() and tensor.element_size() == 1 and "float4" not in str(tensor.dtype)
    return tensor.float() if eight else tensor


def _numbers(actual: complex, expected: complex, tolerances: Tolerances) -> str:
    import torch

    if actual == expected or (cmath.isnan(actual) and cmath.isnan(expected)):
        return ""
    atol, rtol = tolerances.of(torch.float64 if not isinstance(expected, complex) else torch.complex128)
    exact = isinstance(expected, (bool, int)) and isinstance(actual, (bool, int))
    if not exact and abs(actual - expected) <= max(atol, 1e-7) + max(rtol, 1e-7) * abs(expected):
        return ""
    return f"{actual!r} where the host has {expected!r}"


def _kind(dtype: Any) -> str:
    if dtype.is_complex:
        return "complex"
    return "real" if dtype.is_floating_point else str(dtype)


def _is_tensor(value: Any) -> bool:
    import torch

    return isinstance(value, torch.Tensor)


def _is_sequence(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))


def _plain(value: Any) -> bool:
    """Whether equality means anything for ``value``; two generators or streams are never equal."""
    import torch

    return value is None or isinstance(value, (str, bytes, torch.dtype, torch.layout))
