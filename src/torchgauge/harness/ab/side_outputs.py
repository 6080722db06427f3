"""What a side of a pair tells of its outputs, so that they can be compared with the other build's.

No tensor travels: of each there are its distance from float64, and sums that two equal ones share.
"""

from __future__ import annotations

import math
from typing import Any

import torch

from torchgauge.records import OutputError
from torchgauge.suites.outputs import Observation, as_reals, as_tensor
from torchgauge.suites.placing import is_lazy, tensors
from torchgauge.suites.suite import BuiltWorkload
from torchgauge.suites.torchbench.steps import UPDATE

LATER_STEPS = "iteration1."
"""A second training step begins where the first one ended: it says the same again, with more rounding."""
SECOND_MOMENTS = ("state.exp_avg_sq.", "state.square_avg.", "state.sum.")
"""Prefixes of the paths of running squares of gradients, as Adam, RMSprop and Adagrad keep them."""
QUARTERS = 4
TURN = 2.4
"""Element k is weighted by cosine and sine of k times this angle, so that exchanged elements change sums."""


def output_errors(truth: Observation, found: Observation) -> tuple[OutputError, ...]:
    """Return size, error and sums of each tensor of the first step that has the shape of its reference.

    Integers and booleans have no error: those of ``truth`` are taken. If an optimizer divides a gradient by
    its RMS, rounding of a small one may reverse an element of the update. So such updates of an upstream step
    have no sums, and their error is the difference of the two sizes.
    """
    errors, divides = [], any(path.startswith(SECOND_MOMENTS) for path in truth)
    for path, leaf in found.items():
        pair = [_reals(as_tensor(each)) for each in (leaf, truth.get(path))]
        result, exact = pair
        if path.startswith(LATER_STEPS) or result is None or exact is None or result.shape != exact.shape:
            continue
        whole = not (leaf.is_floating_point() or leaf.is_complex())
        result = exact if whole else result
        if not math.isfinite(float(result.sum() + exact.sum())):
            both = result.isfinite() & exact.isfinite()
            result, exact = result[both], exact[both]
        if count := exact.numel():
            angles = torch.arange(count, dtype=torch.float64, device=exact.device) * TURN
            parts = [*exact.tensor_split(QUARTERS), exact * angles.cos(), exact * angles.sin()]
            sums = tuple(_short(float(part.sum()) / math.sqrt(count)) for part in parts)
            norms = (float(each.norm()) for each in (exact, result, result - exact))
            size, own, error = (norm / math.sqrt(count) for norm in norms)
            if divides and path.startswith(UPDATE):
                sums, error = (), abs(own - size)
            errors.append(OutputError(path, _short(size), _short(error), sums, whole))
    return tuple(errors)


def start_sum(built: BuiltWorkload) -> float:
    """Return a number of order one that another seed changes, of weights, buffers and inputs.

    It is a sum, not a digest of bits: builds may draw numbers that differ in their last place.
    """
    module, total, size = built.module, 0.0, 0.0
    state = (
        [*module.named_parameters(), *module.named_buffers()] if isinstance(module, torch.nn.Module) else []
    )
    for number, (_, leaf) in enumerate((*state, *tensors({"args": built.args, "kwargs": built.kwargs}, ""))):
        odd = leaf.layout is not torch.strided or leaf.is_quantized or leaf.is_nested or leaf.is_meta
        if not odd and not is_lazy(leaf) and leaf.numel():
            wide = as_reals(leaf).detach().double().nan_to_num(0, 0, 0)
            weight = (number + 1) / math.sqrt(wide.numel())
            total, size = total + weight * float(wide.sum()), size + weight * float(wide.norm())
    return _short(total / size) if size else 0.0


def _reals(leaf: Any) -> torch.Tensor | None:
    """Return the numbers of ``leaf`` in float64 and a row, as pairs of reals of a complex one."""
    if not isinstance(leaf, torch.Tensor):
        return None
    return as_reals(leaf).detach().double().flatten()


def _short(value: float) -> float:
    return float(f"{value:.10g}")
