"""Scenario ``loss_curve``: fifty steps of training, whose losses have to be near those of AdamW."""

from __future__ import annotations

from torchgauge.harness.scenarios.scenario import ScenarioDescriptor
from torchgauge.suites.capabilities import LOSS

SCENARIO = ScenarioDescriptor(
    name="loss_curve",
    doc="measures the wall time of one training step; checks 50 losses against those of eager",
    implementation="torchgauge.harness.scenarios.loss_curve_steps",
    needs=(LOSS,),
)
