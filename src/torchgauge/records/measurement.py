"""Raw samples of metrics and their summaries; a missing value is a reason, never a zero."""

from __future__ import annotations

import math
from dataclasses import dataclass

from torchgauge.counted import counted
from torchgauge.records.metrics import METRICS, Better


@dataclass(frozen=True)
class Measurement:
    """Raw samples of one metric, or the reason why there are none (never both, never a zero).

    ``samples`` are in the metric's base unit. ``blocks`` pairs samples of the configurations of one
    group that were measured in the same round. ``provenance`` says which counter or clock was read.
    """

    metric: str
    unit: str
    samples: tuple[float, ...] = ()
    blocks: tuple[int, ...] = ()
    provenance: str = ""
    stopped: str = ""
    absent: str = ""

    def __post_init__(self) -> None:
        if bool(self.samples) == bool(self.absent):
            raise ValueError(f"{self.metric}: needs either samples or the reason why there are none")
        if not math.isfinite(sum(each * each for each in self.samples)):
            raise ValueError(f"{self.metric}: a sample is not finite; pass a reason for a missing value")
        if self.blocks and len(self.blocks) != len(self.samples):
            raise ValueError(
                f"{self.metric}: {counted(len(self.blocks), 'block')} "
                f"for {counted(len(self.samples), 'sample')}"
            )


def absent(metric: str, reason: str) -> Measurement:
    """A metric of the table that could not be measured, with the reason."""
    return Measurement(metric, METRICS[metric].unit, absent=reason)


@dataclass(frozen=True)
class Summary:
    """One row per case and metric, computed once by the runner from the raw samples."""

    metric: str
    unit: str
    better: Better
    n: int
    median: float | None
    low: float | None
    high: float | None
    confidence: float
    method: str
    provenance: str = ""
    stopped: str = ""
    absent: str = ""
