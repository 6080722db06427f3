"""The Atom feed: regressions and new failures, with ids that stay when the site is built again.

An id is made of what the entry is about and of nothing else. New failures are one entry per device and
snapshot, so that a device that breaks is one message and not a thousand.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from torchgauge.clock import utc
from torchgauge.dashboard.context import SiteContext
from torchgauge.dashboard.new_failures import NewFailure, recent_failures
from torchgauge.dashboard.pages.number_text import change
from torchgauge.dashboard.pages.regressions import STATES, build_text, interval_text
from torchgauge.dashboard.pages.subject_links import case_link
from torchgauge.dashboard.snapshots import Snapshot, TorchBuild
from torchgauge.dashboard.trend_changes import Change, builds_of
from torchgauge.dashboard.xml_text import attribute, escape, xml_line
from torchgauge.records.codec import digest
from torchgauge.results import units

FILE = "feed.xml"
AUTHORITY = "torchgauge,2026"
"""The authority of ids (RFC 4151): the project's name, since a site may move."""

MOST_ENTRIES = 100
MOST_CASES = 50
"""Cases that one entry names."""


@dataclass(frozen=True)
class FeedEntry:
    """One entry; ``updated`` is in seconds since the epoch, ``href`` relative to the site's root."""

    id: str
    title: str
    updated: float
    published: float
    href: str
    category: str
    lines: tuple[str, ...]


def build(context: SiteContext) -> Iterator[tuple[str, bytes]]:
    """The feed."""
    yield FILE, feed(entries_of(context), context.base_url, context.now).encode()


def entries_of(context: SiteContext) -> tuple[FeedEntry, ...]:
    """What the feed tells, newest first."""
    found = [*_regressions(context), *_failures(context)]
    found.sort(key=lambda entry: (-entry.updated, entry.id))
    return tuple(found[:MOST_ENTRIES])


def feed(entries: tuple[FeedEntry, ...], base_url: str, now: float) -> str:
    """The feed as Atom (RFC 4287); links are absolute where ``base_url`` is known."""
    updated = max((entry.updated for entry in entries), default=now)
    lines = [
        '<?xml version="1.0" encoding="utf-8"?>',
        '<feed xmlns="http://www.w3.org/2005/Atom">',
        f"<id>tag:{AUTHORITY}:feed/{digest(base_url)}</id>",
        "<title>torchgauge: regressions and new failures</title>",
        f"<updated>{_moment(updated)}</updated>",
        f'<link rel="self" type="application/atom+xml" href={attribute(base_url + FILE)}/>',
        f'<link rel="alternate" type="text/html" href={attribute(base_url + "regressions.html")}/>',
        "<author><name>torchgauge</name></author>",
        "<generator>torchgauge</generator>",
    ]
    for entry in entries:
        content = "\n".join(xml_text(line) for line in entry.lines)
        lines += [
            "<entry>",
            f"<id>{xml_text(entry.id)}</id>",
            f'<title type="text">{xml_text(entry.title)}</title>',
            f"<updated>{_moment(entry.updated)}</updated>",
            f"<published>{_moment(entry.published)}</published>",
            f'<link rel="alternate" type="text/html" href={attribute(base_url + entry.href)}/>',
            f"<category term={attribute(entry.category)}/>",
            f'<content type="text">{content}</content>',
            "</entry>",
        ]
    return "\n".join([*lines, "</feed>"]) + "\n"


def xml_text(text: str, limit: int = 400) -> str:
    """One visible line of ``text`` for element content."""
    return escape(xml_line(text, limit))


def _regressions(context: SiteContext) -> Iterator[FeedEntry]:
    builds = builds_of(context)
    for each in context.changes.changes:
        if each.finding.worse is True and each.open:
            yield _regression(each, builds)


def _regression(each: Change, builds: Mapping[str, TorchBuild]) -> FeedEntry:
    found = each.finding
    state, size = STATES[found.state][0], change(1 + found.size, unit=found.unit)
    about = [found.case_key, found.metric, found.machine, found.suspect_run]
    before, after = (units.quantity(value, found.unit) for value in (found.before, found.after))
    good = build_text(builds.get(found.safe_run), found.safe_run, found.good_torch)
    bad = build_text(builds.get(found.latest_run), found.latest_run, found.suspect_torch)
    where = f"{found.suite}/{found.model} ({found.configuration})"
    return FeedEntry(
        id=f"tag:{AUTHORITY}:regression/{digest(about)}",
        title=f"{found.device}: {found.metric} of {where} {size}, {state}",
        updated=max(found.suspect_at, found.decided_at or 0.0),
        published=found.suspect_at,
        href="regressions.html#changes",
        category="regression",
        lines=(
            found.case_id,
            f"{found.metric}: {before} to {after}, {size} {interval_text(found)}",
            f"first bad build: after {good}, up to and including {bad}",
            f"{state}: {found.reason}" if found.reason else state,
        ),
    )


def _failures(context: SiteContext) -> Iterator[FeedEntry]:
    groups: dict[tuple[str, str], list[NewFailure]] = {}
    for found in recent_failures(context.recent, MOST_ENTRIES):
        groups.setdefault((found.snapshot.id, found.case.device), []).append(found)
    created = {run.run_id: run.created_at for run in context.dated}
    for (_, device), members in groups.items():
        yield _failure(context, device, members, created)


def _failure(
    context: SiteContext, device: str, members: list[NewFailure], created: dict[str, float]
) -> FeedEntry:
    snapshot = members[0].snapshot
    times = [created[run] for run in snapshot.runs if run in created] or [context.now]
    number = len(members)
    lines = [
        f"{each.case.workload.name} on {each.case.column.configuration}: {each.ended}, "
        f"passed {each.before.date}"
        for each in members[:MOST_CASES]
    ]
    if number > MOST_CASES:
        lines.append(f"and {number - MOST_CASES} more")
    single = members[0].case
    one = case_link(context.everything, single.workload, single.column)
    plural = "" if number == 1 else "s"
    return FeedEntry(
        id=f"tag:{AUTHORITY}:failures/{digest([device, snapshot.id])}",
        title=f"{device}: {number} new failure{plural} on {snapshot.date}{_build(snapshot)}",
        updated=max(times),
        published=min(times),
        href=one if number == 1 else "regressions.html#new",
        category="new failures",
        lines=tuple(lines),
    )


def _build(snapshot: Snapshot) -> str:
    build = snapshot.build
    parts = [build.version and f"torch {build.version}", build.commit[:10]]
    text = ", ".join(part for part in parts if part)
    return f" ({text})" if text else ""


def _moment(seconds: float) -> str:
    return f"{utc(seconds):%Y-%m-%dT%H:%M:%SZ}"
