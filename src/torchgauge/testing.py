"""Public helpers for plugin authors and for torchgauge's own tests.

A device author calls :func:`check_device` on the descriptor and :func:`check_session` on a live session; a
suite author calls :func:`check_suite`. The
builders make valid records with as few words as a test needs.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from torchgauge.devices.conformance import check_session
from torchgauge.devices.descriptor_conformance import check_device
from torchgauge.devices.fake import DEVICE as FAKE_DEVICE
from torchgauge.records import (
    Case,
    Configuration,
    DeviceTarget,
    Group,
    Phase,
    Plan,
    PlannedCase,
    Result,
    RunSettings,
    Status,
    Tolerance,
    Workload,
)
from torchgauge.suites.suite import Suite

__all__ = [
    "FAKE_DEVICE",
    "check_device",
    "check_session",
    "check_suite",
    "make_case",
    "make_plan",
    "make_result",
]

TOLERANCE = Tolerance(1e-4, 1e-4, 2.0, "testing")


def make_case(model: str = "noop", configuration: str = "eager", **workload: Any) -> Case:
    """A case of suite ``toy`` on the fake device; keywords replace fields of the workload."""
    return Case(
        replace(Workload("toy", model), **workload),
        Configuration(configuration, configuration),
        DeviceTarget(FAKE_DEVICE.name),
    )


def make_plan(*cases: Case, run_id: str = "run") -> Plan:
    """A plan in which every case is a group of its own."""
    groups = tuple(Group(case.key, (PlannedCase(case, TOLERANCE),)) for case in cases)
    return Plan(run_id, 0.0, ("torchgauge",), RunSettings(), groups)


def make_result(case: Case, status: Status = Status.PASS, run_id: str = "run", **fields: Any) -> Result:
    """A result of ``case``; keywords replace further fields."""
    phase = Phase.DONE if status is Status.PASS else Phase.EAGER
    return Result(run_id, case.id, case, status, fields.pop("phase", phase), None, **fields)


def check_suite(suite: Suite) -> list[str]:
    """What is wrong with ``suite`` on the parent side; an empty list where nothing is."""
    problems = [
        f"the suite does not define {member!r}; if it is unused, define it as None, {{}} or ()"
        for member in ("unavailable", "environment", "notes")
        if not hasattr(suite, member)
    ]
    names = [model.name for model in suite.models()]
    if not names:
        problems.append("the suite has no models")
    if len(set(names)) != len(names):
        problems.append("two models have the same name")
    if ":" not in suite.builder:
        problems.append(f"builder {suite.builder!r} is not module:function")
    if len(suite.digest) != 16:
        problems.append(f"digest {suite.digest!r} does not consist of 16 hex digits")
    for model in suite.models():
        if any(character in model.name for character in ":@["):
            problems.append(f"model name {model.name!r} contains a separator of case ids (: @ [)")
        if not model.batch:
            problems.append(f"{model.name} offers no mode")
    return problems
