"""What every page is built from: what was read of a store, and how it is rendered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from torchgauge.dashboard.names import device_id, model_id
from torchgauge.dashboard.pages.noise import Movement, movements
from torchgauge.dashboard.plotly_bundle import Charts
from torchgauge.dashboard.renderer import Renderer
from torchgauge.dashboard.site_data import SiteData

if TYPE_CHECKING:
    from torchgauge.dashboard.pictures.gallery import Gallery


@dataclass(frozen=True)
class SiteContext(SiteData):
    """What a page may look at: what was read, and beside it how pages are made.

    ``charts`` is what draws charts. ``base_url`` is where the site will be served, with a slash at its end;
    empty where nobody said.
    """

    renderer: Renderer
    charts: Charts
    base_url: str

    @cached_property
    def moved(self) -> Mapping[str, Movement]:
        """The newest change of latency of every case, by its key."""
        return movements(self.recent, "latency")

    @cached_property
    def pictures(self) -> Gallery:
        """The pictures of the site, which are also shown on other pages than their own."""
        from torchgauge.dashboard.pictures.gallery import gallery_of  # it reads this context

        return gallery_of(self)

    def device_id(self, device: str) -> str:
        """The id of ``device`` in paths."""
        return device_id(device)

    def model_id(self, group: tuple[str, str]) -> str:
        """The id of a suite's model in paths."""
        return model_id(group)
