"""Scenario ``collective``: one call in which several processes take part."""

from __future__ import annotations

from torchgauge.harness.scenarios.scenario import ScenarioDescriptor
from torchgauge.suites.capabilities import COLLECTIVE

SCENARIO = ScenarioDescriptor(
    name="collective",
    doc="measures the wall time of one collective call in its slowest process",
    implementation="torchgauge.harness.scenarios.collective_steps",
    needs=(COLLECTIVE,),
)
