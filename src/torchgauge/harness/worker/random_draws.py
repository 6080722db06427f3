"""Comparison of results with random numbers, of eager and of compiled code that draws others.

Inductor has its own generator, so its results differ from eager's as much as those of two seeds. Both
therefore run as many steps from one state, each with new random numbers. The means and sizes of outputs and
gradients are compared, and how much these change from step to step. In training, the loss is computed again
with the same random numbers and other parameters: gradients must predict its change.
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

DRAWN = "random_numbers"
"""The fact that says how a program that draws random numbers was checked."""
LIMITS = {16: 8.0, 8: 15.0}
"""Largest accepted mean difference of statistics in standard errors, by the number of steps.

A t distribution with one degree of freedom less exceeds it once in a million times.
"""
MOST_S = 60.0
"""Seconds that the steps of eager and of compiled code may take at eager's speed."""
SLIGHTLY = 0.02
"""Differences up to this share of a tensor's RMS are accepted: code may round otherwise."""
NOISE = 1e-5
"""Share of a tensor's RMS that random numbers change at least."""
STEADY = 12.0
"""A change from step to step may be so many standard deviations smaller than eager's mean change."""
MOVES = (3e-3, 3e-4)
"""Relative changes of the loss for which parameters are moved."""
SLOPE, CURVED = 0.05, 0.02
"""Largest accepted relative difference between the change of the loss and the one that gradients predict, and
the largest one of eager with which compiled code is judged at all.
"""
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
    seconds = time.perf_counter() - began
    count = next((each for each in LIMITS if 2.0 * each * seconds < MOST_S), None)
    if count is None:
        why = f"their distribution is not compared, because a step takes {seconds:.3g} s"
        state.facts[DRAWN] = f"{state.facts.get(DRAWN, 'drawn by the compiled code')}; {why}"
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
        equal: dict[torch.Size, str] = {}
        for path, leaf in tensors.items():
            statistics |= _of_tensor(path, leaf)
            if path.startswith("out"):  # two outputs may have one mask
                first = equal.setdefault(leaf.shape, path)
                if first != path:
                    statistics[f"RMS distance from {first} {path}"] = _rms(leaf - tensors[first]).view(1)
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
    """Return the RMS of a change, and that of its mean over each dimension: small for independent rows."""
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
            return f"{path}: its {what}, over {len(gap)} steps with new random numbers, is {values}"
        if what == "change" and float(other.min()) < min(mean - STEADY * one.std(0), mean / 2.0):
            return f"{path}: a step repeats the random numbers of the step before"
    return ""


def _wrong_slope(checks: TorchChecks, call: Callable[..., Any]) -> str:
    """Return how much the loss changes, if that is not what the gradients of ``call`` predict; else empty.

    Parameters are moved along the gradients in both directions. No code is judged if eager's gradients do not
    predict the change.
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
    return f"the loss changes {far:.3g} times as much as its gradients predict"


def _slope(checks: TorchChecks, call: Callable[..., Any], share: float) -> float:
    """Return the ratio of the change of the loss to the predicted one; NaN if there is no loss.

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
    """Yield a list that gets the loss of the first backward pass in this context, and its gradients."""
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
