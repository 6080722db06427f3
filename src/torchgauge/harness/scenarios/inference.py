"""Scenario ``inference``: one forward pass without gradients."""

from __future__ import annotations

from torchgauge.harness.scenarios.scenario import ScenarioDescriptor
from torchgauge.suites.capabilities import FORWARD

SCENARIO = ScenarioDescriptor(
    name="inference",
    doc="measures the wall time of one forward pass without gradients",
    implementation="torchgauge.harness.scenarios.inference_steps",
    needs=(FORWARD,),
)
