"""Metrics, raw samples and their summaries; a missing value is a reason, never a zero."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import Enum

from torchgauge.records.status import UNCOUNTED, UNTIMED, Modifier, times_count

STEP_TIMES = frozenset(
    {
        "latency",
        "latency_contended",
        "latency_device",
        "latency_cpu",
        "launch_overhead",
        "throughput",
        "speedup",
        "flops_rate",
    }
)
"""Metrics that are made of how long a step takes: what a modifier says of step times holds for all."""


def number_counts(metric: str, status: str, modifiers: Collection[str]) -> bool:
    """Whether a row's number of ``metric`` may enter a mean, a claim, a trend or a comparison: the one rule.

    Step times by :func:`times_count`. Of other metrics only another model's are compared with nobody's.
    """
    if metric in STEP_TIMES:
        return times_count(status, modifiers)
    return not doubt(metric, modifiers)


def doubt(metric: str, modifiers: Iterable[str]) -> str:
    """The modifier that keeps a number of ``metric`` out of what is compared; empty where none does.

    The gravest of several.
    """
    found = set(modifiers)
    keeping = UNTIMED if metric in STEP_TIMES else {Modifier.OTHER_MODEL}
    return next((each.value for each in GRAVEST if each in keeping and each in found), "")


def inexact(metric: str, modifiers: Collection[str]) -> bool:
    """Whether a number of ``metric`` is told with two digits: a busy machine made it."""
    return metric in STEP_TIMES and Modifier.UNSTEADY in modifiers


def apart(metric: str, modifiers: Iterable[str]) -> str:
    """The modifier for which a pass has no number of ``metric`` in a mean over passes; empty where it may."""
    found = set(modifiers)
    uncounted = next((each.value for each in GRAVEST if each in UNCOUNTED and each in found), "")
    return uncounted or doubt(metric, found)


GRAVEST = (Modifier.OTHER_MODEL, Modifier.UNCHECKED, Modifier.DEGRADED, Modifier.UNSTEADY)
"""What may keep a number out, the gravest first: another model's are nobody's, unchecked ones may be of wrong
results, degraded ones are of another path, and unsteady ones are only inexact.
"""


class Better(str, Enum):
    """Direction in which a metric improves."""

    LOWER = "lower"
    HIGHER = "higher"
    NEITHER = "neither"


@dataclass(frozen=True)
class Metric:
    """A named quantity in a base unit, with the direction in which it improves."""

    name: str
    unit: str
    better: Better
    doc: str


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
            raise ValueError(f"{self.metric}: samples or the reason of their absence, never both or neither")
        if not all(math.isfinite(sample) for sample in self.samples):
            raise ValueError(f"{self.metric}: a non-finite sample; a missing value is a reason")
        if self.blocks and len(self.blocks) != len(self.samples):
            raise ValueError(f"{self.metric}: {len(self.blocks)} blocks for {len(self.samples)} samples")


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
