"""Peak memory: what the model holds and what its steps add, in real processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.torch

MIB = 1 << 20
CHILD = Path(__file__).parent / "child_memory.py"
EXPECTED = {
    "inference": 32 + 24 + 24,  # weights, input, product
    "training": 32
    + 24
    + 24
    + 32,  # and the gradients of the weights; that of the product is one number, expanded
    "attribute": 32 + 16 + 24 + 24,  # and a tensor that is no parameter
    "slots": 32 + 16 + 24 + 24,  # in an object without a dictionary
    "traced": 32 + 24 + 24,  # whose weights Python does not hold
    "gap": 32 + 24 + 10,  # the block of 8 is freed, though it lay in a gap of the heap
    "growing": 32 + 24 + 4 * 8 + 24,  # what two steps kept, and the two that are measured; once each
}
"""MiB that the tensors of each case of ``child_memory.py`` take at most at once, counted by hand."""


@pytest.fixture(scope="module")
def found() -> dict[str, dict[str, float | str]]:
    """What the child read, by case."""
    keeping = {"MALLOC_MMAP_THRESHOLD_": str(1 << 25), "MALLOC_TRIM_THRESHOLD_": str(1 << 32)}
    mapping = {"MALLOC_MMAP_THRESHOLD_": str(1 << 17)}  # where gaps come about is chance
    cases = [case for case in EXPECTED if case != "gap"]
    return {**child(mapping, *cases, "beside", "python"), **child({}, "gap"), **child(keeping, "kept")}


def child(variables: dict[str, str], *cases: str) -> dict[str, dict[str, float | str]]:
    """What the child read of ``cases``, with ``variables`` of the C library's allocator."""
    command = [sys.executable, str(CHILD), *cases]
    environment = {**os.environ, **variables}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.parametrize("case", EXPECTED)
def test_weights_gradients_and_what_a_step_needs_are_counted(
    found: dict[str, dict[str, float]], case: str
) -> None:
    """To a tenth: pages and the allocator's own bytes come to it."""
    assert found[case]["bytes"] == pytest.approx(EXPECTED[case] * MIB, rel=0.1)
    assert found[case]["provenance"] == "tensors and growth of the resident set"


def test_what_the_process_did_before_is_not_the_steps(found: dict[str, dict[str, float]]) -> None:
    """Memory that is held beside the model, as a compiler's is, changes nothing."""
    assert found["beside"]["bytes"] == pytest.approx(found["inference"]["bytes"], rel=0.1)


def test_an_allocator_that_keeps_freed_memory_is_told_from_one_that_gives_it_back(
    found: dict[str, dict[str, float]],
) -> None:
    """Steps would use again what is resident already, so the peak above the beginning is read."""
    assert found["kept"]["provenance"] == "rss_high_water_mark"
    assert found["kept"]["bytes"] >= (32 + 24 + 24) * MIB


def test_a_workload_without_torch_has_the_peak_of_its_process(found: dict[str, dict[str, float]]) -> None:
    """Nothing is known of what it holds."""
    assert found["python"]["provenance"] == "rss_high_water_mark"
    assert found["python"]["bytes"] == pytest.approx(24 * MIB, rel=0.1)
