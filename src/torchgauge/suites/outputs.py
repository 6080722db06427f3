"""What a model returned, as named tensors on the host; worker side only."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import torch

from torchgauge.errors import UnobservableError
from torchgauge.suites.leaves import Unknown, leaves
from torchgauge.suites.suite import HOST

ROUNDING_FLOOR = 16.0 * 2.0**-23
"""Share of the largest magnitude below which a difference counts as rounding: 16 units of float32."""
Observation = dict[str, Any]
"""Path of a value inside the output -> tensor on the host, or a plain number or text."""


def observe(value: Any, prefix: str = "out", *, copy: bool = True) -> Observation:
    """Return every leaf in ``value``, detached and on the host.

    Those that are on the host are copied there unless ``copy`` is False.

    Raises :class:`UnobservableError` for one that cannot be compared: it would be dropped in silence.
    """
    seen: Observation = {}
    for path, leaf in leaves(value, prefix):
        if isinstance(leaf, Unknown):
            raise UnobservableError(
                f"{path} is a {leaf.kind}, which cannot be compared",
                hint="return tensors, numbers, text or containers of these; or convert the value in the "
                "suite's build function or in the scenario's observe()",
            )
        seen[path] = to_host(leaf, copy=copy)
    return seen


def zeros_and_none(expected: Observation, shown: Observation, kinds: tuple[str, ...]) -> set[str]:
    """Return the paths, with prefixes in ``kinds``, of gradients of zeros that only one of both has.

    Compiled code gives zeros to a parameter of an unused output, and eager gives it no gradient. Both are
    equal, as for ``torch._dynamo.testing.collect_results``.
    """
    both = {**expected, **shown}
    odd = (path for path in expected.keys() ^ shown.keys() if path.startswith(kinds))
    return {path for path in odd if not both[path].to_dense().any()}


def with_leaves_of(expected: Observation, shown: Observation, paths: Collection[str]) -> Observation:
    """Return ``shown`` with the leaves of ``expected`` at ``paths``, and no others there."""
    others = {path: leaf for path, leaf in shown.items() if path not in paths}
    return others | {path: leaf for path, leaf in expected.items() if path in paths}


def elements(observation: Mapping[str, Any]) -> int:
    """How many numbers and texts ``observation`` holds."""
    return sum(leaf.numel() if isinstance(leaf, torch.Tensor) else 1 for leaf in observation.values())


def finite(path: str, leaf: Any) -> Observation:
    """``leaf`` with its infinities and NaNs apart: in a mask they are right, and have no distance."""
    if not isinstance(leaf, torch.Tensor) or not leaf.is_floating_point() or bool(leaf.isfinite().all()):
        return {path: leaf}
    return {path: leaf.nan_to_num(0.0, 0.0, 0.0), f"{path}.not_finite": not_finite(leaf)}


def not_finite(leaf: torch.Tensor) -> torch.Tensor:
    """Return a number for each element of a real ``leaf``: 1 for -inf, 2 for NaN, 3 for inf, else 0."""
    codes = 1 + leaf.isnan().to(torch.int8) + 2 * (leaf > 0).to(torch.int8)
    return codes * ~leaf.isfinite()


def change(former: Any, present: Any) -> Any:
    """Return how far ``present`` lies from ``former``, or ``present`` itself if they have no such distance.

    Two dense tensors of one shape and one floating-point or complex dtype have one. It is 0 where both are
    the same infinity or NaN, and NaN where one is NaN.
    """
    for one in (former, present):
        if not isinstance(one, torch.Tensor) or one.layout is not torch.strided or one.is_nested:
            return present
    if former.shape != present.shape or former.dtype != present.dtype:
        return present
    inexact = present.is_floating_point() or present.is_complex()
    if not inexact or present.element_size() == 1 or present.dtype is torch.complex32:
        return present
    before, now = former.detach().to(present.device), present.detach()
    moved = now - before
    if bool(moved.isfinite().all()):
        return moved
    return moved.masked_fill((now == before) | (now.isnan() & before.isnan()), 0.0)


def to_host(leaf: Any, *, copy: bool = True) -> Any:
    """Return ``leaf`` detached and on the host, by default as a copy, without code of its class."""
    if not isinstance(leaf, torch.Tensor):
        return leaf
    with torch._C.DisableTorchFunctionSubclass():
        return leaf.detach().to(HOST, copy=copy)


def alike(one: Any, other: Any) -> bool:
    """Return whether both are tensors of one shape that have elements."""
    tensors = isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor)
    return tensors and one.shape == other.shape and bool(one.numel())


def as_reals(tensor: torch.Tensor) -> torch.Tensor:
    """Return a complex ``tensor`` with real and imaginary part in a last dimension, any other as it is."""
    return torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor


def as_tensor(leaf: Any) -> Any:
    """Return a float as a tensor of float64, and any other leaf as it is."""
    return torch.tensor(leaf, dtype=torch.float64) if isinstance(leaf, float) else leaf
