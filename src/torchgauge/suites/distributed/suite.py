"""The suite of several processes."""

from __future__ import annotations

from torchgauge.suites.catalog import DATA, YamlSuite

SUITE = YamlSuite(
    name="distributed",
    doc="Several processes: collectives by size, partitioned models, and ranks that delay other ranks.",
    data=DATA / "distributed.yaml",
    builder="torchgauge.suites.distributed.models:build",
    checker="torchgauge.harness.worker.distributed_checks:check",
    scenarios={
        "training": "torchgauge.harness.scenarios.parallel_training",
        "inference": "torchgauge.harness.scenarios.parallel_inference",
    },
    preload=("torch",),
    install_hint="install the torch build of your device",
)
