"""All pictures of a site, made once: pages, the sitemap and what is shown elsewhere ask for them here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from torchgauge.dashboard.pictures import (
    changes,
    coverage,
    device_ratios,
    quantised,
    speedups,
    unblocking,
    versions,
)
from torchgauge.dashboard.pictures.picture import Picture

if TYPE_CHECKING:
    from torchgauge.dashboard.context import SiteContext

KINDS = {
    device_ratios.KIND: "Device against device",
    coverage.KIND: "Coverage over time",
    speedups.KIND: "Speed-up of a compiler",
    quantised.KIND: quantised.TITLE,
    changes.KIND: "Top changes of the week",
    versions.KIND: "Version against version",
    unblocking.KIND: "Operators that unblock models",
}
"""What the pictures of a kind are called together, in the order of the gallery."""

MAKERS = (
    device_ratios.pictures, coverage.pictures, speedups.pictures, quantised.pictures, changes.pictures,
    versions.pictures, unblocking.pictures,
)  # fmt: skip
"""What makes the pictures of a kind, in the order of the gallery."""


@dataclass(frozen=True)
class Gallery:
    """``pictures`` in order; of every kind there is at least one, which may only say why it draws nothing."""

    pictures: tuple[Picture, ...]

    def of(self, kind: str) -> tuple[Picture, ...]:
        """The pictures of ``kind`` that draw something, the most telling first."""
        return tuple(each for each in self.pictures if each.kind == kind and not each.empty)

    @property
    def kinds(self) -> tuple[tuple[str, tuple[Picture, ...]], ...]:
        """The pictures that draw something, by what their kind is called."""
        return tuple((title, self.of(kind)) for kind, title in KINDS.items())

    @property
    def drawn(self) -> tuple[Picture, ...]:
        """Every picture that is a file."""
        return tuple(each for each in self.pictures if each.draw)


def gallery_of(context: SiteContext) -> Gallery:
    """The pictures of ``context``."""
    return Gallery(tuple(picture for maker in MAKERS for picture in maker(context)))
