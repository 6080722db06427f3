"""The suite of several processes."""

from __future__ import annotations

from torchgauge.suites.catalog import DATA, YamlSuite

SUITE = YamlSuite(
    name="distributed",
    doc="Several processes: collectives by size, with algorithm and bus bandwidth.",
    data=DATA / "distributed.yaml",
    builder="torchgauge.suites.distributed.models:build",
    preload=("torch",),
    install_hint="install the torch build of your device",
)
