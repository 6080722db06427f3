"""The suite ``conformance``: its parent-side half, whose entries are the catalogue."""

from __future__ import annotations

from dataclasses import dataclass, field

from torchgauge.suites.check import CHECK
from torchgauge.suites.conformance.catalogue import CheckEntry, catalogue, catalogue_digest
from torchgauge.suites.suite import ModelEntry, Unavailable

NAME = "conformance"


@dataclass(frozen=True)
class ConformanceSuite:
    """The checks as entries of a suite."""

    name: str = NAME
    doc: str = "Device-generic checks in capability groups, each compared with the host."
    builder: str = "torchgauge.suites.conformance.run_check:run"
    preload: tuple[str, ...] = ()
    install_hint: str = "install the torch build of your device"
    unavailable: Unavailable | None = None
    environment: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        """Sixteen hex digits over the catalogue."""
        return catalogue_digest()

    def models(self) -> tuple[ModelEntry, ...]:
        """All checks, group by group."""
        return tuple(_model(entry) for entry in catalogue().values())


def _model(entry: CheckEntry) -> ModelEntry:
    return ModelEntry(
        name=entry.name,
        tiers=(entry.tier,),
        batch={CHECK: 1},
        accuracy_class="check",
        framework=CHECK,
        recipe={"group": entry.group, "api": entry.api, "doc": entry.doc},
        dtypes=("float32",),
    )


SUITE = ConformanceSuite()
