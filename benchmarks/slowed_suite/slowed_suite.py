"""The suite of ``regression_live.py``: a model that a variable makes slower by a known share."""

from __future__ import annotations

from pathlib import Path

from torchgauge.suites.catalog import YamlSuite

SUITE = YamlSuite(
    name="slowed",
    doc="A transformer encoder that burns a chosen share of its own CPU time on top.",
    data=Path(__file__).with_name("slowed.yaml"),
    builder="slowed_models:build",
    preload=(),
    install_hint="it lies in benchmarks/slowed_suite",
)
