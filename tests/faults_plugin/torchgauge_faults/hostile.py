"""A suite whose build module takes the process that imports it down with it."""

from __future__ import annotations

from dataclasses import dataclass, field

from torchgauge.suites.suite import ModelEntry


@dataclass(frozen=True)
class HostileSuite:
    """One model, which never gets as far as being built."""

    name: str = "hostile"
    doc: str = "A build module that kills its process; for tests only."
    builder: str = "torchgauge_faults.deadly:build"
    preload: tuple[str, ...] = ()
    install_hint: str = ""
    digest: str = "0" * 16
    unavailable: None = None
    notes: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)

    def models(self) -> tuple[ModelEntry, ...]:
        """The one model."""
        return (ModelEntry("victim", ("smoke",), {"inference": 1}, framework="python"),)


SUITE = HostileSuite()
