"""The suite of ``accelerator_truth.py``."""

from __future__ import annotations

from pathlib import Path

from torchgauge.suites.catalog import YamlSuite

SUITE = YamlSuite(
    name="accelerator",
    doc="Programs of which each keeps one part of an accelerator busy.",
    data=Path(__file__).with_name("accelerator.yaml"),
    builder="accelerator_models:build",
    preload=(),
    install_hint="it lies in benchmarks/accelerator_suite",
)
