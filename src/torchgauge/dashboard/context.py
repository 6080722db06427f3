"""What every page is built from: one record, made once per build."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from torchgauge.dashboard.board import Board
from torchgauge.dashboard.case_book import CaseBook
from torchgauge.dashboard.history import History
from torchgauge.dashboard.names import device_id, model_id
from torchgauge.dashboard.pages.noise import Movement, movements
from torchgauge.dashboard.plain_rows import Row
from torchgauge.dashboard.plotly_bundle import NO_CHARTS, Charts
from torchgauge.dashboard.renderer import Renderer
from torchgauge.dashboard.run_rows import MetricName
from torchgauge.dashboard.snapshots import DatedRun, Snapshot
from torchgauge.results.store import RunInfo, Store


@dataclass(frozen=True)
class SiteContext:
    """What a page may look at.

    ``now`` is what ages are counted from, in seconds since the epoch. ``recent`` covers the open epoch and
    the one before it; ``snapshots`` are all of the store, ``runs`` all runs newest first. ``metrics``
    are all that the store has, ``book`` its cases with their numbers, ``dated`` its published runs in order
    of creation.
    ``environments`` and ``calibrations`` map a run to its rows of these tables, for the runs in
    ``described``: those that hold a row of the board, the newest ones and the unfinished ones. ``charts``
    is what draws charts. ``base_url`` is where the site will be served, with a slash at its end; empty where
    nobody said.
    """

    store: Store
    now: float
    board: Board
    recent: History
    snapshots: tuple[Snapshot, ...]
    runs: tuple[RunInfo, ...]
    metrics: Mapping[str, MetricName]
    described: frozenset[str]
    environments: Mapping[str, tuple[Row, ...]]
    calibrations: Mapping[str, tuple[Row, ...]]
    book: CaseBook
    dated: tuple[DatedRun, ...]
    renderer: Renderer
    charts: Charts = NO_CHARTS
    base_url: str = ""

    @cached_property
    def moved(self) -> Mapping[str, Movement]:
        """The newest change of latency of every case, by its key."""
        return movements(self.recent, "latency")

    def device_id(self, device: str) -> str:
        """The id of ``device`` in paths."""
        return device_id(device)

    def model_id(self, group: tuple[str, str]) -> str:
        """The id of a suite's model in paths."""
        return model_id(group)
