"""Data and about: the files of the site, what the words mean, and how to cite it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from torchgauge import __version__
from torchgauge.clock import utc
from torchgauge.counted import counted
from torchgauge.dashboard import feeds
from torchgauge.dashboard.badges import Badge, badges_of
from torchgauge.dashboard.context import SiteContext
from torchgauge.dashboard.downloads import FILES
from torchgauge.dashboard.manifest import MANIFEST
from torchgauge.dashboard.markdown_image import markdown_image
from torchgauge.dashboard.pages import regressions
from torchgauge.dashboard.plotly_bundle import plotly_bundle
from torchgauge.records import METRICS, Subject
from torchgauge.results import units
from torchgauge.results.latest import STALE_AFTER_S
from torchgauge.results.tables import RESULTS

_ADDED = (
    ("marks", "string", "the marks of the result, separated by spaces"),
    (
        "step_times",
        "string",
        "`count` if the step times may enter a mean or a comparison, else the mark that excludes them",
    ),
    ("age_s", "number", "age of the newest attempt, seconds"),
    ("known_status", "string", "status of the last known result"),
    ("known_run_id", "string", "run of the last known result, and of the numbers"),
    ("known_age_s", "number", "age of the last known result, seconds"),
    ("origin", "string", "source of the numbers: `own`, `contributed` or `imported`"),
    ("origin_name", "string", "pool of the runner, contributor, or file"),
    ("METRIC.median", "number", "median in the base unit of the metric; empty, not 0, if there is none"),
    ("METRIC.low, METRIC.high", "number", "limits of the interval"),
)
"""What the downloads have beside the columns of the store."""

_PATHS = (
    (
        "series/DEVICE/MODEL/EPOCH.json",
        "every case of a model on a device over 64 snapshots, numbers with four significant digits",
    ),
    ("snapshots/SNAPSHOT/DEVICE.core.json", "every case of a device in one snapshot: latency and speed-up"),
    (
        "snapshots/SNAPSHOT/DEVICE.extra.json",
        "the other metrics of the cases in the core file, in the same order",
    ),
    ("trends/EPOCH.json", "geometric means and pass counts by device and configuration"),
    ("cases/DEVICE.json", "the case that each case number in these files stands for"),
    ("latest/cells-DEVICE.json", "reason, start time and torch of each newest result"),
    ("data/EPOCH.parquet", "all rows of 64 snapshots"),
)
"""The columnar files and what is in them; EPOCH, SNAPSHOT, DEVICE and MODEL are named by the manifest."""


@dataclass(frozen=True)
class ShownBadge:
    """A badge with the line of Markdown that shows it."""

    badge: Badge
    markdown: str


def build(context: SiteContext) -> Iterator[tuple[str, bytes]]:
    """The page about the site."""
    subjects = {workload.subject for workload, _ in context.latest.entries}
    site = context.base_url or "the address of this site"
    last = context.snapshots[-1].id if context.snapshots else "none"
    page = context.renderer.page(
        "about",
        "about.html",
        metrics=METRICS,
        downloads=FILES,
        changes=regressions.DATA,
        feed=feeds.FILE,
        manifest=MANIFEST,
        columns=[column for column in RESULTS.columns if column.name not in ("traceback", "log_excerpt")],
        added=_ADDED,
        paths=_PATHS,
        badges=[
            ShownBadge(each, markdown_image(each.label, f"{each.file}.svg", "index.html", context.base_url))
            for each in badges_of(context)
        ],
        base_known=bool(context.base_url),
        stale_after=units.age(STALE_AFTER_S),
        checks=Subject.CHECKS in subjects,
        operators=Subject.OPERATORS in subjects,
        citation=f"torchgauge {__version__}, dashboard of {utc(context.now):%Y-%m-%d}, "
        f"{counted(len(context.dated), 'run')} in {counted(len(context.snapshots), 'snapshot')} "
        f"up to {last}, {site}",
        bundle=plotly_bundle(),
    )
    yield "about.html", page.encode()
