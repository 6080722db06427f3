"""All pictures of a site, made once: pages, the sitemap and what is shown elsewhere ask for them here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from torchgauge.dashboard.pictures import changes, coverage, device_ratios, speedups, unblocking, versions
from torchgauge.dashboard.pictures.picture import Picture

if TYPE_CHECKING:
    from torchgauge.dashboard.context import SiteContext

MAKERS = (
    device_ratios.pictures, coverage.pictures, speedups.pictures, changes.pictures, versions.pictures,
    unblocking.pictures,
)  # fmt: skip
"""What makes the pictures of a kind, in the order of the gallery."""


@dataclass(frozen=True)
class Gallery:
    """``pictures`` in order; of every kind there is at least one, which may only say why it draws nothing."""

    pictures: tuple[Picture, ...]

    def of(self, kind: str) -> tuple[Picture, ...]:
        """The pictures of ``kind`` that draw something, the most telling first."""
        return tuple(each for each in self.pictures if each.kind == kind and each.draw)

    @property
    def drawn(self) -> tuple[Picture, ...]:
        """All that draw something."""
        return tuple(each for each in self.pictures if each.draw)


def gallery_of(context: SiteContext) -> Gallery:
    """The pictures of ``context``."""
    return Gallery(tuple(picture for maker in MAKERS for picture in maker(context)))
