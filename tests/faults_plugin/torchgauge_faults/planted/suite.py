"""The suite of planted fallbacks: whether what ran by another path is found, and nothing else is accused."""

from __future__ import annotations

from pathlib import Path

from torchgauge.suites.catalog import YamlSuite

SUITE = YamlSuite(
    name="planted",
    doc="Silent fallbacks on purpose: every row of planted-* has to be degraded, and none of clean-*.",
    data=Path(__file__).parent / "planted.yaml",
    builder="torchgauge_faults.planted.models:build",
    preload=("torch",),
    install_hint="install the torch build of your device",
)
