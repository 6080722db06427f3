"""One call of an operator in each of its variants, on whatever device the sample lies. Worker side."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from torchgauge.suites.ops.altered import expanded
from torchgauge.suites.ops.equal_values import POSITIONS, gives_places
from torchgauge.suites.ops.samples import SEED, mapped, seed, tensors_of
from torchgauge.suites.ops.upstream import (
    BACKWARD,
    EMPTY,
    EXPANDED,
    FORWARD,
    INPLACE,
    LARGE,
    NONCONTIGUOUS,
    OUT,
)

GRADIENT_SEED = 4321


class BrokenPromiseError(AssertionError):
    """A variant's result is not the object that PyTorch promises: out= or the input itself."""


def prepared(variant: str, sample: Any) -> Any:
    """``sample``, where it lies, in the memory layout of ``variant``: a copy to a device may undo one."""
    if variant == NONCONTIGUOUS:
        return sample.noncontiguous()
    return (expanded(sample) or sample) if variant == EXPANDED else sample


def run(op: Any, variant: str, sample: Any) -> Any:
    """What ``op`` gives in ``variant`` for a ``sample`` that is :func:`prepared`.

    Raises whatever the operator raises, and :class:`BrokenPromiseError`.
    """
    seed(SEED)
    return _RUNS[variant](op, sample)


def plain(op: Any, sample: Any) -> Any:
    """The forward result, freed from freedoms of the mathematics (signs of singular vectors)."""
    return sample.output_process_fn_grad(op(sample.input, *sample.args, **sample.kwargs))


def _values(op: Any, sample: Any) -> Any:
    """The forward result for inputs with equal values, without places among them; None where that is all."""
    import torch

    found = plain(op, sample)
    if POSITIONS.fullmatch(op.name) is None:
        return found
    if isinstance(found, tuple):
        return found[0]
    return None if isinstance(found, torch.Tensor) and gives_places(op) else found


def _out(op: Any, sample: Any) -> Any:
    """The result written to ``out=``: tensors of the right shape and strides, filled with ones."""
    import torch

    def blank(value: torch.Tensor) -> torch.Tensor:
        return torch.ones_like(value.detach())

    expected = op(sample.input, *sample.args, **sample.kwargs)
    out = mapped(expected, blank)
    if next(tensors_of(out), None) is None:
        return None
    seed(SEED)
    returned = op(sample.input, *sample.args, **sample.kwargs, out=out)
    if returned is None:  # an operator that writes lists gives nothing back
        return sample.output_process_fn_grad(out)
    for place, (given, got) in enumerate(zip(tensors_of(out), tensors_of(returned), strict=True)):
        if got is not given and got.data_ptr() != given.data_ptr():
            raise BrokenPromiseError(f"result {place} is not the tensor that was given as out=")
    return sample.output_process_fn_grad(out)


def _inplace(op: Any, sample: Any) -> Any:
    """The input after the in-place form, which must return the input."""
    import torch

    target = sample.input
    given = target.detach().clone() if isinstance(target, torch.Tensor) else mapped(target, torch.clone)
    returned = op.get_inplace()(given, *sample.args, **sample.kwargs)
    for got, wanted in zip(tensors_of(returned), tensors_of(given), strict=False):
        if got is not wanted and got.data_ptr() != wanted.data_ptr():
            raise BrokenPromiseError("the in-place form does not return its input")
    return sample.output_process_fn_grad(given)


def _backward(op: Any, sample: Any) -> Any:
    """Gradients of every input that asks for one, from gradients of the results drawn from one seed."""
    import torch

    inputs = [t for t in tensors_of((sample.input, sample.args, sample.kwargs)) if t.requires_grad]
    results = [t for t in tensors_of(plain(op, sample)) if t.requires_grad]
    if not inputs or not results:
        return None
    generator = torch.Generator().manual_seed(GRADIENT_SEED)
    grads = []
    for result in results:
        drawn = torch.rand(tuple(result.shape), generator=generator, dtype=torch.float32)
        grads.append((drawn + 0.5).to(result.dtype).to(result.device))
    found = torch.autograd.grad(results, inputs, grads, allow_unused=True)
    return [None if each is None else each.detach() for each in found]


_RUNS: Mapping[str, Callable[[Any, Any], Any]] = {
    FORWARD: plain,
    EMPTY: plain,
    NONCONTIGUOUS: plain,
    EXPANDED: _values,
    LARGE: _values,
    OUT: _out,
    INPLACE: _inplace,
    BACKWARD: _backward,
}
