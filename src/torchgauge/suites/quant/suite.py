"""The suite ``quant``: models in every configuration that the installed torchao offers. Parent side."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import msgspec

from torchgauge.records import digest
from torchgauge.suites.catalog import DATA, YamlSuite
from torchgauge.suites.quant.catalogue import Offers, offers_of
from torchgauge.suites.suite import ModelEntry

EVERY, STABLE = "torchao-*", "torchao-stable"
"""Words of the data file that stand for what the installed torchao offers, with its prototypes or without."""


@dataclass(frozen=True)
class QuantSuite(YamlSuite):
    """Entries of a data file, in the configurations of the torchao of ``python``."""

    python: str | None = None

    def seen_from(self, python: str) -> QuantSuite:
        """The same suite over the torchao of another interpreter."""
        return replace(self, python=python)

    @cached_property
    def offers(self) -> Offers:
        """What that torchao offers; asked when it is first needed."""
        return offers_of(self.python)

    @cached_property
    def digest(self) -> str:
        """Sixteen hex digits over the data file and what this torchao offers."""
        return digest([self.data.read_text(encoding="utf-8"), msgspec.to_builtins(self.offers)])

    def models(self) -> tuple[ModelEntry, ...]:
        """All models, in the order of the data file, with what stands for the words in it."""
        return tuple(replace(each, configurations=self._named(each)) for each in self._models)

    def _named(self, entry: ModelEntry) -> tuple[str, ...]:
        found: dict[str, None] = {}
        for word in entry.configurations:
            meant = self.offers.names(prototypes=word == EVERY) if word in {EVERY, STABLE} else (word,)
            found.update(dict.fromkeys(meant))
        return tuple(found)


SUITE = QuantSuite(
    name="quant",
    doc="Linear layers and language models in every configuration that the installed torchao offers.",
    data=DATA / "quant.yaml",
    builder="torchgauge.suites.quant.networks:build",
    preload=("torch", "torchgauge.suites.quant.offered"),
    install_hint="pip install 'torchgauge[quant]'",
)
