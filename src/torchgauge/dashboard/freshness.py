"""Of when, of which torch and of which machine what is shown is, and whether it is older than it should be.

How often results come is estimated from the history, since a store knows no schedule: the median of the gaps
between the snapshots in which a device said anything. A result is late half a gap after the next one was due,
after longer than the gaps that are usual, such as weekends, and never within a day; where there is one
snapshot only, after :data:`STALE_AFTER_S`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil
from statistics import median

import numpy as np
from markupsafe import Markup

from torchgauge.clock import DAY_S, utc
from torchgauge.dashboard.arrow_columns import Floats
from torchgauge.dashboard.column_ages import usual_torch
from torchgauge.dashboard.history import History
from torchgauge.dashboard.latest_results import Entry, LatestResults
from torchgauge.dashboard.pages.environments import fact as fact_text
from torchgauge.dashboard.pages.environments import machine_of
from torchgauge.dashboard.plain_rows import Row
from torchgauge.results import units
from torchgauge.results.hostile_text import brief, first_line
from torchgauge.results.latest import STALE_AFTER_S

DUE = 1.5
"""Median gaps after which a result is late."""

USUAL = 0.9
"""Part of the gaps that are not longer than a usual one, and at least all but the longest."""

BEYOND_USUAL = 1.1
"""Usual gaps after which a result is late: a weekend is never of the same length to the minute."""

AHEAD_S = 600.0
"""By how much a result may be dated after the build before its clock, or ours, is called wrong."""


@dataclass(frozen=True)
class Reporter:
    """A device, or all of them.

    ``at`` is its newest result, in seconds since the epoch, None where it has none; ``every_s`` is how often
    one came, None where that cannot be told, and ``late_after_s`` how old it may become before it is late.
    ``torch`` and ``machine`` are empty where they are not known. ``ahead_at`` is a result that is dated after
    the build, which is none of the others; None where none is.
    """

    device: str
    at: float | None
    every_s: float | None
    late_after_s: float = STALE_AFTER_S
    torch: str = ""
    machine: str = ""
    ahead_at: float | None = None

    @property
    def late_at(self) -> float | None:
        """The moment from which on it is late; None where it has no result."""
        return None if self.at is None else self.at + self.late_after_s

    @property
    def silence(self) -> str:
        """Since when nothing came, and how often it came before; true on whatever day it is read."""
        if self.at is None:
            return "no result at all: all cases failed in the environment or were not run"
        since = f"no result since {units.moment(self.at)}"
        if self.every_s is None:
            return since
        return f"{since}; before, one came every {units.age(max(DAY_S, 3_600 * round(self.every_s / 3_600)))}"


@dataclass(frozen=True)
class Freshness:
    """What is known at ``now``: ``devices`` by name, and ``newest``, which is any of them."""

    now: float
    devices: Mapping[str, Reporter]
    newest: Reporter

    @cached_property
    def late(self) -> tuple[Reporter, ...]:
        """The devices that are late, or have nothing to say."""
        return tuple(
            each
            for each in self.devices.values()
            if (each.ahead_at is None if each.late_at is None else each.late_at < self.now)
        )

    def is_late(self, device: str) -> bool:
        """Whether ``device`` is late, or has nothing to say."""
        return any(each.device == device for each in self.late)

    @property
    def all_late(self) -> bool:
        """Whether even the newest result of all is late."""
        return self.newest.late_at is not None and self.newest.late_at < self.now

    @cached_property
    def builds(self) -> tuple[tuple[str, tuple[Reporter, ...]], ...]:
        """The devices that have a result by their torch, the one of most devices first."""
        found: dict[str, list[Reporter]] = {}
        for each in self.devices.values():
            if each.at is not None:
                found.setdefault(each.torch, []).append(each)
        order = sorted(found.items(), key=lambda item: (-len(item[1]), item[0]))
        return tuple((torch, tuple(members)) for torch, members in order)


def freshness_of(
    latest: LatestResults, recent: History, environments: Mapping[str, Iterable[Row]], now: float
) -> Freshness:
    """How old ``latest`` is; ``recent`` says how often results come, ``environments`` by run the machines."""
    entries: dict[str, list[Entry]] = {device: [] for device in latest.devices}
    for entry in latest.entries.values():
        if entry.known is not None:
            entries[entry.column.device].append(entry)
    rows: dict[str, list[int]] = {device: [] for device in latest.devices}
    for place, case in enumerate(recent.cases):
        rows.setdefault(case.device, []).append(place)
    when = np.where(recent.said, recent.when, 0) / 1e6
    when[when > now + AHEAD_S] = 0
    devices = {
        device: _reporter(Reporter(device, None, *_rhythm(when[rows[device]])), members, environments, now)
        for device, members in entries.items()
    }
    at = max((each.at for each in devices.values() if each.at is not None), default=None)
    return Freshness(now, devices, Reporter("", at, *_rhythm(when)))


def _reporter(
    known: Reporter, entries: list[Entry], environments: Mapping[str, Iterable[Row]], now: float
) -> Reporter:
    """``known`` with what the ``entries`` of the device say."""
    entries.sort(key=lambda entry: entry.known_at, reverse=True)
    past = [entry for entry in entries if entry.known_at <= now + AHEAD_S]
    if len(past) < len(entries):
        known = replace(known, ahead_at=entries[0].known_at)
    if not past:
        return known
    row = past[0].shown
    facts = {
        fact["key"]: fact_text(fact["value"])
        for fact in environments.get(row["run_id"], ())
        if fact["environment_id"] == row["environment_id"] and fact["kind"] == "identity"
    }
    torch = first_line(usual_torch(past), 60)
    return replace(known, at=past[0].known_at, torch=torch, machine=machine_of(facts))


def _rhythm(when: Floats) -> tuple[float | None, float]:
    """The median gap between snapshots, and how old a result may become before it is late.

    ``when`` is in seconds by case, 0 where nothing is said.
    """
    newest = when.max(axis=0, initial=0)
    gaps = np.sort(np.diff(np.sort(newest[newest > 0]))).tolist()
    if not gaps:
        return None, STALE_AFTER_S
    usual = gaps[max(0, min(ceil(USUAL * len(gaps)) - 1, len(gaps) - 2))]
    every = median(gaps)
    return every, max(DAY_S, DUE * every, BEYOND_USUAL * usual)


def aged(seconds: float) -> Markup:
    """A moment as a page says it: a date, which is true for ever, of which ``age.js`` makes an age."""
    return Markup('<time datetime="{:%Y-%m-%dT%H:%M:%SZ}" data-age>{}</time>').format(
        utc(seconds), units.moment(seconds)
    )


def sentence(text: str, *parts: Markup | str) -> Markup:
    """``text`` with its fields filled; what is no markup is made visible, brief and escaped."""
    return Markup(text).format(*(part if isinstance(part, Markup) else brief(part) for part in parts))  # noqa: S704
