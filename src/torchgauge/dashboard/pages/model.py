"""The page of one model: how it does everywhere, since when, with what numbers, and how to run it again.

Case by case the page is written by functions (:mod:`case_section`, :mod:`status_strip`, :mod:`sparkline`),
since two hundred pages of twenty-four cases are to take about a second.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from markupsafe import Markup

from torchgauge.dashboard.history import NOTHING_PLANNED, History
from torchgauge.dashboard.latest_results import Column, Entry, LatestResults
from torchgauge.dashboard.names import device_id, model_id
from torchgauge.dashboard.pages import links
from torchgauge.dashboard.pages.case_section import LongTexts, Place, case_html
from torchgauge.dashboard.pages.drawn_metric import IN_TABLE, DrawnMetric
from torchgauge.dashboard.pages.environment_sides import Side, sides_html
from torchgauge.dashboard.pages.environments import (
    EnvironmentIndex,
    Identity,
    LastPasses,
    differences,
    machine_of,
)
from torchgauge.dashboard.pages.html_text import facts_html, repeated
from torchgauge.dashboard.pages.noise import Movement
from torchgauge.dashboard.pages.status_strip import SHOWN, letters, strip
from torchgauge.dashboard.snapshots import Snapshot
from torchgauge.records import Workload
from torchgauge.results import units

if TYPE_CHECKING:
    from torchgauge.dashboard.context import SiteContext


def build(context: SiteContext) -> Iterator[tuple[str, bytes]]:
    """The pages of all models: one for each suite and model, with all of its workloads."""
    site = _Site(context)
    groups: dict[tuple[str, str], list[Workload]] = {}
    for workload in context.everything.workloads:
        groups.setdefault(workload.group, []).append(workload)
    for group, workloads in groups.items():
        file = links.model_page(group)
        page = _page(site, group, workloads, "../" * file.count("/"))
        yield file, context.renderer.page("model", file, page=page).encode()


class _Site:
    """What all pages share, worked out once."""

    def __init__(self, context: SiteContext) -> None:
        self.latest: LatestResults = context.everything
        self.history: History = context.recent
        self.letters = letters(context.recent)
        self._context = context
        self._drawn: dict[str, DrawnMetric] = {}
        self.moved: Mapping[str, Movement] = context.moved
        self.passes = LastPasses(context)
        self.described = EnvironmentIndex(context.environments.values())
        self._differences: dict[tuple[str, str, str], str] = {}
        self._environments: dict[tuple[tuple[str, str], ...], Markup] = {}

    @cached_property
    def dates(self) -> tuple[str, ...]:
        """The dates of the newest snapshots."""
        return tuple(snapshot.date for snapshot in self.history.snapshots[-IN_TABLE:])

    def drawn(self, mode: str) -> DrawnMetric:
        """The drawings of the metric that the scenario ``mode`` measures for."""
        name = self._context.primary[mode]
        if name not in self._drawn:
            self._drawn[name] = DrawnMetric(self.history, self._context.metric(name))
        return self._drawn[name]

    @cached_property
    def epochs(self) -> dict[tuple[str, str, str], set[int]]:
        """The epochs of the window in which a device's model was planned."""
        numbers = np.array([snapshot.epoch for snapshot in self.history.snapshots], np.int64)
        keys = [(case.column.device, case.workload.suite, case.workload.model) for case in self.history.cases]
        found: dict[tuple[str, str, str], set[int]] = {key: set() for key in keys}
        for epoch in np.unique(numbers).tolist():
            planned = (self.history.status[:, numbers == epoch] != NOTHING_PLANNED).any(axis=1)
            for row in np.flatnonzero(planned).tolist():
                found[keys[row]].add(epoch)
        return found

    def environment_link(self, device: str, environment_id: str) -> str:
        """Where the environment is described; empty where it is not."""
        if not environment_id or self.described.identity(device, environment_id) is None:
            return ""
        return links.environment_link(device, environment_id)

    def difference(self, device: str, newest: str, before: str) -> str:
        """What differs between two environments of a device, as HTML; empty where one is not known."""
        key = device, newest, before
        if key not in self._differences:
            sides = [self.passes.environment_index.identity(device, name) for name in (before, newest)]
            self._differences[key] = _difference(sides[0], sides[1], same=newest == before)
        return self._differences[key]

    def environments(self, root: str, entries: Sequence[Entry]) -> Markup:
        """In what the environments of the results of ``entries`` differ; most pages have the same."""
        pairs = tuple(dict.fromkeys((e.column.device, e.shown["environment_id"] or "") for e in entries))
        if pairs not in self._environments:
            sides = [Side(*pair, self.environment_link(*pair), self._identity(*pair)) for pair in pairs]
            self._environments[pairs] = sides_html(sides, root)
        return self._environments[pairs]

    def _identity(self, device: str, environment_id: str) -> Identity | None:
        return self.passes.environment_index.identity(device, environment_id) if environment_id else None

    def place(self, entry: Entry) -> Place:
        """Where the run and the environments of ``entry`` are described."""
        row, device = entry.shown, entry.column.device
        environment = row["environment_id"] or ""
        last = self.passes.of(entry)
        newest = entry.newest["environment_id"] or environment
        return Place(
            run=links.run_link(row["run_id"]),
            environment=self.environment_link(device, environment),
            machine=machine_of(self.described.identity(device, environment) or {}),
            last_pass=last,
            difference=self.difference(device, newest, last.environment_id) if last else "",
        )


def _difference(before: Identity | None, newest: Identity | None, *, same: bool) -> str:
    if before is None or newest is None:
        return ""
    found = differences((before, newest))
    if same or not found:
        return f'<p class="where">All {len(newest)} facts of the environment are equal.</p>'
    return facts_html(
        (row.key, " → ".join(value or "(not recorded)" for value in row.values)) for row in found
    )


def _page(site: _Site, group: tuple[str, str], workloads: Sequence[Workload], root: str) -> dict[str, Any]:
    """What the template shows of one suite and model; ``root`` leads to the site's root."""
    texts = LongTexts()
    columns = [c for c in site.latest.columns if any((w, c) in site.latest.entries for w in workloads)]
    found = {
        workload: [site.latest.entries[workload, c] for c in columns if (workload, c) in site.latest.entries]
        for workload in workloads
    }
    entries = [entry for members in found.values() for entry in members]
    rows = (site.history.number_of(entry.newest["case_key"]) for entry in entries)
    return {
        "title": "/".join(group),
        "period": _period(site.history.snapshots[-SHOWN:], len(site.history.snapshots)),
        "metrics": list(dict.fromkeys(site.drawn(entry.workload.mode).metric.name for entry in entries)),
        "used": {letter for row in rows if row is not None for letter in site.letters[row]},
        "dates": site.dates,
        "workloads": [_workload(site, w, members, texts, root) for w, members in found.items()],
        "environments": site.environments(root, entries),
        "series": [(device, root + name) for device, name in _series(site, group, columns)],
    }


def _measured(site: _Site, drawn: DrawnMetric, entries: Sequence[Entry]) -> bool:
    """Whether any of ``entries`` has or had a number of the metric that is drawn."""
    rows = (site.history.number_of(entry.newest["case_key"]) for entry in entries)
    there = any(drawn.lines.numbers(row) for row in rows if row is not None)
    return there or any(drawn.metric.name in entry.numbers for entry in entries)


def _period(snapshots: Sequence[Snapshot], there: int) -> str:
    if not snapshots:
        return "no snapshot"
    if len(snapshots) == 1:
        return f"the one snapshot of {snapshots[0].date}"
    newest = "the newest " if there > len(snapshots) else ""
    return f"{newest}{len(snapshots)} snapshots, {snapshots[0].date} to {snapshots[-1].date}, oldest first"


def _workload(
    site: _Site, workload: Workload, entries: Sequence[Entry], texts: LongTexts, root: str
) -> dict[str, Any]:
    """One workload of the model: its history, and its cases."""
    drawn = site.drawn(workload.mode)
    html = {
        "facts": [facts_html(_built(entries))],
        "strips": [_strip(site, entry) for entry in entries],
        "multiples": [drawn.multiple(site.history, entry, site.moved) for entry in entries],
        "numbers": [drawn.table_row(site.history, entry) for entry in entries],
        "cases": [case_html(entry, site.place(entry), texts, root) for entry in entries],
    }
    said = {
        "anchor": links.workload_anchor(workload),
        "variant": workload.variant,
        "metric": drawn.metric.name.replace("_", " "),
        "unit": drawn.scale.name,
        "measured": _measured(site, drawn, entries),
    }
    return {**said, **{name: Markup("".join(parts)) for name, parts in html.items()}}  # noqa: S704


def _built(entries: Sequence[Entry]) -> list[tuple[str, str]]:
    """What the workers really built; several values where they do not agree."""
    found = []
    for name in ("parameters", "buffers", "inputs", "declared_hash", "realised_hash"):
        values = dict.fromkeys(entry.shown[name] for entry in entries if entry.shown[name] is not None)
        told = [units.integer(value) if isinstance(value, int) else str(value) for value in values]
        found.append((name.replace("_", " "), ", ".join(told) or "unknown: never built"))
    return found


def _strip(site: _Site, entry: Entry) -> str:
    look = entry.look
    row = site.history.number_of(entry.newest["case_key"])
    text = (
        strip(site.letters[row]) if row is not None else '<span class="muted">not in these snapshots</span>'
    )
    return (
        f'<tr><th scope="row"><a href="#{links.case_anchor(entry)}">{repeated(entry.column.name)}</a></th>'
        f'<td><span class="badge s-{look.css}">{look.code}</span></td><td class="nowrap">{text}</td></tr>'
    )


def _series(site: _Site, group: tuple[str, str], columns: Sequence[Column]) -> Iterator[tuple[str, str]]:
    """The files with the numbers of the model, relative to the root, by device and epoch."""
    for device in dict.fromkeys(column.device for column in columns):
        for epoch in sorted(site.epochs.get((device, *group), ())):
            yield device, f"series/{device_id(device)}/{model_id(group)}/{epoch}.json"
