"""Rows of checks as findings: which say no, which are dangerous, and which cannot be told."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from torchgauge.harness.bringup.evidence import findings_of
from torchgauge.harness.bringup.finding import Kind
from torchgauge.harness.bringup.question import DEVICES, FALLBACKS
from torchgauge.records import Failure, Status
from torchgauge.suites.check import TOO_FEW

sys.path.insert(0, str(Path(__file__).parents[2] / "results"))
from stored_runs import case, result

RAISED = Failure("RuntimeError", "out of range")
MISSING = replace(RAISED, missing_op="aten::exp")


def test_more_processes_than_devices_are_no_fault_of_the_device() -> None:
    """A case for three processes says nothing of a machine with two devices."""
    of = case("flight_recorder-late", mode="check")
    of = replace(of, workload=replace(of.workload, suite="distributed"))
    (found,) = findings_of(
        [result(of, status=Status.UNSUPPORTED, reason=f"3 processes {TOO_FEW}: there are 2")]
    )
    assert (found.about, found.kind, found.decides) == (DEVICES, Kind.UNKNOWN, False)


@pytest.mark.parametrize("model", ["noop", "sum", "mlp"])
def test_a_model_without_operators_leaves_no_doubt_about_fallbacks(model) -> None:
    """Where the profiler recorded nothing of a model that has operators, nobody can say where they ran."""
    row = result(case(model), facts=(("fallback_unknown", "the profiler recorded nothing"),))
    found = [each for each in findings_of([row]) if each.about == FALLBACKS]
    assert [each.kind for each in found] == ([Kind.UNKNOWN] if model == "mlp" else [])


@pytest.mark.parametrize(
    ("name", "status", "failure", "kind", "decides"),
    [
        ("tensor.strides", Status.INFRA, None, Kind.UNKNOWN, True),
        ("tensor.strides", Status.ERROR, Failure("AssertionError", "it is another"), Kind.DANGER, True),
        ("tensor.strides", Status.ERROR, RAISED, Kind.NEXT, True),
        ("allocator.snapshot", Status.ERROR, MISSING, Kind.NEXT, False),
        ("autoload.import_without_stack", Status.UNSUPPORTED, None, Kind.UNKNOWN, False),
    ],
)
def test_a_check_that_does_not_pass_stands_where_it_belongs(name, status, failure, kind, decides) -> None:
    """What raised is work to do, a wrong answer is dangerous, and what was not measured forbids a yes."""
    of = case(name, mode="check")
    of = replace(of, workload=replace(of.workload, suite="conformance"))
    (found,) = findings_of([result(of, status=status, failure=failure)])
    assert (found.kind, found.decides) == (kind, decides)
