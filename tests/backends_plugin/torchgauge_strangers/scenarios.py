"""Scenarios of a vendor that measure by themselves: one well, and one for each way to break the rules."""

from __future__ import annotations

from typing import Any

from torchgauge.harness.scenarios.scenario import ScenarioDescriptor, Subject
from torchgauge.records import Better, Metric
from torchgauge.suites.outputs import observe as to_host

CALLS_PER_S = Metric("calls_per_s", "1/s", Better.HIGHER, "calls of the model in a second")


def _named(name: str) -> ScenarioDescriptor:
    return ScenarioDescriptor(
        name, f"{name}; for tests only", f"torchgauge_strangers.{name}", ("forward",), "calls_per_s"
    )


TWICE, BOASTS, RAMBLES, GIVES_UP = _named("twice"), _named("boasts"), _named("rambles"), _named("gives_up")
SLEEPS, FORGETS, UNDONE = _named("sleeps"), _named("forgets"), _named("undone")


def enter() -> None:
    """Nothing to do."""


def observe(subject: Subject) -> dict[str, Any]:
    """The outputs of one pass."""
    subject.session.seed(subject.seed)
    return to_host(subject.forward())
