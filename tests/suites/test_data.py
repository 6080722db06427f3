"""The data files that ship: valid, complete, and true of the installed libraries."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any

import pytest

from torchgauge import registry
from torchgauge.records import Workload
from torchgauge.suites.catalog import YamlSuite, workload_for
from torchgauge.suites.tolerances import tolerance_for

SUITES = ("toy", "timm", "huggingface")
needs_libraries = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("torch", "timm", "transformers")),
    reason="needs torch, timm and transformers",
)


def suite(name: str) -> YamlSuite:
    found = registry.load("torchgauge.suites", name)
    assert isinstance(found, YamlSuite)
    return found


@pytest.mark.parametrize("name", SUITES)
def test_every_entry_makes_workloads_with_tolerances(name: str) -> None:
    """Each model, mode and size has a workload, and each workload a tolerance."""
    entries = suite(name).models()
    assert entries
    for entry in entries:
        for mode in entry.batch:
            for size in entry.sizes:
                workload = workload_for(name, entry, mode, size=size)
                assert isinstance(workload, Workload)
                assert tolerance_for(workload, entry).absolute > 0


@pytest.mark.parametrize("name", SUITES)
def test_suites_say_what_they_are(name: str) -> None:
    """A descriptor has its own name, a sentence, a hint and a digest."""
    found = suite(name)
    assert found.name == name
    assert found.doc.endswith(".")
    assert found.install_hint
    assert len(found.digest) == 16


def test_the_tiers_hold_what_they_promise() -> None:
    """Smoke is six models of each library and every toy; standard is all that upstream still runs."""

    def count(name: str, tier: str) -> int:
        return sum(tier in entry.tiers for entry in suite(name).models())

    assert (count("timm", "smoke"), count("timm", "standard")) == (6, 18)
    assert (count("huggingface", "smoke"), count("huggingface", "standard")) == (6, 30)
    assert count("toy", "smoke") == len(suite("toy").models())
    assert {entry.name for entry in suite("toy").models() if entry.framework == "python"} == {"noop", "sum"}


@pytest.mark.torch
@needs_libraries
def test_names_exist_in_the_installed_libraries(child: Callable[..., Any]) -> None:
    """Every timm name, every transformers class and every overridden field exists."""
    assert child("child_names.py") == {"timm": [], "transformers": [], "fields": []}
