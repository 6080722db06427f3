"""The suite of ExecuTorch: models of other suites as its programs, and some whose delegation is known."""

from __future__ import annotations

from torchgauge.suites.catalog import DATA, YamlSuite

SUITE = YamlSuite(
    name="executorch",
    doc="Models as ExecuTorch programs: stages, delegated share, latency, size of the file.",
    data=DATA / "executorch.yaml",
    builder="torchgauge.suites.executorch.models:build",
    preload=("torch",),
    install_hint="pip install 'torchgauge[executorch]'",
)
