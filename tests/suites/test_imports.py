"""Which half of the suites may import what."""

from __future__ import annotations

import subprocess
import sys
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


def test_descriptors_load_without_torch() -> None:
    """Every command loads them all, in a process that needs no torch and may lack it."""
    groups = ("torchgauge.backends", "torchgauge.scenarios", "torchgauge.suites", "torchgauge.devices")
    code = (
        "import sys; from torchgauge import registry\n"
        f"for group in {groups}:\n"
        "    names = registry.names(group)\n"
        "    assert names, group\n"
        "    for name in names:\n"
        "        registry.load(group, name)\n"
        "        assert 'torch' not in sys.modules, (group, name)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.torch
def test_building_needs_no_package_of_the_parent(child: Callable[..., Any]) -> None:
    """A worker builds a toy network where msgspec, yaml and click cannot be imported."""
    assert child("child_foreign.py") == ["Sequential", []]
