"""The toy suite: tiny models that exercise the whole path in seconds, with and without torch."""

from __future__ import annotations

from torchgauge.records import Workload
from torchgauge.suites.catalog import DATA, YamlSuite

SUITE = YamlSuite(
    name="toy",
    doc="Tiny models that run in seconds anywhere; two of them need no torch.",
    data=DATA / "toy.yaml",
    builder="torchgauge.suites.toy.models:build",
    preload=(),
    install_hint="install the torch build of your device",
)


def toy(workload: Workload) -> str:
    """Return ``toy`` for a toy, which enters no mean because its time is all overhead; else an empty text."""
    return SUITE.name if workload.suite == SUITE.name else ""
