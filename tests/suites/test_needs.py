"""Each need that the catalogue declares is a status with its cause where it is not met."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any

import pytest

from torchgauge import registry
from torchgauge.suites.torchbench.suite import TorchBenchRecipe

FAMILIES = [("timm", "timm"), ("huggingface", "transformers")]


@pytest.mark.torch
@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")
@pytest.mark.parametrize(("suite", "package"), FAMILIES)
def test_without_its_library_every_model_of_the_full_tier_is_skipped(
    child: Callable[..., Any], suite: str, package: str
) -> None:
    """At full size, in PyTorch's batches, in both modes: skipped for a missing package, with pip's line."""
    rows = child("child_needs.py", suite, package)
    entries = registry.load("torchgauge.suites", suite).models()
    assert set(rows) == {f"{entry.name}:{mode}" for entry in entries for mode in entry.batch}
    assert {tuple(row[:2]) for row in rows.values()} == {("skipped", "missing_package")}
    assert all(f"pip install {package}" in row[2] for row in rows.values())


@pytest.mark.parametrize("suite", ["timm", "huggingface", "torchbench"])
def test_no_model_declares_a_need_that_nothing_answers(suite: str) -> None:
    """Packages are torch and libraries that the tests above and those of TorchBench take away."""
    entries = registry.load("torchgauge.suites", suite).models()
    needs = {package for entry in entries for package in entry.packages}
    assert needs <= {"torch", "torchvision", "timm", "transformers"}
    known = set(TorchBenchRecipe.__struct_fields__)
    if suite == "torchbench":
        assert {key for entry in entries for key in entry.recipe} <= known
    assert all({"small", "full"} == set(entry.sizes) for entry in entries)
    assert all(entry.parameters for entry in entries if suite != "torchbench"), (
        "a full model without its parameter count"
    )
