"""Builders: real models on the CPU, the same bits in every process, one step of each mode."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

Child = Callable[..., Any]
LIBRARY = {"toy": "torch", "timm": "timm", "huggingface": "transformers"}
SUITES = [
    pytest.param(
        name,
        marks=pytest.mark.skipif(importlib.util.find_spec(library) is None, reason=f"needs {library}"),
    )
    for name, library in LIBRARY.items()
]


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


FEW = {
    "timm": "jx_nest_base,gluon_inception_v3,levit_128,gmixer_24_224",
    "huggingface": "Reformer,CLIPModel,openai/gpt-oss-20b,GPTNeoForCausalLM",
}
"""Models of the larger tiers whose recipes are unlike the others': renamed, nested, sparse, hashed."""


@pytest.mark.torch
@pytest.mark.parametrize("suite", SUITES[1:])
def test_unusual_models_build_and_run(child: Child, suite: str) -> None:
    """Models whose recipes are unlike the others' run an inference and a training step."""
    check_rows(child("child_build.py", suite, FEW[suite], "run"), FEW[suite].count(",") + 1)


@pytest.mark.torch
@pytest.mark.full
@pytest.mark.parametrize("suite", SUITES[1:])
@pytest.mark.parametrize("tier", ["standard", "full"])
def test_every_other_model_builds_and_runs(child: Child, suite: str, tier: str) -> None:
    """Each model of the larger tiers runs an inference and a training step with finite numbers."""
    check_rows(child("child_build.py", suite, tier, "run", timeout_s=3600))


def check_rows(rows: list[dict[str, Any]], models: int | None = None) -> None:
    """Both modes of each of ``models`` models are finite, and a training step reaches the parameters."""
    assert rows
    assert models is None or len(rows) == 2 * models
    for row in rows:
        assert row["finite"], row
        assert row["float32"], row
        assert row.get("repeatable", True), row
        assert row.get("with_gradient", True), row
        assert row.get("spread", 1.0) > 1e-6, row  # an output that is constant compares nothing


@pytest.mark.torch
@pytest.mark.skipif(importlib.util.find_spec("timm") is None, reason="needs timm")
def test_no_block_is_hidden_by_a_gain_of_zero(child: Child) -> None:
    """Every kernel takes part in the loss, so that an accuracy check sees an error in any of them."""
    models = ("resnet18", "regnety_002", "nfnet_l0", "dm_nfnet_f0", "gmixer_24_224")
    assert child("child_blocks.py", ",".join(models)) == {model: [] for model in models}


@pytest.mark.torch
@pytest.mark.parametrize("suite", SUITES[1:])
def test_a_small_model_does_not_pose_as_a_full_one(child: Child, suite: str) -> None:
    """At size ``full`` a model has as many parameters as the data file says; counted without memory."""
    for row in child("child_counts.py", suite, FEW[suite]):
        assert row["full"] == row["declared"], row


@pytest.mark.torch
@pytest.mark.full
@pytest.mark.parametrize("suite", SUITES[1:])
def test_every_full_model_has_its_parameters(child: Child, suite: str) -> None:
    """The same for each model of the suite."""
    rows = child("child_counts.py", suite)
    assert len(rows) > 60
    assert [row for row in rows if row["full"] != row["declared"]] == []
