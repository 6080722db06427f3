"""Badges: how many cases pass and of when that is, per device and suite, for shields and as SVG."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import repeat

import msgspec

from torchgauge.dashboard.context import SiteContext
from torchgauge.dashboard.latest_results import Entry
from torchgauge.dashboard.names import device_id
from torchgauge.dashboard.new_failures import MARK
from torchgauge.dashboard.tally import tally
from torchgauge.dashboard.xml_text import attribute, escape, xml_line
from torchgauge.records import Subject
from torchgauge.results import units
from torchgauge.results.hostile_text import slug
from torchgauge.results.latest import STALE_AFTER_S
from torchgauge.results.scorecard.gathering import Scorecard
from torchgauge.results.scorecard.levels import range_text
from torchgauge.results.scorecard.scorecard_file import bundled_scorecard

LONGEST = 40
"""Characters of either side of a badge."""

_WIDTH, _HEIGHT, _PADDING = 6.6, 20, 6
_GOOD, _MOST, _FEW, _NONE = "2c74a8", "8a6d00", "b5371a", "5c6570"
"""All pass, at least nine of ten, fewer, and nothing that is fresh: white text is readable on each."""


@dataclass(frozen=True)
class Badge:
    """One badge; ``file`` is its name without an ending, relative to the root, ``color`` six hex digits."""

    file: str
    label: str
    message: str
    color: str


def build(context: SiteContext) -> Iterator[tuple[str, bytes]]:
    """Two files per badge."""
    for badge in badges_of(context):
        endpoint = {"schemaVersion": 1, "label": badge.label, "message": badge.message, "color": badge.color}
        yield f"{badge.file}.json", msgspec.json.encode(endpoint) + b"\n"
        yield f"{badge.file}.svg", svg(badge).encode()


def badges_of(context: SiteContext) -> tuple[Badge, ...]:
    """One badge per device over its models, one per device and suite, and one per scorecard."""
    found = []
    for device in context.latest.devices:
        entries = context.latest.of_device(device)
        models = [entry for entry in entries if entry.workload.subject is Subject.MODELS]
        if models:
            found.append(_badge(f"badge/{device_id(device)}", device, models))
        suites: dict[str, list[Entry]] = {}
        for entry in entries:
            suites.setdefault(entry.workload.suite, []).append(entry)
        for suite, members in sorted(suites.items()):
            found.append(_badge(f"badge/{device_id(device)}-{slug(suite)}", f"{device} {suite}", members))
    return (*found, *map(_scorecard_badge, context.scorecards, repeat(context.now)))


def _scorecard_badge(of: Scorecard, now: float) -> Badge:
    """The points of a device, and its level where that is decided."""
    file, card = bundled_scorecard(), of.card
    stands = of.history[-1].stands if of.history else (0, -1)
    decided = stands[0] == stands[1]
    level = f"{range_text(file, stands)}, " if decided else ""
    points = str(card.lowest) if card.lowest == card.highest else f"{card.lowest} to {card.highest}"
    stale = now - card.at > STALE_AFTER_S
    color = (_FEW, _MOST, _GOOD)[stands[0]] if decided and not stale else _NONE
    message = f"{level}{points} of {file.total}, torch {card.release.base}"
    name = f"badge/{device_id(of.device)}-scorecard"
    label = xml_line(f"{of.device} quality", LONGEST)
    return Badge(name, label, f"{message} (stale)" if stale else message, color)


def _badge(file: str, label: str, entries: Iterable[Entry]) -> Badge:
    members = list(entries)
    counted = tally(members)
    said = [(entry.known_at, entry.known_age_s) for entry in members if entry.known is not None]
    newest, age_s = max(said, default=(0.0, 0.0))
    stale = not said or age_s > STALE_AFTER_S
    share = counted.passed / counted.planned if counted.planned else 0.0
    color = _NONE if stale else _GOOD if share == 1 else _MOST if share >= 0.9 else _FEW
    broken = counted.marks.get(MARK, 0)
    told = [f"pass {counted.passed}/{counted.planned}", f"{broken} new" if broken else ""]
    message = ", ".join(part for part in (*told, units.day(newest) if said else "") if part)
    return Badge(file, xml_line(label, LONGEST), f"{message} (stale)" if stale else message, color)


def svg(badge: Badge) -> str:
    """The badge as an image that needs nothing else."""
    left, right = (_width(text) for text in (badge.label, badge.message))
    whole = left + right
    name = attribute(f"{badge.label}: {badge.message}")
    texts = "".join(
        f'<text x="{x}" y="14" textLength="{width - 2 * _PADDING}" lengthAdjust="spacingAndGlyphs">'
        f"{escape(text)}</text>"
        for x, width, text in ((_PADDING, left, badge.label), (left + _PADDING, right, badge.message))
    )
    title = escape(f"{badge.label}: {badge.message}")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{whole}" height="{_HEIGHT}" role="img" '
        f"aria-label={name}>"
        f"<title>{title}</title>"
        f'<rect width="{whole}" height="{_HEIGHT}" rx="3" fill="#444c56"/>'
        f'<path d="M{left} 0h{right - 3}a3 3 0 0 1 3 3v{_HEIGHT - 6}a3 3 0 0 1 -3 3h-{right - 3}z" '
        f'fill="#{badge.color}"/>'
        f'<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">{texts}</g></svg>\n'
    )


def _width(text: str) -> int:
    return round(_WIDTH * max(1, len(text))) + 2 * _PADDING
