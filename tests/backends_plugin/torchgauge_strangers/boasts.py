"""A scenario with a metric that nobody declares."""

from __future__ import annotations

from typing import Any

from torchgauge.records import Measurement
from torchgauge_strangers.scenarios import enter, observe

__all__ = ["enter", "observe", "run"]


def run(all_series: Any, session: Any, settings: Any) -> Any:
    """One number."""
    return {series.key: [Measurement("swiftness", "1/s", (1.0,))] for series in all_series}
