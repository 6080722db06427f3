"""Right before fast: one rule compares a result with a reference, tensor by tensor.

It begins with PyTorch's own (``torch._dynamo.utils.same`` of the installed wheel; tests compare verdicts):
structure and dtype equal; pass if allclose at the tolerance; else pass if
``RMSE(result, fp64) <= m * RMSE(reference, fp64) + tolerance / 10``, with m = 2, and m = 3 for tensors in
float16 and bfloat16, of fewer than 1000 elements, for 1x1 kernels and where the tolerance is 2e-2 or more.
A complex tensor is judged as the pairs of reals that it is.
What passes is then judged on each tensor's own scale (``closeness.py``): a tolerance hides small values.
Unlike PyTorch's, the rule says by how much a result differs; shapes are equal and integers exact, a NaN or
infinity passes only where the reference has it, and without float64 only allclose counts, never the angle
between two tensors. Where eager can run again, an element or a slice fails by itself: see :data:`OUTLIER`,
and ``odd_slices`` of ``closeness.py``. ``docs/method.md`` has the reasons,
``tests/harness/worker/test_accuracy_peer.py`` the proofs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from traceback import extract_tb
from typing import Any

import torch

from torchgauge.counted import counted
from torchgauge.errors import JudgeError
from torchgauge.harness.worker.closeness import (
    PIECE,
    Closeness,
    Leaves,
    largest_gap,
    measure,
    odd_slices,
    parts_of,
    strangers,
)
from torchgauge.harness.worker.rounding import EagerResults
from torchgauge.records import Cause, Modifier, Tolerance
from torchgauge.suites.outputs import as_reals, as_tensor, not_finite
from torchgauge.suites.placing import named
from torchgauge.suites.torchbench.step_state import RANDOM_STATE, WRITTEN

SMALL_TENSOR = 1000
LOOSE_TOLERANCE = 2e-2
NOISY_MULTIPLIER = 3.0
LOW_PRECISION = (torch.float16, torch.bfloat16)
WITHOUT_REFERENCE = 4e-2
"""How near to float64 a result is where the reference itself is not finite; PyTorch's value."""

OUTLIER = 10.0
"""Largest error of an element in a tensor whose RMSE passes, as a multiple of what may be expected: the sum
of the tolerance and of eager's largest error. Above it, eager's runs with other rounding have to explain it.
"""

ROUNDED = "rounded"
"""The fact that names tensors which are beyond the tolerance, and within what rounding explains."""


@dataclass
class Verdict:
    """Whether a result is right, and by how much it differs from its references.

    ``rounded``, ``ties`` and ``loose`` pass only because rounding explains them: floating-point tensors,
    numbers of differing integers or booleans by path, and tensors whose shape rounding decides.
    """

    ok: bool = True
    cause: Cause | None = None
    detail: str = ""
    max_abs_error: float = 0.0
    squares: float = 0.0
    reference_squares: float = 0.0
    elements: int = 0
    failed: list[str] = field(default_factory=list)
    tensors: list[Closeness] = field(default_factory=list)
    rounded: list[str] = field(default_factory=list)
    ties: dict[str, int] = field(default_factory=dict)
    loose: list[str] = field(default_factory=list)

    def fail(self, cause: Cause, detail: str) -> None:
        """Record a failed tensor; the first one gives the verdict its cause and detail."""
        if self.ok:
            self.ok, self.cause, self.detail = False, cause, detail
        self.failed.append(detail)

    @property
    def facts(self) -> dict[str, str]:
        """Return what passed as rounding explains it, by the name of the fact that says so."""
        facts = {}
        if self.rounded:
            facts[ROUNDED] = f"{counted(len(self.rounded), 'tensor')}: {named(self.rounded)}"
        if self.ties or self.loose:
            places = [f"{path} in {counted(count, 'element')}" for path, count in self.ties.items()]
            loose = [f"the shape of {path}, which is unchecked" for path in self.loose]
            facts[Modifier.TIES.value] = f"rounding decides {named([*places, *loose])}"
        return facts

    @property
    def rmse(self) -> float | None:
        """RMSE of the result against the float64 reference over all elements; None without one."""
        return math.sqrt(self.squares / self.elements) if self.elements else None

    @property
    def reference_rmse(self) -> float | None:
        """RMSE of the eager reference against the float64 reference; None without one."""
        return math.sqrt(self.reference_squares / self.elements) if self.elements else None


@contextmanager
def _judging() -> Iterator[None]:
    """Raise what is raised inside as an error of the judge: no model and no device is to blame.

    Errors of PyTorch's signal handler pass unchanged: a worker of a ``DataLoader`` has died.
    """
    try:
        yield
    except Exception as error:
        if extract_tb(error.__traceback__)[-1].filename.endswith("signal_handling.py"):
            raise
        raise JudgeError(f"the judge failed: {type(error).__name__}: {error}") from error


@_judging()
def compare(  # noqa: PLR0917  a result, its references and how they are compared
    reference: Mapping[str, Any],
    result: Mapping[str, Any],
    fp64: Mapping[str, Any] | None,
    tolerance: Tolerance,
    own_scale: bool = True,
    eager: EagerResults | None = None,
) -> Verdict:
    """Judge ``result`` against ``reference`` with ``fp64`` as the yardstick where there is one.

    Without ``own_scale`` the tolerance alone counts. What fails passes where other results of ``eager``
    explain it.
    """
    rerun = eager is not None
    verdict, eager = Verdict(), eager or EagerResults(lambda _: {}, {**reference}, lambda: {**(fp64 or {})})
    judge = _Judge(verdict, tolerance, eager)
    if reference.keys() != result.keys():
        sides = {"eager": reference.keys() - result.keys(), "the result": result.keys() - reference.keys()}
        written = all(path.startswith(WRITTEN) for paths in sides.values() for path in paths)
        only = "written only by" if written else "only in"
        odd = [f"{', '.join(sorted(paths)[:3])} ({only} {side})" for side, paths in sides.items() if paths]
        verdict.fail(Cause.TOLERANCE, f"structure differs: {', '.join(odd)}")
        return verdict
    for path, value in reference.items():
        found = result[path]
        truth = fp64.get(path) if fp64 is not None else None
        if isinstance(value, float) and isinstance(found, int):
            found = float(found)
        if isinstance(value, torch.Tensor) is not isinstance(found, torch.Tensor):
            verdict.fail(Cause.CONTRACT, f"{path}: {_kind(found)} instead of {_kind(value)}")
        elif isinstance(value, (torch.Tensor, float)) and isinstance(found, (torch.Tensor, float)):
            judge.compare(path, as_tensor(value), as_tensor(found), truth)
        elif type(value) is not type(found) or value != found:
            drawn = path.endswith(RANDOM_STATE)
            if not drawn and type(value) is type(found) and eager.loosens(path, found):
                verdict.ties[path] = 1
            else:
                verdict.fail(Cause.TOLERANCE, f"{path}: {found!r} instead of {value!r}")
    if own_scale:
        judge.compare_scales(rerun=rerun)
    if verdict.cause is Cause.TOLERANCE and eager.stopped_by:
        verdict.detail += f"; rounding is not ruled out, because {eager.stopped_by}"
    return verdict


@dataclass
class _Judge:
    """Compares tensors within ``tolerance``, and with further runs of ``eager`` if they differ.

    Failures are recorded in ``verdict``.
    """

    verdict: Verdict
    tolerance: Tolerance
    eager: EagerResults

    def compare(
        self, path: str, expected: torch.Tensor, found: torch.Tensor, truth: torch.Tensor | None
    ) -> None:
        """Compare one tensor with eager's; :meth:`compare_scales` compares all on their own scales later."""
        verdict = self.verdict
        if expected.dtype != found.dtype:
            verdict.fail(Cause.TOLERANCE, f"{path}: dtype {found.dtype} instead of {expected.dtype}")
        elif expected.shape != found.shape and expected.ndim == found.ndim and self.eager.loosens(path):
            verdict.loose.append(path)
        elif expected.shape != found.shape:
            verdict.fail(Cause.TOLERANCE, f"{path}: shape {found.shape} instead of {expected.shape}")
        elif expected.is_floating_point() or expected.is_complex():
            if expected.numel():
                self._compare_inexact(path, expected, found, truth)
        elif not torch.equal(expected, found):
            differs = expected != found
            if self.eager.ties(path, differs, found, self.tolerance):
                verdict.ties[path] = int(differs.sum())
            else:
                one, other = (leaf[differs][0].item() for leaf in (found, expected))
                places = f" in {counted(int(differs.sum()), 'element')}" if expected.numel() > 1 else ""
                verdict.fail(
                    Cause.TOLERANCE,
                    f"{path}: {expected.dtype} values differ{places}: {one} instead of {other}",
                )

    def _compare_inexact(
        self, path: str, expected: torch.Tensor, found: torch.Tensor, truth: torch.Tensor | None
    ) -> None:
        verdict, eager, tolerance = self.verdict, self.eager, self.tolerance
        leaves = _without_pads(as_reals(expected), as_reals(found), _yardstick(truth, expected))
        if leaves is None:
            verdict.fail(
                Cause.NONFINITE, f"{path}: NaN or infinity at different positions than in the reference"
            )
            return
        expected, found, truth = leaves
        error = largest_gap(expected, found)
        verdict.max_abs_error = max(verdict.max_abs_error, error)
        passed, outlier, parts, times = True, False, [], multiplier(found, tolerance)
        chosen, sliced = parts_of(expected, path) if bool(expected.isfinite().all()) else ([...], False)
        for part in chosen:
            one, other, exact = expected[part], found[part], None if truth is None else truth[part]
            near = replace(measure(path, leaves, part, times), sliced=sliced)
            parts.append(near)
            right = torch.allclose(one, other, tolerance.relative, tolerance.absolute)
            if exact is not None and near.error is not None and near.eager_error is not None:
                verdict.squares += near.error
                verdict.reference_squares += near.eager_error
                verdict.elements += near.count
                if not right and _as_good_as_reference(one, other, exact, near, tolerance):
                    right, outlier = True, outlier or _has_outlier(one, other, exact, tolerance)
            passed = passed and right
        if not passed and eager.explains(path, expected, found):
            verdict.rounded.append(path)
            return
        if not passed or (outlier and (eager.each or eager.refute(path, expected, found))):
            at = f"{tolerance.absolute:g}"
            largest = f"{error:.3g}" if f"{error:.3g}" != at else f"{error:.6g}"
            size = f"eager's largest value is {float(expected.abs().max()):.3g}"
            verdict.fail(Cause.TOLERANCE, f"{path}: largest error {largest} at tolerance {at}; {size}")
        # no infinity, and no square beyond float64's range
        verdict.tensors += [near for near in parts if math.isfinite(near.eager + near.result)]

    def compare_scales(self, *, rerun: bool) -> None:
        """Fail tensors that do not agree on their own scale.

        Slices are judged if all whole tensors agree, and if eager can run again.
        """
        verdict, eager = self.verdict, self.eager
        for each, reason, sure in strangers(verdict.tensors, near=eager.near if rerun else None):
            if eager.explains(each.path, *each.leaves[:2]):
                verdict.rounded.append(each.path)
            elif sure or not eager.stopped_by:
                verdict.fail(Cause.TOLERANCE, f"{each.path}: {reason}")
            else:
                verdict.rounded.append(f"{each.path} (not refuted: {eager.stopped_by})")
        for each, reason in odd_slices(verdict.tensors) if rerun and verdict.ok else ():
            if eager.refute(each.path, *each.leaves[:2]):
                verdict.fail(Cause.TOLERANCE, f"{each.path}: {reason}")


@_judging()
def nonfinite(observation: Mapping[str, Any], reference: Mapping[str, Any] | None = None) -> str:
    """Return the path of the first value that holds a NaN or an infinity, or an empty string.

    Skip values whose NaNs and infinities ``reference`` has in the same places, unless no number is left that
    could be compared.
    """
    inexact = {
        path: tensor
        for path, tensor in zip(observation, map(as_tensor, observation.values()), strict=True)
        if isinstance(tensor, torch.Tensor) and (tensor.is_floating_point() or tensor.is_complex())
    }
    nothing = all(bool(tensor.isnan().all()) for tensor in inexact.values())
    for path, tensor in inexact.items():
        if not bool(tensor.isfinite().all()):
            expected = as_tensor((reference or {}).get(path))
            if nothing or not _same_places(expected, tensor):
                return path
    return ""


def without_nan(observation: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tensors and numbers of ``observation`` that hold no NaN."""
    values = {path: value for path, value in observation.items() if isinstance(value, (torch.Tensor, float))}
    return {path: value for path, value in values.items() if not torch.as_tensor(value).isnan().any()}


def _same_places(one: Any, other: torch.Tensor) -> bool:
    """Return whether two tensors have the same infinities and NaNs in the same places."""
    if (
        not isinstance(one, torch.Tensor)
        or one.shape != other.shape
        or one.is_complex() is not other.is_complex()
    ):
        return False
    return bool(torch.equal(*(not_finite(as_reals(tensor)) for tensor in (one, other))))


@_judging()
def spread(first: Mapping[str, Any], second: Mapping[str, Any]) -> float:
    """Largest absolute difference between tensors of equal path and shape."""
    worst = 0.0
    for path, value in first.items():
        other = second.get(path)
        if not isinstance(value, torch.Tensor) or not isinstance(other, torch.Tensor):
            continue
        if value.numel() and value.shape == other.shape and not value.is_nested:
            gap = largest_gap(value, other)
            worst = max(worst, gap if math.isfinite(gap) else math.inf)
    return worst


def multiplier(result: torch.Tensor, tolerance: Tolerance) -> float:
    """The RMSE multiplier m for a tensor like ``result``; see the module docstring."""
    one_by_one = result.ndim == 4 and result.shape[-1] == result.shape[-2] == 1
    noisy = result.dtype in LOW_PRECISION or result.numel() < SMALL_TENSOR or one_by_one
    if noisy or tolerance.absolute >= LOOSE_TOLERANCE:
        return max(NOISY_MULTIPLIER, tolerance.rmse_multiplier)
    return tolerance.rmse_multiplier


def _kind(leaf: Any) -> str:
    return "a tensor" if isinstance(leaf, torch.Tensor) else type(leaf).__name__


def _yardstick(truth: Any, expected: torch.Tensor) -> torch.Tensor | None:
    """Return the float64 tensor to compare with ``expected``, as pairs of reals of a complex one.

    Return None where the float64 result has another shape, is not a tensor, or has infinities elsewhere.
    """
    if (
        not isinstance(truth, torch.Tensor)
        or truth.shape != expected.shape
        or truth.is_complex() is not expected.is_complex()
    ):
        return None
    wide = as_reals(truth)
    usable = bool(wide.isfinite().all()) or _same_places(truth, expected)
    return wide if wide.dtype == torch.float64 and usable else None


def _without_pads(expected: torch.Tensor, found: torch.Tensor, truth: torch.Tensor | None) -> Leaves | None:
    """Return the tensors with 0 for NaNs and infinities that all have in the same places.

    None where ``found`` has others, or has none of those that ``expected`` and ``truth`` have. Where only
    ``expected`` has some, it overflowed, and ``truth`` judges.
    """
    finite = [tensor is not None and bool(tensor.isfinite().all()) for tensor in (expected, found, truth)]
    if finite[1] and (finite[0] or finite[2]):
        return expected, found, truth
    if not _same_places(expected, found):
        return None
    if truth is not None:  # an element that overflows only in their dtype has no error
        truth = truth.masked_fill(~expected.isfinite(), 0.0)
    return expected.nan_to_num(0.0, 0.0, 0.0), found.nan_to_num(0.0, 0.0, 0.0), truth


def _as_good_as_reference(
    expected: torch.Tensor, found: torch.Tensor, truth: torch.Tensor, near: Closeness, tolerance: Tolerance
) -> bool:
    """Whether a finite ``found`` is about as near to ``truth`` as ``expected``.

    A reference that is not finite has no distance to exceed: the result has to be near float64 by itself.
    """
    if not bool(torch.isfinite(expected).all()):
        close = torch.isclose(truth, found.double(), atol=WITHOUT_REFERENCE, rtol=WITHOUT_REFERENCE)
        return bool(close.all())
    eager = math.sqrt((near.eager_error or 0.0) / near.count)
    limit = near.multiplier * eager + tolerance.absolute / 10.0
    return math.sqrt((near.error or 0.0) / near.count) <= limit


def _has_outlier(
    expected: torch.Tensor, found: torch.Tensor, truth: torch.Tensor, tolerance: Tolerance
) -> bool:
    """Return whether an element of ``found`` is further from ``truth`` than :data:`OUTLIER` allows."""
    if not bool(expected.isfinite().all()):
        return False
    limit, relative = tolerance.absolute + largest_gap(expected, truth), OUTLIER * tolerance.relative
    pieces = zip(found.flatten().split(PIECE), truth.flatten().split(PIECE), strict=True)
    return not all(
        torch.isclose(one.double(), other, relative, OUTLIER * limit).all() for one, other in pieces
    )
