"""The suite of low precision in training."""

from __future__ import annotations

from torchgauge.suites.catalog import DATA, YamlSuite

SUITE = YamlSuite(
    name="lowbit",
    doc="Training in few bits: optimizers with a small state, held to the loss curve of AdamW.",
    data=DATA / "lowbit.yaml",
    builder="torchgauge.suites.lowbit.models:build",
    preload=("torch",),
    install_hint="pip install 'torchgauge[quant]'",
)
