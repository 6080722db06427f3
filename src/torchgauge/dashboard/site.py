"""Building the site: read, check, write aside, then swap; readers see the old site or the new one.

The pages come from the store's tables only. The same store and the same ``now`` give the same bytes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar

from torchgauge import __version__
from torchgauge.dashboard import (
    badges,
    comparison_files,
    downloads,
    epoch_table,
    feeds,
    manifest,
    shards,
    site_address,
    trend_lines,
)
from torchgauge.dashboard.context import SiteContext
from torchgauge.dashboard.device_notices import device_notices
from torchgauge.dashboard.epoch import Epoch
from torchgauge.dashboard.freshness import freshness_of
from torchgauge.dashboard.latest_results import LatestResults
from torchgauge.dashboard.lost_nights import lost_nights
from torchgauge.dashboard.pages import (
    about,
    checks,
    compare,
    compatibility,
    device,
    features,
    matrices,
    model,
    operators,
    overview,
    performance,
    regressions,
    runs,
    scorecard,
    support_style,
    trends,
)
from torchgauge.dashboard.pictures import pages as pictures
from torchgauge.dashboard.pictures.card_image import available
from torchgauge.dashboard.plotly_bundle import plotly_bundle
from torchgauge.dashboard.renderer import Renderer
from torchgauge.dashboard.serve import NOT_FOUND
from torchgauge.dashboard.site_data import SiteData, read_site_data
from torchgauge.dashboard.site_folder import SiteWriter, writing_site
from torchgauge.dashboard.sitemap import SITEMAP, not_found, sitemap
from torchgauge.dashboard.tally import check_latest
from torchgauge.errors import InfrastructureError, UsageError
from torchgauge.records import Subject
from torchgauge.results import units
from torchgauge.results.atomic_file import FREE
from torchgauge.results.dataset import around_damage, gaps_of
from torchgauge.results.matrix.state import matrix_ids
from torchgauge.results.store import Store
from torchgauge.results.uncollected import uncollected

Files = Iterator[tuple[str, bytes]]
Builder = Callable[[SiteContext], Files]
Of = TypeVar("Of")


_JSDOC = rb"/\*\*(?:[^*]|\*(?!/))*\*/"
_COMMENTS = re.compile(rb"^ *//[^\n]*\n|^ *%b *\n|%b ?|^ +" % (_JSDOC, _JSDOC), re.MULTILINE)
"""Lines of comment, JSDoc types and indentation in a module: a third of its bytes, which nobody need load."""

_STYLE_COMMENTS = re.compile(rb"/\*.*?\*/\n?|^ +|(?<=[;{:,]) +| +(?=[{}])", re.MULTILINE | re.DOTALL)
"""Comments of a style, and spaces that mean nothing: a tenth of what every page loads of it."""


def _static(_: SiteContext) -> Iterator[tuple[str, bytes]]:
    """The site's own styles and modules, without comments, and these without their types."""
    for file in sorted(resources.files("torchgauge.dashboard").joinpath("static").iterdir(), key=str):
        content = file.read_bytes()
        left_out = {".js": _COMMENTS, ".css": _STYLE_COMMENTS}.get(Path(file.name).suffix)
        yield f"static/{file.name}", left_out.sub(b"", content) if left_out else content
    yield ".nojekyll", b""


def _bundle(_: SiteContext) -> Iterator[tuple[str, bytes]]:
    """Yield the program that draws the charts."""
    bundle = plotly_bundle()
    yield bundle.file, bundle.content


BUILDERS: tuple[Builder, ...] = (
    overview.build,
    compatibility.build,
    performance.build,
    trends.build,
    compare.build,
    model.build,
    device.build,
    runs.build,
    regressions.build,
    matrices.build,
    checks.build,
    features.build,
    operators.build,
    scorecard.build,
    pictures.build,
    support_style.build,
    about.build,
    feeds.build,
    badges.build,
    shards.build,
    downloads.build,
    _static,
    _bundle,
)
"""What makes the files of a site, in order."""

EPOCH_BUILDERS: tuple[Callable[[Epoch], Files], ...] = (
    shards.files,
    trend_lines.files,
    comparison_files.environments,
    epoch_table.files,
)
"""What makes the files of an epoch, as soon as it was read."""


NAVIGATION: tuple[tuple[str, str], ...] = (
    ("index.html", "Overview"),
    ("compatibility.html", "Compatibility"),
    ("performance.html", "Performance"),
    ("trends.html", "Trends"),
    ("compare.html", "Compare"),
    ("devices/index.html", "Devices"),
    ("regressions.html", "Regressions"),
    (matrices.INDEX, "Versions"),
    ("checks.html", "Device checks"),
    ("features.html", "Features"),
    ("operators.html", "Operators"),
    (scorecard.INDEX, "Scorecards"),
    ("pictures/index.html", "Pictures"),
    ("runs.html", "Runs"),
    ("about.html", "Data & about"),
)
"""Where the navigation of every page leads: only to pages that the builders make."""

_ONLY_WITH = {"checks.html": Subject.CHECKS, "operators.html": Subject.OPERATORS}
"""Pages that are made where the store has cases of that kind."""


@dataclass(frozen=True)
class SiteReport:
    """What was built; ``digest`` is a hash over all files but the manifest.

    ``gaps`` has a sentence on each run that is damaged. ``subjects`` are those of models, checks and
    operators that the store has, each with how many cases passed and how many there are.
    """

    out: Path
    pages: int
    files: int
    bytes: int
    cases: int
    passed: int
    planned: int
    subjects: tuple[tuple[str, int, int], ...]
    runs: int
    snapshots: int
    unfinished: tuple[str, ...]
    gaps: tuple[str, ...]
    digest: str


def build_site(
    store_path: Path | str,
    out: Path | str,
    *,
    now: float | None = None,
    base_url: str = "",
    left_out: Mapping[str, str] = MappingProxyType({}),
) -> SiteReport:
    """Build the static site of the store at ``store_path`` in the folder ``out``.

    ``now`` is in seconds since the epoch and is what ages are counted from; it is this moment unless given.
    ``base_url`` is where the site will be served, for feeds and badges; without it their links
    are relative. ``left_out`` maps runs that are not shown to the reason; a run whose table cannot be read
    joins them, and the pages say so. Raises :class:`UsageError` where there is no store or ``out`` holds
    something else, :class:`DashboardError` for what no page can show, and :class:`InfrastructureError` for a
    failing disk. Whatever is raised, the site that was there remains.
    """
    address = site_address.checked(base_url)
    target = Path(out).resolve()
    store = Store.open(store_path)
    for run_id, why in left_out.items():
        store.leave_out(run_id, why)
    _check_target(target, store.path.resolve())
    try:
        with uncollected():
            build = partial(_build, store, target, now, address)
            return around_damage(store, build)
    except OSError as error:
        raise InfrastructureError(
            f"the site cannot be written to {target}: {error.strerror or error}",
            hint=f"{FREE}; the site that was there is untouched",
        ) from error


def _build(store: Store, target: Path, now: float | None, base_url: str) -> SiteReport:
    with writing_site(target) as writer:
        data = read_site_data(store, now, lambda epoch: _write(writer, EPOCH_BUILDERS, epoch))
        check_latest(data.latest)
        context = _context(data, base_url)
        _write(writer, BUILDERS, context)
        writer.write(NOT_FOUND, not_found(context.renderer, base_url))
        if base_url:
            writer.write(SITEMAP, sitemap(writer.sizes, base_url, data.now))
        digest = writer.digest()
        writer.write(manifest.MANIFEST, manifest.content(data, digest))
        return _report(target, data, writer.sizes, digest)


def _write(writer: SiteWriter, builders: Iterable[Callable[[Of], Files]], made_of: Of) -> None:
    for builder in builders:
        for name, content in builder(made_of):
            writer.write(name, content)


def _context(data: SiteData, base_url: str) -> SiteContext:
    freshness = freshness_of(data.latest, data.recent, data.environments, data.now)
    latest = data.latest
    subjects = {workload.subject for workload in latest.workloads}
    left_out = {name for name, subject in _ONLY_WITH.items() if subject not in subjects}
    if not matrix_ids(data.store):
        left_out.add(matrices.INDEX)
    if not features.has_features(latest):
        left_out.add(features.INDEX)
    if not scorecard.devices_with_scorecards(latest):
        left_out.add(scorecard.INDEX)
    site = {
        "version": __version__,
        "generated": units.moment(data.now),
        "freshness": freshness,
        "empty": not data.latest.entries,
        "compared": (data.store.path / "comparisons").is_dir(),
        "pages": tuple((name, title) for name, title in NAVIGATION if name not in left_out),
        "device_pages": True,
        "base_url": base_url,
        "notices": device_notices(freshness, lost_nights(data.latest)),
    }
    context = SiteContext(**vars(data), renderer=Renderer(site), base_url=base_url, freshness=freshness)
    if available():
        context.renderer.card = next((each for each in context.pictures.drawn if not each.empty), None)
    return context


def _report(target: Path, data: SiteData, sizes: Mapping[str, int], digest: str) -> SiteReport:
    return SiteReport(
        out=target,
        pages=sum(name.endswith(".html") for name in sizes),
        files=len(sizes),
        bytes=sum(sizes.values()),
        cases=len(data.latest.entries),
        passed=_passed(data.latest),
        planned=len(data.latest.entries),
        subjects=_subjects(data.latest),
        runs=len(data.runs),
        snapshots=len(data.snapshots),
        unfinished=tuple(info.run_id for info in data.runs if not info.published),
        gaps=tuple(gaps_of(data.store)),
        digest=digest,
    )


def _passed(latest: LatestResults) -> int:
    return sum(entry.fully_passed for entry in latest.entries.values())


def _subjects(latest: LatestResults) -> tuple[tuple[str, int, int], ...]:
    counts: dict[Subject, list[int]] = {}
    for (workload, _), entry in latest.entries.items():
        found = counts.setdefault(workload.subject, [0, 0])
        found[0] += entry.fully_passed
        found[1] += 1
    return tuple((name.value, counts[name][0], counts[name][1]) for name in Subject if name in counts)


def _check_target(target: Path, store: Path) -> None:
    if target == store or target in store.parents:
        raise UsageError(f"{target} contains the store", hint="pass a folder outside the store")
    if not target.exists():
        return
    if not target.is_dir() or (any(target.iterdir()) and not manifest.is_site(target)):
        raise UsageError(
            f"{target} is not a site of torchgauge, so it is not replaced",
            hint="pass a new folder, or empty this one",
        )
