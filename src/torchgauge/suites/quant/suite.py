"""The suite ``quant``, and how a suite is made of what the installed torchao offers. Parent side."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import msgspec

from torchgauge.records import digest
from torchgauge.suites.catalog import DATA, YamlSuite
from torchgauge.suites.quant.catalogue import Offers, offers_of
from torchgauge.suites.suite import ModelEntry


@dataclass(frozen=True)
class TorchaoSuite(YamlSuite):
    """Entries of a data file, in what the torchao of ``python`` offers for the words that it has."""

    python: str | None = None

    def seen_from(self, python: str) -> TorchaoSuite:
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
        return tuple(dict.fromkeys(name for said in entry.configurations for name in self.offers.names(said)))


SUITE = TorchaoSuite(
    name="quant",
    doc="Linear layers and language models in every configuration that the installed torchao offers.",
    data=DATA / "quant.yaml",
    builder="torchgauge.suites.quant.networks:build",
    preload=("torch", "torchgauge.suites.quant.offered"),
    install_hint="pip install 'torchgauge[quant]'",
)
