"""The script that counts found faults judges what the worker would judge."""

from __future__ import annotations

from typing import Any

import accuracy_faults
import pytest

from torchgauge.records import Tolerance

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch
RULE = Tolerance(1e-2, 1e-2, 2.0, "test")
FACTORS = (1.0, *accuracy_faults.FAULTS.values())


def observations() -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Float64, eager and another implementation: gradients of several sizes, noise and one that is zero."""
    generator = torch.Generator().manual_seed(0)
    truth, eager, other = {}, {}, {}
    for place, (size, scale, noise) in enumerate(
        [(2000, 1e-4, 1e-3), (50, 1e-1, 1e-2), (1, 3.0, 1e-3), (300, 1e-5, 0.5), (40, 1e-12, 1e5)] * 3
    ):
        exact = scale * torch.randn(size, generator=generator, dtype=torch.float64)
        path = f"iteration0.grad.{place}"
        truth[path] = exact
        for made in (eager, other):
            error = torch.randn(size, generator=generator, dtype=torch.float64)
            made[path] = (exact + noise * scale * error).float()
    return truth, eager, other


def rows() -> list[dict[str, Any]]:
    """What the script keeps of them."""
    truth, eager, other = observations()
    return [
        accuracy_faults.sums(path, eager[path], other[path], truth[path], RULE, FACTORS) for path in truth
    ]


@pytest.mark.parametrize("base", ["E", "R"])
@pytest.mark.parametrize("fault", accuracy_faults.FAULTS)
def test_derived_faults_are_judged_as_planted_ones(base: str, fault: str) -> None:
    """For each tensor, the verdict from sums equals the worker's on the tensors with the fault in them."""
    from torchgauge.harness.worker.accuracy import compare

    truth, eager, other = observations()
    result, factor = eager if base == "E" else other, accuracy_faults.FAULTS[fault]
    derived = [
        (each.closeness.path, bool(reason) or not each.tolerated)
        for name, each, reason in accuracy_faults.planted(rows(), base)
        if name == fault
    ]
    assert len(derived) == 15
    for path, found in derived:
        verdict = compare(eager, result | {path: factor * result[path]}, truth, RULE)
        assert any(text.startswith(f"{path}:") for text in verdict.failed) is found, path
    assert 0 < sum(found for _, found in derived) < 15


def test_a_correct_result_is_not_accused() -> None:
    """Another rounding of everything passes, and a fault that was measured does not."""
    assert accuracy_faults.accused(rows()) == {}
    truth, eager, other = observations()
    other["iteration0.grad.0"] *= 1.1
    wrong = [accuracy_faults.sums(p, eager[p], other[p], truth[p], RULE, (1.0,)) for p in truth]
    assert list(accuracy_faults.accused(wrong)) == ["iteration0.grad.0"]
