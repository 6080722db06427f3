"""Wrong numbers that a tolerance hides end as ``fail_accuracy``, through a whole run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytestmark = pytest.mark.torch
WORDS = ("--device", "cpu", "--no-warm-compile", "--no-memory-probe")


@pytest.fixture(scope="module")
def rows(make_sandbox: Callable[[], Any]) -> dict[tuple[str, str], Any]:
    """Every row of one run in training, by model and configuration."""
    sandbox = make_sandbox()
    models = ("healthy", "gradient_lost", "gradient_scaled", "wrong_eager", "random_numbers")
    training = ("--mode", "training", "--config", "eager,aot_eager", "--models", ",".join(models))
    sandbox.measure("faults", *WORDS, *training)
    return {(row.case.workload.model, row.case.configuration.name): row for row in sandbox.rows()}


def ending(row: Any) -> tuple[str, str | None]:
    """Status and cause."""
    return row.status.value, row.cause.value if row.cause else None


def test_what_is_right_passes(rows: dict[tuple[str, str], Any]) -> None:
    """The model without a fault passes in both configurations, and so does eager beside a faulty compiler."""
    right = [("healthy", "eager"), ("healthy", "aot_eager"), ("gradient_lost", "eager")]
    assert [ending(rows[case]) for case in right] == [("pass", None)] * 3
    assert len(rows) == 10


def test_other_random_numbers_in_float64_are_no_fault(rows: dict[tuple[str, str], Any]) -> None:
    """A model that draws is not held against float64, which draws others, however far they lead away."""
    row = rows["random_numbers", "eager"]
    assert ending(row) == ("pass", None)
    assert row.accuracy.rmse_eager is None


@pytest.mark.parametrize("model", ["gradient_lost", "gradient_scaled"])
def test_a_wrong_gradient_below_the_tolerance_is_found(rows: dict[tuple[str, str], Any], model: str) -> None:
    """A compiler that zeroes one small gradient, or gives a tenth more, fails with the gradient's path."""
    row = rows[model, "aot_eager"]
    assert ending(row) == ("fail_accuracy", "tolerance")
    assert "iteration0.grad.linear.bias" in row.reason


@pytest.mark.parametrize("configuration", ["eager", "aot_eager"])
def test_eager_that_is_nothing_like_float64_fails(
    rows: dict[tuple[str, str], Any], configuration: str
) -> None:
    """Eager on the host has float64 beside it: a result three times as large ends all cases of the model."""
    row = rows["wrong_eager", configuration]
    assert ending(row) == ("fail_accuracy", "tolerance")
    assert "float64" in row.reason
