"""Right before fast: one rule compares a result with a reference, tensor by tensor.

It begins with PyTorch's own (``torch._dynamo.utils.same`` of the installed wheel; tests compare verdicts):
structure and dtype equal; pass if allclose at the tolerance; else pass if
``RMSE(result, fp64) <= m * RMSE(reference, fp64) + tolerance / 10``, with m = 2, and m = 3 for tensors in
float16 and bfloat16, of fewer than 1000 elements, for 1x1 kernels and where the tolerance is 2e-2 or more.
A complex tensor is judged as the pairs of reals that it is.
What passes is then judged on each tensor's own scale (``closeness.py``): a tolerance hides small values.
Unlike PyTorch's, the rule says by how much a result differs; shapes are equal and integers exact, a NaN or
infinity passes only where the reference has it, and without float64 only allclose counts, never the angle
between two tensors. ``docs/method.md`` has the reasons, ``tests/harness/worker/test_accuracy_peer.py`` the
proofs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from torchgauge.harness.worker.closeness import Closeness, measure, strangers
from torchgauge.records import Cause, Tolerance
from torchgauge.suites.outputs import not_finite

SMALL_TENSOR = 1000
LOOSE_TOLERANCE = 2e-2
NOISY_MULTIPLIER = 3.0
LOW_PRECISION = (torch.float16, torch.bfloat16)
WITHOUT_REFERENCE = 4e-2
"""How near to float64 a result is where the reference itself is not finite; PyTorch's value."""


@dataclass
class Verdict:
    """Whether a result is right, and by how much it differs from its references."""

    ok: bool = True
    cause: Cause | None = None
    detail: str = ""
    max_abs_error: float = 0.0
    squares: float = 0.0
    reference_squares: float = 0.0
    elements: int = 0
    failed: list[str] = field(default_factory=list)
    tensors: list[Closeness] = field(default_factory=list)

    def fail(self, cause: Cause, detail: str) -> None:
        """Record a failed tensor; the first one gives the verdict its cause and detail."""
        if self.ok:
            self.ok, self.cause, self.detail = False, cause, detail
        self.failed.append(detail)

    @property
    def rmse(self) -> float | None:
        """RMSE of the result against the float64 reference over all elements; None without one."""
        return math.sqrt(self.squares / self.elements) if self.elements else None

    @property
    def reference_rmse(self) -> float | None:
        """RMSE of the eager reference against the float64 reference; None without one."""
        return math.sqrt(self.reference_squares / self.elements) if self.elements else None


def compare(
    reference: Mapping[str, Any],
    result: Mapping[str, Any],
    fp64: Mapping[str, Any] | None,
    tolerance: Tolerance,
    own_scale: bool = True,
) -> Verdict:
    """Judge ``result`` against ``reference`` with ``fp64`` as the yardstick where there is one.

    Without ``own_scale`` the tolerance alone counts.
    """
    verdict = Verdict()
    if reference.keys() != result.keys():
        odd = sorted(reference.keys() ^ result.keys())
        verdict.fail(Cause.TOLERANCE, f"structure differs: {', '.join(odd[:3])}")
        return verdict
    for path, expected in reference.items():
        truth = fp64.get(path) if fp64 is not None else None
        if isinstance(expected, torch.Tensor):
            _compare_tensor(path, expected, result[path], truth, tolerance, verdict)
        elif isinstance(expected, float) and isinstance(result[path], (int, float)):
            _compare_tensor(path, _number(expected), _number(result[path]), None, tolerance, verdict)
        elif type(expected) is not type(result[path]) or expected != result[path]:
            verdict.fail(Cause.TOLERANCE, f"{path}: {result[path]!r} instead of {expected!r}")
    for path, reason in strangers(verdict.tensors) if own_scale else ():
        verdict.fail(Cause.TOLERANCE, f"{path}: {reason}")
    return verdict


def nonfinite(observation: Mapping[str, Any], reference: Mapping[str, Any] | None = None) -> str:
    """Return the path of the first value that holds a NaN or an infinity, or an empty string.

    Skip values whose NaNs and infinities ``reference`` has in the same places. A tensor of only NaN is always
    returned.
    """
    for path, value in observation.items():
        tensor = _number(value) if isinstance(value, float) else value
        if not isinstance(tensor, torch.Tensor) or not (tensor.is_floating_point() or tensor.is_complex()):
            continue
        if not bool(tensor.isfinite().all()):
            expected = None if reference is None else reference.get(path)
            expected = _number(expected) if isinstance(expected, float) else expected
            if bool(tensor.isnan().all()) or not _same_places(expected, tensor):
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
    both = (_reals(each) if each.is_complex() else each for each in (one, other))
    return bool(torch.equal(*map(not_finite, both)))


def spread(first: Mapping[str, Any], second: Mapping[str, Any]) -> float:
    """Largest absolute difference between tensors of equal path and shape."""
    worst = 0.0
    for path, value in first.items():
        other = second.get(path)
        if not isinstance(value, torch.Tensor) or not isinstance(other, torch.Tensor):
            continue
        if value.numel() and value.shape == other.shape:
            wide = torch.complex128 if value.is_complex() else torch.float64
            gap = (value.to(wide) - other.to(wide)).abs().max().item()
            worst = max(worst, gap if math.isfinite(gap) else math.inf)
    return worst


def multiplier(result: torch.Tensor, tolerance: Tolerance) -> float:
    """The RMSE multiplier m for a tensor like ``result``; see the module docstring."""
    one_by_one = result.ndim == 4 and result.shape[-1] == result.shape[-2] == 1
    noisy = result.dtype in LOW_PRECISION or result.numel() < SMALL_TENSOR or one_by_one
    if noisy or tolerance.absolute >= LOOSE_TOLERANCE:
        return max(NOISY_MULTIPLIER, tolerance.rmse_multiplier)
    return tolerance.rmse_multiplier


def _compare_tensor(  # noqa: PLR0917  one tensor with its three references
    path: str,
    expected: torch.Tensor,
    found: Any,
    truth: torch.Tensor | None,
    tolerance: Tolerance,
    verdict: Verdict,
) -> None:
    if not isinstance(found, torch.Tensor) or expected.shape != found.shape:
        verdict.fail(
            Cause.TOLERANCE, f"{path}: shape {getattr(found, 'shape', None)} instead of {expected.shape}"
        )
        return
    if expected.dtype != found.dtype:
        verdict.fail(Cause.TOLERANCE, f"{path}: dtype {found.dtype} instead of {expected.dtype}")
        return
    truth = _yardstick(truth, expected)
    if expected.is_complex():
        expected, found = _reals(expected), _reals(found)
    if not expected.is_floating_point() or not expected.numel():
        if not torch.equal(expected, found):
            verdict.fail(Cause.TOLERANCE, f"{path}: {expected.dtype} values differ")
        return
    pads = _without_pads(expected, found, truth)
    if pads is None:
        verdict.fail(Cause.NONFINITE, f"{path}: NaN or infinity in other places than in the reference")
        return
    expected, found, truth = pads
    error = (expected.double() - found.double()).abs().max().item()
    verdict.max_abs_error = max(verdict.max_abs_error, error)
    passed = torch.allclose(expected, found, atol=tolerance.absolute, rtol=tolerance.relative)
    near = measure(path, expected, found, truth, multiplier(found, tolerance))
    if truth is not None and near.error is not None and near.eager_error is not None:
        verdict.squares += near.error
        verdict.reference_squares += near.eager_error
        verdict.elements += near.count
        if not passed:
            passed = _as_good_as_reference(expected, found, truth, near, tolerance)
    if not passed:
        verdict.fail(
            Cause.TOLERANCE, f"{path}: largest error {error:.3g} at tolerance {tolerance.absolute:g}"
        )
    if math.isfinite(near.eager + near.result):  # no infinity, and no square beyond float64's range
        verdict.tensors.append(near)


def _number(value: float) -> torch.Tensor:
    return torch.tensor(float(value), dtype=torch.float64)


def _yardstick(truth: Any, expected: torch.Tensor) -> torch.Tensor | None:
    """Return the float64 tensor to compare with ``expected``, as pairs of reals of a complex one.

    Return None where the float64 result has another shape, is not a tensor, or has infinities elsewhere.
    """
    pairs = expected.is_complex()
    if (
        not isinstance(truth, torch.Tensor)
        or truth.shape != expected.shape
        or truth.is_complex() is not pairs
    ):
        return None
    wide = _reals(truth) if pairs else truth
    usable = bool(wide.isfinite().all()) or _same_places(truth, expected)
    return wide if wide.dtype == torch.float64 and usable else None


def _without_pads(
    expected: torch.Tensor, found: torch.Tensor, truth: torch.Tensor | None
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None] | None:
    """Return the tensors with 0 for NaNs and infinities that all have in the same places.

    None where ``found`` has others, or has none of those that ``expected`` and ``truth`` have. Where only
    ``expected`` has some, it overflowed, and ``truth`` judges.
    """
    finite = [tensor is not None and bool(tensor.isfinite().all()) for tensor in (expected, found, truth)]
    if finite[1] and (finite[0] or finite[2]):
        return expected, found, truth
    if not _same_places(expected, found):
        return None
    if truth is not None:
        truth = truth.nan_to_num(0.0, 0.0, 0.0)
    return expected.nan_to_num(0.0, 0.0, 0.0), found.nan_to_num(0.0, 0.0, 0.0), truth


def _reals(tensor: torch.Tensor) -> torch.Tensor:
    """A complex tensor as reals, with real and imaginary part in a last dimension."""
    return torch.view_as_real(tensor.resolve_conj())


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
