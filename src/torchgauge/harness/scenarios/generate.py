"""Scenario ``generate``: a prompt is read and text is generated, token by token, by a loop of our own."""

from __future__ import annotations

from torchgauge.harness.scenarios.scenario import ScenarioDescriptor
from torchgauge.suites.capabilities import GENERATE

SCENARIO = ScenarioDescriptor(
    name="generate",
    doc="measures the wall time of one generation: a prompt, and the tokens after it",
    implementation="torchgauge.harness.scenarios.generate_steps",
    needs=(GENERATE,),
)
