"""A third party's suite whose models are as fast, and fail as, their environment says."""

from __future__ import annotations

from dataclasses import dataclass, field

from torchgauge.records import digest
from torchgauge.suites.suite import ModelEntry

MODELS = ("steady", "faulty")


@dataclass(frozen=True)
class RacerSuite:
    """Models without torch."""

    name: str = "racers"
    doc: str = "Models whose speed is a variable; for tests only."
    builder: str = "torchgauge_racers.models:build"
    preload: tuple[str, ...] = ()
    install_hint: str = ""
    digest: str = digest(MODELS)
    unavailable: None = None
    environment: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def models(self) -> tuple[ModelEntry, ...]:
        """All of them in the smallest tier."""
        return tuple(ModelEntry(n, ("smoke",), {"inference": 1}, framework="python") for n in MODELS)


SUITE = RacerSuite()
