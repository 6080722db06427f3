"""The suite of planted fallbacks: whether what ran by another path is found, and nothing else is accused."""

from __future__ import annotations

from torchgauge.suites.catalog import DATA, YamlSuite

SUITE = YamlSuite(
    name="planted",
    doc="Silent fallbacks on purpose: every row of planted-* has to be degraded, and none of clean-*.",
    data=DATA / "planted.yaml",
    builder="torchgauge.suites.planted.models:build",
    preload=("torch",),
    install_hint="install the torch build of your device",
)
