"""Networks of ``compile.latency``: the stacks of ``compile.regional``."""

from torchgauge.suites.features.compile_regional import build

__all__ = ["build"]
