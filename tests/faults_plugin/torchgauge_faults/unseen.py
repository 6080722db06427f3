"""A scenario that shows nothing of what it does: half of it for the parent, half for the worker."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchgauge.harness.scenarios.scenario import ScenarioDescriptor, Subject

SCENARIO = ScenarioDescriptor("unseen", "one forward pass, of which nothing is compared", __name__)


def enter() -> None:
    """Nothing to do."""


def step(subject: Subject) -> Callable[[], Any]:
    """One forward pass."""
    return subject.forward
