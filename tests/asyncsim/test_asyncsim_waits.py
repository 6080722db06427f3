"""A synchronisation that the harness forgets makes a known number wrong, at each place where it waits."""

from __future__ import annotations

import ast
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.torch

CHECKS = Path(__file__).parent / "checks"
NOTHING_MEASURED = {
    ("devices/calibration.py", "answer", 1): "what it asks for is copied to the host, which waits",
    ("devices/calibration.py", "answer", 2): "what it asks for is copied to the host, which waits",
    ("devices/calibration.py", "product", 1): "it only waits to hear whether the dtype has products",
    ("devices/conformance.py", "_synchronize", 1): "it only hears whether waiting raises",
    ("devices/conformance.py", "_synchronize", 2): "it only hears whether waiting raises",
    (
        "harness/ab/recorder.py",
        "_one_by_one",
        1,
    ): "steps one by one are the host's; others go through run_steps",
    (
        "harness/ab/recorder.py",
        "_one_by_one",
        2,
    ): "steps one by one are the host's; others go through run_steps",
    ("harness/backends/aot_inductor.py", "_timed", 1): "the device has no inductor",
    ("harness/backends/float8_products.py", "refused", 1): "it only waits to hear whether a product works",
    ("harness/census/child.py", "_graphs", 1): "it counts operators, when they are dispatched",
    ("harness/census/child.py", "_model", 1): "it counts operators, when they are dispatched",
    ("harness/worker/memory_growth.py", "_look", 1): "memory is taken when an operator is dispatched",
    ("harness/worker/step_trace.py", "write_trace", 1): "it writes a trace, and no number",
}
"""Waits without a number that could be wrong, and why."""


def names() -> list[str]:
    """The questions of ``checks/waits.py``, without importing it, as that would import torch."""
    tree = ast.parse((CHECKS / "waits.py").read_text(encoding="utf-8"))
    (table,) = [
        node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        and ast.unparse(node.targets[0]) == "QUESTIONS"
        and isinstance(node.value, ast.Dict)
    ]
    return [str(ast.literal_eval(key)) for key in table.keys if key is not None]


@pytest.fixture(scope="module")
def answers(child: Callable[..., Any]) -> dict[str, list[str]]:
    """Of each question: whether the harness is right as it is, and with one wait forgotten.

    Two children have half of the questions each: nearly all that they do is to wait.
    """
    with ThreadPoolExecutor() as both:
        children = list(both.map(lambda some: child(str(CHECKS / "waits.py"), *some), halves()))
    found = {}
    for done in children:
        lines = [line.rsplit(" ", 3) for line in done.stdout.splitlines() if line.count(" ") >= 3]
        assert lines, done.stderr
        found |= {name: [usual, forgetful, done.stderr] for name, usual, forgetful, _ in lines}
    return found


def halves() -> tuple[list[str], list[str]]:
    """Every other question, and the rest."""
    return names()[::2], names()[1::2]


@pytest.mark.parametrize("name", names())
def test_a_forgotten_wait_makes_a_number_wrong(answers, name):
    """Right with the wait, wrong without."""
    usual, forgetful, errors = answers.get(name, ["nothing", "nothing", str(answers)])
    assert (usual, forgetful) == ("True", "False"), errors


def test_every_wait_is_asked_about(child):
    """A wait that is new in harness or devices has a question, or a reason why it has none."""
    done = child(
        "-c",
        f"import sys; sys.path.insert(0, {str(CHECKS)!r}); import waits; print(sorted(waits.places()));"
        "print(sorted({each for question in waits.QUESTIONS.values() for each in question.places}))",
    )
    places, asked = (set(ast.literal_eval(line)) for line in done.stdout.splitlines())
    assert asked.isdisjoint(NOTHING_MEASURED)
    assert asked | set(NOTHING_MEASURED) == places
