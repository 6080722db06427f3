"""Regressions: changes in nightly history, what fails since the snapshot before, and what A/B runs say."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

from torchgauge.dashboard.latest_results import Entry, LatestResults
from torchgauge.dashboard.pages import links
from torchgauge.dashboard.pages.ab_runs import BADGES, ab_runs
from torchgauge.dashboard.pages.code_links import commit_link
from torchgauge.dashboard.pages.failure_groups import failure_groups
from torchgauge.dashboard.pages.number_text import change
from torchgauge.dashboard.pages.sparkline import Sparklines
from torchgauge.dashboard.snapshots import DatedRun, TorchBuild
from torchgauge.dashboard.trend_changes import Change, TrendChanges
from torchgauge.dashboard.trend_scan import COMMAND
from torchgauge.records import Subject
from torchgauge.records.codec import to_plain
from torchgauge.results import units
from torchgauge.results.hostile_text import first_line
from torchgauge.results.trends.trend_findings import Finding, Look
from torchgauge.results.trends.trend_outcomes import TrendState

if TYPE_CHECKING:
    from torchgauge.dashboard.context import SiteContext

MOST_GROUPS = 20
MOST_CHANGES = 200
"""Rows of each table of changes; the download has them all."""

_KEY = re.compile(r"[0-9a-f]{16}")
DATA = "data/regressions.json"

STATES: dict[TrendState, tuple[str, str, str]] = {
    TrendState.CONFIRMED: ("confirmed", "s-err", "confirmed by a side-by-side measurement"),
    TrendState.SUSPECTED: ("suspected", "s-acc", "from nightly history only, not measured again"),
    TrendState.NOT_CONFIRMABLE: (
        "not confirmable",
        "s-none",
        "cannot be measured again; the reason is stated",
    ),
    TrendState.ENVIRONMENT: ("environment", "s-none", "the machine changed, not the software"),
    TrendState.NOT_REPRODUCED: ("not reproduced", "s-none", "not present in a side-by-side measurement"),
}
"""Each verdict with its words, the class of its badge and its meaning."""


def build(context: SiteContext) -> Iterator[tuple[str, bytes]]:
    """The page, and its changes as a download."""
    found = context.changes
    page = context.renderer.page(
        "regressions",
        "regressions.html",
        trend=found,
        states=STATES,
        tables=_tables(context, found),
        looks=found.looks,
        question=_question,
        dated=context.dated,
        others=found.others[:MOST_CHANGES],
        fresh=tuple(
            (
                date,
                sum(len(members) for _, _, members in parts),
                [
                    (anchor, title, len(members), failure_groups(members, attrgetter("shown"))[:MOST_GROUPS])
                    for anchor, title, members in parts
                ],
            )
            for date, parts in _new(context)
        ),
        night=context.night,
        changed=context.changed,
        ab=ab_runs(context),
        badges=BADGES,
        snapshots=len(context.recent.snapshots),
        data=DATA,
        command=COMMAND,
    )
    yield "regressions.html", page.encode()
    yield DATA, _json(context, found)


def _tables(context: SiteContext, found: TrendChanges) -> list[tuple[str, str, int, list[dict[str, Any]]]]:
    """Title, explanation, number and rows of every table of changes that has rows."""
    runs = {run.run_id: run for run in context.dated}
    entries = _by_key(context.everything)
    harmful = [each for each in found.changes if each.open and each.finding.worse is True]
    better = [each for each in found.changes if each.open and each.finding.worse is not True]
    done = [each for each in found.changes if not each.open]
    parts = (
        ("Slower or worse", "Changes that still hold.", harmful),
        ("Faster or neutral", "Changes that still hold.", better),
        ("Closed", "The metric returned to its old level, or the software was not the cause.", done),
    )
    return [
        (
            title,
            text,
            len(members),
            [_change(each, runs, entries) for each in members[:MOST_CHANGES]],
        )
        for title, text, members in parts
        if members
    ]


def worse(context: SiteContext, most: int) -> dict[str, Any]:
    """The open changes for the worse: how many, what is wrong with them, and rows of the first ``most``."""
    found = context.changes
    members = [each for each in found.changes if each.open and each.finding.worse is True]
    runs, entries = {run.run_id: run for run in context.dated}, _by_key(context.everything)
    return {
        "number": len(members),
        "never": found.never,
        "why": found.why,
        "problems": found.problems,
        "states": STATES,
        "rows": [
            {**_change(each, runs, entries), "line": _line(context, each.finding)} for each in members[:most]
        ],
    }


def _line(context: SiteContext, found: Finding) -> Markup:
    """The recent past of the series of ``found`` as a drawing; empty where there is none."""
    row = context.recent.number_of(found.case_key)
    if row is None or found.metric not in context.recent.values:
        return Markup()
    lines = Sparklines(context.recent.of_cases([row]), found.metric, context.metric(found.metric).unit)
    return lines.svg(0) if lines.drawn(0) else Markup()


def _by_key(latest: LatestResults) -> Mapping[str, Entry]:
    return {entry.newest["case_key"]: entry for entry in latest.entries.values()}


def _change(change_: Change, runs: Mapping[str, DatedRun], entries: Mapping[str, Entry]) -> dict[str, Any]:
    """A row of a table: the finding, and what pages know of its case and its builds."""
    found = change_.finding
    entry, safe, latest = entries.get(found.case_key), runs.get(found.safe_run), runs.get(found.latest_run)
    return {
        "found": found,
        "entry": entry,
        "anchor": f"change-{found.key}" if _KEY.fullmatch(found.key) else "",
        "href": links.case_link(entry) if entry else "",
        "interval": interval_text(found),
        "safe": safe,
        "latest": latest,
        "good": _linked(safe, found.safe_run, found.good_torch),
        "bad": _linked(latest, found.latest_run, found.suspect_torch),
        "held_for": None if change_.ended_at is None else max(0.0, change_.ended_at - found.suspect_at),
        "ended_at": change_.ended_at,
    }


def interval_text(found: Finding) -> str:
    """The interval of a change, or that there is none."""
    if found.low is None or found.high is None:
        return "no interval: too few nights"
    return f"[{change(1 + found.low, None)}, {change(1 + found.high, None)}]"


def build_text(build: TorchBuild | None, run: str, torch: str) -> str:
    """A build of torch: its commit and version where the store knows them, else the run."""
    if build is None:
        return f"torch {_name(torch)}" if torch else f"run {_name(run)}"
    commit, version = build.commit[:10], _name(build.version or torch)
    if commit and version:
        return f"{commit} (torch {version})"
    return commit or (f"torch {version}" if version else f"run {_name(run)}")


def _linked(of: DatedRun | None, run: str, torch: str) -> Markup:
    """Return a build of torch as text, its commit as a link."""
    build = of.build if of else None
    text, commit = build_text(build, run, torch), build.commit if build else ""
    return commit_link(commit) + text.removeprefix(commit[:10]) if commit else escape(text)


def _name(text: str) -> str:
    """A name on one line, in a length that leaves room for others."""
    return first_line(text, 120)


def _question(look: Look) -> str:
    """What was asked of trend."""
    asked = look.question
    names = ("suite", "model", "device", "configuration", "reference")
    parts = [asked.metric, *(f"{name} {getattr(asked, name)}" for name in names if getattr(asked, name))]
    if asked.since:
        parts.append(f"since {units.day(asked.since)}" if 0 < asked.since < 1e11 else "since another time")
    return ", ".join(map(_name, parts))


def _new(context: SiteContext) -> Iterator[tuple[str, list[tuple[str, str, list[Entry]]]]]:
    """Yield the nights with new failures: for each device and subject an anchor, a title and the cases."""
    found: dict[str, dict[tuple[str, Subject], list[Entry]]] = {}
    for each in context.new_failures:
        part = found.setdefault(each.snapshot.date, {})
        entry = context.latest.entries[each.case.workload, each.case.column]
        part.setdefault((each.case.device, each.case.workload.subject), []).append(entry)
    for date, parts in sorted(found.items(), reverse=True):
        order = sorted(parts, key=lambda part: (part[0], list(Subject).index(part[1])))
        yield (
            date,
            [
                (links.new_failures_anchor(date, *part), f"{part[0]}: {part[1].value}", parts[part])
                for part in order
            ],
        )


def _json(context: SiteContext, found: TrendChanges) -> bytes:
    """The changes as JSON."""
    changes = [
        {**to_plain(each.finding), "open": each.open, "ended_at": each.ended_at} for each in found.changes
    ]
    data = {"schema": 1, "generated_at": context.now, "problems": list(found.problems), "changes": changes}
    return json.dumps(data, separators=(",", ":"), allow_nan=False).encode() + b"\n"
