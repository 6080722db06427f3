"""How cases ended over the snapshots of a window, as plain counts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from torchgauge.dashboard.history import NOTHING_PLANNED, STATUSES, History
from torchgauge.dashboard.snapshots import Snapshot
from torchgauge.dashboard.statuses import LOOKS, PARTIAL
from torchgauge.records import Status

_RELEASE = re.compile(r"(\d+\.\d+)(?:\.\d+)?((?:a|b|rc|\.dev)\d*)?")

LOST = "lost, or no run"
"""The layer of what was not measured: it keeps its height, so that a lost night is no fall."""

APART = PARTIAL.code
"""What passed and is no pass of what was asked for: degraded, unchecked, or another model."""


@dataclass(frozen=True)
class Layer:
    """One part of the stack: its words, the class of its colour, and its count in every snapshot."""

    text: str
    css: str
    counts: tuple[int, ...]


@dataclass(frozen=True)
class Course:
    """The layers over ``snapshots``, bottom first.

    The last layer, :data:`LOST`, has by device as many cases as it planned last, since its first result in
    the snapshots in which nothing was said of any of them, whether they were lost or nothing ran. Where
    a device measured another build of the day alone, it keeps these results. ``silent``
    are these devices by place, and ``lost`` the places without a device that said something. ``releases``
    are places at which another release of torch begins, with its name.
    """

    snapshots: tuple[Snapshot, ...]
    layers: tuple[Layer, ...]
    planned: tuple[int, ...]
    silent: Mapping[int, tuple[str, ...]]
    lost: tuple[int, ...]
    releases: tuple[tuple[int, str], ...]

    @property
    def heard(self) -> tuple[int, ...]:
        """Places of the snapshots that are not lost."""
        silent = set(self.lost)
        return tuple(i for i, planned in enumerate(self.planned) if planned and i not in silent)

    @property
    def passed(self) -> tuple[int, ...]:
        """Passes by snapshot."""
        return self.layers[0].counts


def course_of(history: History, rows: Sequence[int]) -> Course:
    """How the cases in ``rows`` ended over the snapshots of ``history``."""
    status, counted = history.status[rows].copy(), history.counted[rows]
    lost, silent = np.zeros(status.shape[1], np.int64), dict[int, tuple[str, ...]]()
    devices = [history.cases[row].device for row in rows]
    dates = np.array([snapshot.date for snapshot in history.snapshots])
    for device in dict.fromkeys(devices):
        own = np.array([each == device for each in devices])
        planned, said = (status[own] != NOTHING_PLANNED).sum(axis=0), history.said[rows][own].any(axis=0)
        for place in np.flatnonzero(~said & (planned == 0)).tolist():
            if len(same := np.flatnonzero(said & (dates == dates[place]))):
                status[own, place], counted[own, place] = status[own, same[-1]], counted[own, same[-1]]
                said[place] = True
        gone = ~said & ((planned > 0) | np.maximum.accumulate(said))
        status[np.ix_(own, gone)] = NOTHING_PLANNED
        for place in np.flatnonzero(gone).tolist():
            before = planned[: place + 1]
            lost[place] += before[np.flatnonzero(before)[-1]]
            silent[place] = (*silent.get(place, ()), device)
    passes = counted.sum(axis=0)
    is_pass = (status == STATUSES.index(Status.PASS)).sum(axis=0)
    layers = [Layer(LOOKS[Status.PASS].code, "pass", tuple(passes.tolist()))]
    layers.append(Layer(APART, "apart", tuple((is_pass - passes).tolist())))
    for css, looks in groupby(list(LOOKS.values())[1:], key=lambda look: look.css):
        codes = list(looks)
        counts = sum((status == STATUSES.index(look.status)).sum(axis=0) for look in codes)
        layers.append(Layer(", ".join(look.code for look in codes), css, tuple(np.asarray(counts).tolist())))
    measured = (status != NOTHING_PLANNED).sum(axis=0)
    layers.append(Layer(LOST, "infra", tuple(lost.tolist())))
    shown = tuple(layer for layer in layers if any(layer.counts) or layer.css == "pass")
    return Course(
        history.snapshots,
        shown,
        tuple((measured + lost).tolist()),
        silent,
        tuple(np.flatnonzero((measured == 0) & (lost > 0)).tolist()),
        tuple(_releases(history.snapshots)),
    )


def _releases(snapshots: Sequence[Snapshot]) -> Iterator[tuple[int, str]]:
    """Where another release of torch begins: nightly builds of one release are one."""
    before = ""
    for place, snapshot in enumerate(snapshots):
        name = release_of(snapshot.build.version)
        if name and name != before:
            if before:
                yield place, name
            before = name


def release_of(version: str) -> str:
    """The release that a build of torch is or leads to: ``2.13``, ``2.14 dev``; empty where unknown."""
    found = _RELEASE.match(version)
    if found is None:
        return ""
    return f"{found[1]} dev" if found[2] else found[1]
