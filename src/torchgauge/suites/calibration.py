"""The suite ``calibration``: the speed of the device itself, part by part, for ``torchgauge doctor``."""

from __future__ import annotations

from dataclasses import dataclass, field

from torchgauge.records import digest
from torchgauge.suites.check import CHECK
from torchgauge.suites.suite import ModelEntry, Unavailable

NAME = "calibration"
ANSWER = "answer"
"""The part that comes first: a device that does not answer is not asked for anything else."""
SAMPLES, QUICK_SAMPLES = 15, 6
"""Samples of each part; six are the fewest with an exact interval of the median."""
PARTS: dict[str, tuple[str, ...]] = {
    ANSWER: ("float32",),
    "clock": ("float32",),
    "gemm": ("float32", "bfloat16", "float16", "float64"),
    "copy": ("float32",),
    "to_device.pageable": ("float32",),
    "to_device.pinned": ("float32",),
    "to_host.pageable": ("float32",),
    "to_host.pinned": ("float32",),
    "launch": ("float32",),
    "events": ("float32",),
}
"""Parts with their dtypes; only the matrix product depends on it."""


@dataclass(frozen=True)
class CalibrationSuite:
    """The parts of a calibration as entries of a suite; ``samples`` is how many each takes."""

    name: str = NAME
    doc: str = "The device itself: matmuls, copies, launches, events and clocks (`torchgauge doctor`)."
    builder: str = "torchgauge.harness.worker.calibration_check:run"
    samples: int = SAMPLES
    preload: tuple[str, ...] = ()
    install_hint: str = "install the torch build of your device"
    unavailable: Unavailable | None = None
    environment: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        """Sixteen hex digits over the parts and the number of samples."""
        return digest([self.samples, {name: list(dtypes) for name, dtypes in PARTS.items()}])

    def models(self) -> tuple[ModelEntry, ...]:
        """One entry for each part."""
        return tuple(
            ModelEntry(
                name=name,
                tiers=("smoke",),
                batch={CHECK: 1},
                shape=(("samples", self.samples),),
                accuracy_class="check",
                framework=CHECK,
                dtypes=dtypes,
            )
            for name, dtypes in PARTS.items()
        )


SUITE = CalibrationSuite()
