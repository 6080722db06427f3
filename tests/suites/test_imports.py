"""Which half of the suites may import what."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

PARENT = ["catalog", "document", "schema", "tolerances", "expectations", "torchbench.checkout"]
PARENT += ["toy.suite", "timm.suite", "huggingface.suite", "torchbench.suite"]
WORKER = ["suite", "hub", "toy.models", "timm.models", "huggingface.models", "torchvision_schemas"]
WORKER += ["torchbench.reasons", "torchbench.models"]


@pytest.mark.parametrize(("half", "modules"), [("parent", PARENT), ("worker", WORKER)])
def test_no_half_imports_what_it_must_not(child: Callable[..., Any], half: str, modules: list[str]) -> None:
    """The parent loads every suite without torch; a builder module loads neither torch nor our parsers."""
    assert child("child_imports.py", half, *(f"torchgauge.suites.{name}" for name in modules)) == []


@pytest.mark.torch
def test_building_needs_no_package_of_the_parent(child: Callable[..., Any]) -> None:
    """A worker builds a toy network where msgspec, yaml and click cannot be imported."""
    assert child("child_foreign.py") == ["Sequential", []]
