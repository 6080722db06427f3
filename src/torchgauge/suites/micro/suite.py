"""The suite of single operations: how near a device comes to what it can do, one operation at a time."""

from __future__ import annotations

from torchgauge.suites.catalog import DATA, YamlSuite

SUITE = YamlSuite(
    name="micro",
    doc="Single operations at several sizes, with the share of the device's peak that each achieves.",
    data=DATA / "micro.yaml",
    builder="torchgauge.suites.micro.operations:build",
    preload=("torch",),
    install_hint="install the torch build of your device",
)
