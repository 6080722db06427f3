"""The page of one device: how healthy the backend is, what to fix first, and on what it ran since when."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from torchgauge.dashboard.history import NOTHING_PLANNED
from torchgauge.dashboard.latest_results import Entry
from torchgauge.dashboard.pages import links
from torchgauge.dashboard.pages.device_history import device_history, rows_of
from torchgauge.dashboard.pages.environments import (
    Difference,
    EnvironmentIndex,
    Identity,
    differences,
    plugin_of,
    readable,
)
from torchgauge.dashboard.pages.failure_groups import failure_groups
from torchgauge.dashboard.pages.pass_line import pass_line
from torchgauge.dashboard.plain_rows import Row
from torchgauge.dashboard.tally import Tally, tally
from torchgauge.records import ATTEMPTED, INCOMPLETE, Status, Subject
from torchgauge.results import units

if TYPE_CHECKING:
    from torchgauge.dashboard.context import SiteContext

INDEX = "devices/index.html"

MOST = {"groups": 40, "host": 60, "changes": 24, "builds": 16}
"""Rows of each part of the page; how many there are in all is said."""

_HEADLINE = re.compile(
    r"(^|\.|_)(driver|model|machine|version|git_commit|torch|torch_commit|flavour|system|memory_bytes|firmware)$"
    r"|driver|^extension\."
)
"""Facts of an environment that a person asks for first."""

_OF_THE_BUILD = re.compile(r"(package\.)?torch([._](version|git_commit|commit))?")
"""Facts that the table of builds has, so that a nightly build hides no change of a driver."""


@dataclass(frozen=True)
class SuiteRate:
    """The cases of one suite; ``at`` is the newest result, in seconds since the epoch."""

    suite: str
    subject: Subject
    tally: Tally
    at: float | None


@dataclass(frozen=True)
class HostModel:
    """A model of which operators ran on the host; ``share`` is the largest share of a step."""

    model: str
    href: str
    share: float
    operators: str
    cases: int


@dataclass(frozen=True)
class KnownEnvironment:
    """One environment of the device: the facts that are asked for first, and all."""

    id: str
    anchor: str
    first: str
    last: str
    runs: int
    headline: tuple[tuple[str, str], ...]
    identity: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class EnvironmentChange:
    """From one run to the next another environment: what differs."""

    date: str
    run_id: str
    href: str
    before: str
    after: str
    rows: tuple[Difference, ...]


@dataclass(frozen=True)
class BuildSpan:
    """Successive snapshots of the device with one build of torch."""

    version: str
    commit: str
    first: str
    last: str
    snapshots: int


def build(context: SiteContext) -> Iterator[tuple[str, bytes]]:
    """The page of every device, and the list of them."""
    pages = [_page(context, device) for device in sorted({case.device for case in context.case_index})]
    index = context.renderer.page("devices", INDEX, pages=pages, section=INDEX)
    yield INDEX, index.encode()
    for page in pages:
        file = page["file"]
        yield file, context.renderer.page("device", file, page=page, most=MOST, section=INDEX).encode()


def _page(context: SiteContext, device: str) -> dict[str, Any]:
    """All that is said of one device; ``total`` counts models only, ``..._apart`` what is no model."""
    entries = context.latest.of_device(device)
    models = [entry for entry in entries if entry.workload.subject is Subject.MODELS]
    refused = [e for e in entries if e.status in (Status.UNSUPPORTED, Status.SKIPPED)]
    apart = _failed(e for e in entries if e.workload.subject is not Subject.MODELS)
    host, looked = _host(entries)
    run, calibrations = _newest_calibration(context, device)
    history = device_history(context.recent, rows_of(context.recent, device, Subject.MODELS))
    return {
        "file": links.device_page(device),
        "device": device,
        "at": _newest(entries),
        "total": tally(models),
        "line": pass_line(history.passed, history.planned, [s.date for s in context.recent.snapshots]),
        "suites": _suites(entries),
        "failures": failure_groups(_failed(models)),
        "failures_apart": failure_groups(apart),
        "refusals": failure_groups(refused),
        "lost": failure_groups(e for e in entries if e.status in INCOMPLETE),
        "host": host,
        "looked": looked,
        "environments": _environments(context, device),
        "changes": _changes(context, device),
        "builds": _builds(context, device),
        "calibrations": calibrations,
        "calibration_run": run,
    }


def _failed(entries: Iterable[Entry]) -> list[Entry]:
    return [entry for entry in entries if entry.status in ATTEMPTED and entry.status is not Status.PASS]


def _newest(entries: Sequence[Entry]) -> float | None:
    """The newest result of ``entries``, in seconds since the epoch; None where none says anything."""
    return max((entry.known_at for entry in entries if entry.known is not None), default=None)


def _suites(entries: Sequence[Entry]) -> tuple[SuiteRate, ...]:
    members: dict[tuple[Subject, str], list[Entry]] = {}
    for entry in entries:
        members.setdefault((entry.workload.subject, entry.workload.suite), []).append(entry)
    order = list(Subject)
    return tuple(
        SuiteRate(suite, subject, tally(found), _newest(found))
        for (subject, suite), found in sorted(members.items(), key=lambda m: (order.index(m[0][0]), m[0][1]))
    )


def _host(entries: Sequence[Entry]) -> tuple[list[HostModel], int]:
    """The models of which operators ran on the host, largest share first, and the cases looked at."""
    found: dict[tuple[str, str], list[Entry]] = {}
    looked = 0
    for entry in entries:
        if '"fallback_ops"' not in (entry.shown["facts"] or ""):
            continue
        looked += 1
        if _number(entry, "fallback_ops") > 0:
            found.setdefault(entry.workload.group, []).append(entry)
    shares = {
        group: max(_number(entry, "fallback_share") for entry in members) for group, members in found.items()
    }
    models = [
        HostModel(
            model="/".join(group),
            href=links.case_link(max(members, key=lambda entry: _number(entry, "fallback_share"))),
            share=shares[group],
            operators=", ".join(
                dict.fromkeys(str(name) for e in members if (name := e.facts.get("fallback_names")))
            ),
            cases=len(members),
        )
        for group, members in sorted(found.items(), key=lambda item: (-shares[item[0]], item[0]))
    ]
    return models, looked


def _number(entry: Entry, name: str) -> float:
    value = entry.facts.get(name)
    return float(value) if isinstance(value, int | float) else 0.0


def _environments(context: SiteContext, device: str) -> tuple[KnownEnvironment, ...]:
    """The environments of the runs that are described, the newest first."""
    identities: dict[str, dict[str, str]] = {}
    dates: dict[str, list[str]] = {}
    for created_at, _, name, identity in _seen(context, device):
        identities[name] = dict(identity)
        dates.setdefault(name, []).append(units.moment(created_at))
    newest_first = sorted(identities, key=lambda name: (dates[name][-1], name), reverse=True)
    return tuple(
        KnownEnvironment(
            id=name,
            anchor=links.environment_anchor(name),
            first=dates[name][0],
            last=dates[name][-1],
            runs=len(dates[name]),
            headline=tuple(pair for pair in readable(identities[name]) if _HEADLINE.search(pair[0])),
            identity=tuple(readable(identities[name])),
        )
        for name in newest_first
    )


def _seen(context: SiteContext, device: str) -> Iterator[tuple[float, str, str, Identity]]:
    """When, in which run, and in which environment the device was seen, in order of time."""
    names = {device, plugin_of(device)}
    for info in reversed(context.runs):
        rows = [row for row in context.environments.get(info.run_id, ()) if row["device"] in names]
        environment_index = EnvironmentIndex([rows])
        for name in dict.fromkeys(row["environment_id"] for row in rows):
            yield info.created_at, info.run_id, name, environment_index.identity(device, name) or {}


def _changes(context: SiteContext, device: str) -> list[EnvironmentChange]:
    """Where successive runs that are described had other environments, the newest first."""
    found = []
    for (_, _, before, left), (at, run, after, right) in pairwise(_seen(context, device)):
        rows = tuple(r for r in differences((left, right)) if not _OF_THE_BUILD.fullmatch(r.key))
        if before != after and rows:
            date = units.moment(at)
            found.append(EnvironmentChange(date, run, links.run_link(run), before, after, rows))
    return found[::-1]


def _builds(context: SiteContext, device: str) -> list[BuildSpan]:
    """The builds of torch over the recent snapshots in which the device had cases, the newest first."""
    rows = [i for i, case in enumerate(context.recent.cases) if case.device == device]
    there = (context.recent.status[rows] != NOTHING_PLANNED).any(axis=0).tolist()
    spans: list[BuildSpan] = []
    for snapshot, planned in zip(context.recent.snapshots, there, strict=True):
        if not planned:
            continue
        version, commit = snapshot.build.version, snapshot.build.commit
        if spans and (spans[-1].version, spans[-1].commit) == (version, commit):
            last = spans.pop()
            spans.append(BuildSpan(version, commit, last.first, snapshot.date, last.snapshots + 1))
        else:
            spans.append(BuildSpan(version, commit, snapshot.date, snapshot.date, 1))
    return spans[::-1]


def _newest_calibration(context: SiteContext, device: str) -> tuple[str, list[Row]]:
    """The newest run that calibrated the plugin of ``device``, and what a product, a copy and a launch took.

    Both are empty where none did.
    """
    names = {device, plugin_of(device)}
    for info in context.runs:
        rows = [row for row in context.calibrations.get(info.run_id, ()) if row["device"] in names]
        if rows:
            return info.run_id, rows
    return "", []
