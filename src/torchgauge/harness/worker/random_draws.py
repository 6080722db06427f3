"""Distribution of results that contain random numbers, of eager and of code that draws others.

Inductor draws from its own generator: its results differ from eager's as much as with other seeds. So both
run the same number of steps from one state, with random numbers that go on from step to step. Means and sizes
of outputs and gradients are compared, and how much they change from step to step. In training, the
gradients must be those of the loss: the loss of the same random numbers is computed again beside the
parameters.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch

from torchgauge.harness.worker.closeness import SLIGHT
from torchgauge.harness.worker.memory import fits, model_bytes
from torchgauge.suites.outputs import Observation, as_reals
from torchgauge.suites.outputs import observe as to_host
from torchgauge.suites.suite import seed_all

if TYPE_CHECKING:
    from torchgauge.harness.worker.case_state import CaseState
    from torchgauge.harness.worker.torch_checks import TorchChecks

STEPS, FEWEST, MOST_S = 16, 8, 120.0
"""Number of compared steps, its minimum, and the seconds that a comparison may take at eager's speed."""
LIMITS = {16: 8.0, 8: 15.0}
"""Largest accepted mean difference of statistics in standard errors, by the number of steps: a t distribution
with one degree of freedom less exceeds it once in a million times.
"""
SLIGHTLY = 0.02
"""Differences up to this share of a tensor's RMS are accepted: code may round otherwise."""
NOISE = 1e-5
"""Share of a tensor's RMS that random numbers change at least."""
STEADY = 12.0
"""A change from step to step may be so many standard deviations smaller than eager's."""
MOVES = (3e-3, 3e-4)
"""Shares of the loss by which parameters are moved to change it."""
SLOPE, CURVED = 0.05, 0.02
"""Largest accepted relative error of the loss's derivative, and eager's largest one that proves anything."""
GRADIENT = "gradient"
"""Prefix of the paths of gradients."""
Statistics = dict[str, torch.Tensor]
"""Vectors by name: what they are, and the path of the tensor."""


def problem(checks: TorchChecks, state: CaseState) -> str:
    """Return how the distribution of results of ``state`` differs from eager's; empty if it does not.

    A difference counts if it is found in two series of steps. Raises what a step raises.
    """
    own, eager = state.prepared.call, checks.subject.module
    checks.restore(whole=True)
    began = time.perf_counter()
    checks.step(eager)()
    seconds = 2.0 * (time.perf_counter() - began)
    count = STEPS if seconds * STEPS < MOST_S / 2.0 else FEWEST
    if seconds * count > MOST_S:
        return ""
    for number in range(2):
        series = [_statistics(checks, call, count, number) for call in (eager, own)]
        found = _difference(*series)
        if not found:
            return _wrong_slope(checks, own)
    return found


def _statistics(checks: TorchChecks, call: Callable[..., Any], count: int, later: int) -> list[Statistics]:
    """Return statistics of ``count`` steps by name, each a vector; ``later`` is added to the seed."""
    checks.restore(whole=True)
    step, found, last = checks.step(call), list[Statistics](), Observation()
    seed_all(replace(checks.subject, seed=checks.subject.seed + 1 + later))
    for _ in range(count + 1):
        if not checks.built.wrappable:  # its optimizer would lead the two series apart
            step = checks.step(call)
        shown = to_host(step(), "out") | to_host(_gradients(checks), GRADIENT)
        tensors = {path: as_reals(leaf).double() for path, leaf in shown.items() if _is_inexact(leaf)}
        statistics: Statistics = {}
        for path, leaf in tensors.items():
            statistics |= _of_tensor(path, leaf)
            former = last.get(path)
            if former is not None and former.shape == leaf.shape:
                statistics |= _of_change(path, leaf - former)
        found.append(statistics)
        last = tensors
    checks.restore(whole=True)
    return found[1:]


def _of_tensor(path: str, leaf: torch.Tensor) -> Statistics:
    """Return the mean and the RMS of a tensor, and of all elements of each index of a dimension."""
    found = {f"mean {path}": leaf.mean().view(1), f"RMS {path}": _rms(leaf).view(1)}
    for dim in range(leaf.ndim) if leaf.ndim > 1 or leaf.numel() > 1 else ():
        rows = leaf.movedim(dim, 0).flatten(1) if leaf.ndim > 1 else leaf[:, None]
        found[f"mean in dimension {dim} {path}"] = rows.mean(1)
        found[f"RMS in dimension {dim} {path}"] = rows.square().mean(1).sqrt()
    return found


def _of_change(path: str, change: torch.Tensor) -> Statistics:
    """Return the RMS of a change, and that of its means over each dimension: 0 for independent rows."""
    found = {f"change {path}": _rms(change).view(1)}
    for dim in range(change.ndim) if change.ndim > 1 else ():
        found[f"change of the mean over dimension {dim} {path}"] = _rms(change.mean(dim)).view(1)
    return found


def _difference(eager: list[Statistics], own: list[Statistics]) -> str:
    """Return the first statistic in which the steps of ``own`` differ from eager's; empty if none does.

    Tensors without random numbers are not compared, nor gradients that may be rounding errors.
    """
    shared = {*eager[0]}.intersection(*eager, *own)
    of_eager = {name: torch.stack([each[name] for each in eager]) for name in shared}
    sizes = {name: float(_rms(value)) for name, value in of_eager.items()}
    gradients = sorted(size for name, size in sizes.items() if name.startswith(f"RMS {GRADIENT}."))
    least = SLIGHT * gradients[len(gradients) // 2] if gradients else 0.0
    for name in sorted(shared):
        what, path = name.rsplit(" ", 1)
        size, change = sizes[f"RMS {path}"], sizes.get(f"change {path}", 0.0)
        if change <= NOISE * size or (path.startswith(GRADIENT) and size <= least):
            continue
        one, other = of_eager[name], torch.stack([each[name] for each in own])
        if one.shape != other.shape:
            continue
        gap, mean = other - one, one.mean(0)
        far, error = float(gap.mean(0).norm()), float(gap.std(0).norm()) / math.sqrt(len(gap))
        slight = SLIGHTLY * (change if what.startswith("change") else size) * math.sqrt(len(mean))
        if far > max(slight, LIMITS[len(gap)] * error):
            values = f"{float(_rms(other.mean(0))):.3g}; eager's is {float(_rms(mean)):.3g}"
            return f"{path}: its {what} in {len(gap)} steps with other random numbers is {values}"
        if what == "change" and float(other.min()) < min(mean - STEADY * one.std(0), mean / 2.0):
            return f"{path}: a step repeats the random numbers of the step before"
    return ""


def _wrong_slope(checks: TorchChecks, call: Callable[..., Any]) -> str:
    """Return how far the gradients of ``call`` are from the derivative of its loss; empty if they agree.

    Parameters are moved along the gradients in both directions. It proves nothing if eager's do not agree.
    """
    module = checks.subject.module
    if checks.workload.mode != "training" or not fits(4 * model_bytes(module)):
        return ""
    found = [1.0]
    for share in MOVES:
        slopes = [_slope(checks, each, share) for each in (module, call)]
        if not abs(slopes[0] - 1.0) <= CURVED or math.isnan(slopes[1]):
            return ""
        found.append(slopes[1])
    far = min(found[1:], key=lambda slope: abs(slope - 1.0))
    if abs(far - 1.0) <= SLOPE:
        return ""
    return f"the loss changes {far:.3g} times as much along its gradients as they say"


def _slope(checks: TorchChecks, call: Callable[..., Any], share: float) -> float:
    """Return the change of the loss along its gradients, divided by theirs; NaN if there is no loss.

    Each step begins from the first state, with the same random numbers.
    """
    parameters = dict(checks.subject.module.named_parameters())
    former = {name: one.detach().clone() for name, one in parameters.items()}

    def loss(gradients: Mapping[str, torch.Tensor], far: float) -> tuple[float, Mapping[str, torch.Tensor]]:
        checks.restore(whole=True)
        step = checks.step(call)
        with torch.no_grad():
            for name, gradient in gradients.items():
                parameters[name].add_(gradient, alpha=far)
        try:
            with _first_backward(parameters) as found:
                step()
        finally:
            with torch.no_grad():
                for name in gradients:
                    parameters[name].copy_(former[name])
            checks.restore(whole=True)
        return found[0] if found else (math.nan, {})

    value, gradients = loss({}, 0.0)
    square = sum(float(each.double().square().sum()) for each in gradients.values())
    if not value or not square:
        return math.nan
    far = share * abs(value) / square
    return (loss(gradients, far)[0] - loss(gradients, -far)[0]) / (2.0 * far * square)


@contextmanager
def _first_backward(
    parameters: Mapping[str, torch.Tensor],
) -> Iterator[list[tuple[float, dict[str, torch.Tensor]]]]:
    """Yield a list of the loss of the first backward pass in this context, and of its gradients by name."""
    found: list[tuple[float, dict[str, torch.Tensor]]] = []
    backward = torch.autograd.backward

    def run(tensors: Any, *args: Any, **kwargs: Any) -> None:
        former = {name: None if one.grad is None else one.grad.clone() for name, one in parameters.items()}
        backward(tensors, *args, **kwargs)
        if not found and isinstance(tensors, torch.Tensor) and tensors.numel() == 1:
            slopes = {name: one.grad for name, one in parameters.items() if one.grad is not None}
            slopes = {
                name: one.clone() if (last := former[name]) is None else one - last
                for name, one in slopes.items()
            }
            found.append((float(tensors), slopes))

    torch.autograd.backward = run
    try:
        yield found
    finally:
        torch.autograd.backward = backward


def _gradients(checks: TorchChecks) -> dict[str, torch.Tensor]:
    named = checks.subject.module.named_parameters()
    return {name: one.grad for name, one in named if one.grad is not None}


def _rms(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.square().mean().sqrt()


def _is_inexact(leaf: Any) -> bool:
    return isinstance(leaf, torch.Tensor) and leaf.is_floating_point() and leaf.numel() > 0
