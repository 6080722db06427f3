"""What every page is built from: what was read of a store, and how it is rendered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from torchgauge.dashboard.freshness import Freshness
from torchgauge.dashboard.names import device_id, model_id
from torchgauge.dashboard.pages.night import Night, newest_night
from torchgauge.dashboard.pages.noise import Movement, movements
from torchgauge.dashboard.renderer import Renderer
from torchgauge.dashboard.site_data import SiteData
from torchgauge.records import METRICS, Better, Metric, Subject
from torchgauge.registry import declared_metric

DEFAULT = "latency"
"""The metric of pages on which there is no model."""

if TYPE_CHECKING:
    from torchgauge.dashboard.blocking import Blocking
    from torchgauge.dashboard.latest_results import Entry
    from torchgauge.dashboard.pictures.gallery import Gallery
    from torchgauge.dashboard.trend_changes import TrendChanges
    from torchgauge.results.scorecard.gathering import Scorecard


@dataclass(frozen=True)
class SiteContext(SiteData):
    """What a page may look at: what was read, and beside it how pages are made.

    ``base_url`` is where the site will be served, with a slash at its end;
    empty where nobody said. ``freshness`` is how old all of it is.
    """

    renderer: Renderer
    base_url: str
    freshness: Freshness

    @cached_property
    def primaries(self) -> tuple[Metric, ...]:
        """The metrics that the scenarios of models measure for: those of torchgauge's table first."""
        models = {w.mode for w, _ in self.latest.entries if w.subject is Subject.MODELS}
        found = {self.primary[mode] for mode in models} or {DEFAULT}
        order = {name: place for place, name in enumerate(METRICS)}
        return tuple(map(self.metric, sorted(found, key=lambda name: (order.get(name, len(order)), name))))

    def metric(self, name: str) -> Metric:
        """What is known of a metric, of which the store says unit and direction where nobody else does."""
        if name not in METRICS and (declared := declared_metric(name)) and isinstance(declared, Metric):
            return declared
        said = self.metrics.get(name, {})
        unknown = Metric(name, said.get("unit") or "count", Better(said.get("better") or "neither"), "")
        return METRICS.get(name, unknown)

    @cached_property
    def movements(self) -> Mapping[str, Mapping[str, Movement]]:
        """The newest change of every case, by the primary metric and the case's key."""
        return {name: movements(self.recent, name) for name in sorted(set(self.primary.values()))}

    @cached_property
    def night(self) -> Night | None:
        """The newest night."""
        return newest_night(self.recent, self.now)

    @cached_property
    def changed(self) -> Mapping[str, tuple[Entry, ...]]:
        """By kind, the cases of models that the newest night changed: the counts of the front page."""
        latest = self.latest.of_models().current
        retired = {e.newest["case_key"]: e for e, _ in latest.retired if e.column.device not in latest.silent}
        entries = {e.newest["case_key"]: e for e in latest.entries.values()}
        found = self.night.changes(entries, self.dropped & retired.keys()) if self.night else {}
        return {kind: tuple((entries | retired)[case.key] for case in cases) for kind, cases in found.items()}

    @cached_property
    def moved(self) -> Mapping[str, Movement]:
        """The newest change of every case in the metric that its scenario measures for, by its key."""
        found = self.movements
        cases = [
            (case.key, found.get(self.primary.get(case.workload.mode, ""), {})) for case in self.recent.cases
        ]
        return {key: moved[key] for key, moved in cases if key in moved}

    @cached_property
    def changes(self) -> TrendChanges:
        """The changes of level that are known of the store."""
        from torchgauge.dashboard.trend_changes import read_changes  # it reads this context

        return read_changes(self)

    @cached_property
    def pictures(self) -> Gallery:
        """The pictures of the site, which are also shown on other pages than their own."""
        from torchgauge.dashboard.pictures.gallery import gallery_of  # it reads this context

        return gallery_of(self)

    @cached_property
    def blocking(self) -> tuple[Blocking, ...]:
        """What blocks models on every device whose operators were measured."""
        devices = {key[1].device for key in self.latest.entries if key[0].subject is Subject.OPERATORS}
        if not devices:
            return ()
        from torchgauge.dashboard.blocking import blocking_of  # not for the nights without operators

        return tuple(blocking_of(self, tuple(each for each in self.latest.devices if each in devices)))

    @cached_property
    def scorecards(self) -> tuple[Scorecard, ...]:
        """The quality scorecard of every device with checks."""
        from torchgauge.dashboard.pages.scorecard import read_scorecards  # it reads this context

        return read_scorecards(self)

    def device_id(self, device: str) -> str:
        """The id of ``device`` in paths."""
        return device_id(device)

    def model_id(self, group: tuple[str, str]) -> str:
        """The id of a suite's model in paths."""
        return model_id(group)
