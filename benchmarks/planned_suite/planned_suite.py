"""The suite of ``asyncsim_truth.py``: chains of kernels of planned durations, on one stream and on two."""

from __future__ import annotations

from pathlib import Path

from torchgauge.suites.catalog import YamlSuite

SUITE = YamlSuite(
    name="planned",
    doc="Chains of kernels whose durations the simulated device asyncsim plans.",
    data=Path(__file__).with_name("planned.yaml"),
    builder="planned_models:build",
    preload=(),
    install_hint="it lies in benchmarks/planned_suite",
)
