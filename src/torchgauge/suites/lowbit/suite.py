"""The suite of low precision in training."""

from __future__ import annotations

from torchgauge.suites.catalog import DATA
from torchgauge.suites.quant.suite import TorchaoSuite

SUITE = TorchaoSuite(
    name="lowbit",
    doc="Training in few bits: small optimizer states and float8 matmuls, checked by loss curves.",
    data=DATA / "lowbit.yaml",
    builder="torchgauge.suites.lowbit.models:build",
    preload=("torch",),
    install_hint="pip install 'torchgauge[quant]'",
)
