"""Builders: real models on the CPU, the same bits in every process, one step of each mode."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from torchgauge.records import Workload
from torchgauge.suites import toy_models

Child = Callable[..., Any]
LIBRARY = {"toy": "torch", "timm": "timm", "huggingface": "transformers"}
SUITES = [
    pytest.param(
        name,
        marks=pytest.mark.skipif(importlib.util.find_spec(library) is None, reason=f"needs {library}"),
    )
    for name, library in LIBRARY.items()
]


def test_python_models_need_no_torch() -> None:
    """``noop`` returns nothing; ``sum`` returns the same float each time; neither has a loss."""
    noop = toy_models.build(Workload("toy", "noop"), {})
    assert noop.framework == "python"
    assert noop.module() is None
    one, two = (toy_models.build(Workload("toy", "sum", batch=2), {}) for _ in range(2))
    assert one.module() == one.module() == two.module() > 0
    assert one.items_per_step == 2
    assert one.loss is None


@pytest.mark.parametrize("mode", ["generate", "nonsense"])
def test_a_mode_that_no_toy_has_is_not_implemented(mode: str) -> None:
    """The builder says so before it imports anything."""
    with pytest.raises(NotImplementedError, match=mode):
        toy_models.build(Workload("toy", "mlp", mode=mode), {})


@pytest.mark.torch
@pytest.mark.parametrize("suite", SUITES)
def test_smoke_models_build_and_run(child: Child, suite: str) -> None:
    """Each smoke model runs both modes, finite and without dropout, from the same bits in two processes."""
    with ThreadPoolExecutor() as pool:  # two processes side by side
        both = pool.map(lambda what: child("child_build.py", suite, "smoke", what), ("run", "digest"))
    rows, again = both
    digests = {row["model"]: row["digest"] for row in rows if row["mode"] == "inference"}
    assert digests == {row["model"]: row["digest"] for row in again}
    for row in rows:
        assert row["finite"], row
        assert row["float32"], row
        assert row["training"] is (row["mode"] == "training"), row
        if row["mode"] == "training":
            assert row["repeatable"], row
            assert row["with_gradient"], row
        else:
            assert row["loss"] is False, row
            assert 1e-2 < row["spread"] < 1e2, row


@pytest.mark.torch
@pytest.mark.full
@pytest.mark.parametrize("suite", SUITES[1:])
@pytest.mark.parametrize("tier", ["standard", "extended"])
def test_every_other_model_builds_and_runs(child: Child, suite: str, tier: str) -> None:
    """Each model of the larger tiers runs an inference and a training step with finite numbers."""
    for row in child("child_build.py", suite, tier, "run"):
        assert row["finite"], row
        assert row.get("repeatable", True), row
