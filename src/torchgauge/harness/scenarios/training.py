"""Scenario ``training``: forward, loss, backward and one optimizer step."""

from __future__ import annotations

from torchgauge.harness.scenarios.scenario import ScenarioDescriptor
from torchgauge.suites.capabilities import LOSS

SCENARIO = ScenarioDescriptor(
    name="training",
    doc="measures the wall time of forward, backward and one SGD step",
    implementation="torchgauge.harness.scenarios.training_steps",
    needs=(LOSS,),
)
