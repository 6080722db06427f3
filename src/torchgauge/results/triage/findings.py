"""Clusters of failures with what a person asks of each: how many, since when, and a command for it."""

from __future__ import annotations

import math
import shlex
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

from torchgauge.records import ATTEMPTED, Modifier, Status
from torchgauge.results.latest import Row
from torchgauge.results.row_case import case_of
from torchgauge.results.triage.clusters import ClusterKey, grouped, title_of
from torchgauge.results.triage.reading import Failures, RunMark, Wanted, read_failures
from torchgauge.suites.expectations import expectation_for

FAILING = tuple(status for status in Status if status in ATTEMPTED and status is not Status.PASS)
"""Statuses that say something against a model; ``unsupported`` and ``skipped`` when they are asked for."""


class Change(str, Enum):
    """What became of a cluster since the baseline."""

    NEW = "new"
    RETURNED = "returned"
    GROWN = "grown"
    SHRUNK = "shrunk"
    SAME = "same"
    GONE = "gone"


@dataclass(frozen=True)
class Example:
    """The case that shows a cluster soonest; ``duration_s`` in seconds, ``parameters`` where known."""

    case_id: str
    command: str
    duration_s: float
    parameters: int | None = None


@dataclass(frozen=True)
class Known:
    """What data files say of cases of a cluster: status and cause, why, and where to read on."""

    status: str
    cause: str
    reason: str
    link: str
    cases: int


@dataclass(frozen=True)
class Cluster:
    """Cases that fail alike, each by its newest row; a cluster that is gone has none, and an old example.

    ``places`` is the number of pairs of model and device. ``statuses`` and ``unexpected`` count cases, and
    ``lost`` those that are skipped or unsupported now and passed before.
    ``first_seen`` and ``last_seen`` are the runs of the first and the last row of the cluster that the stores
    hold. ``arrived`` are cases that were not in it at the baseline, ``left`` those that were and are not;
    ``left_as`` counts the latter by their status now.
    """

    id: str
    kind: str
    title: str
    error_type: str
    where: str
    missing_op: str
    statuses: tuple[tuple[str, int], ...]
    cases: tuple[str, ...]
    models: tuple[str, ...]
    devices: tuple[str, ...]
    configurations: tuple[str, ...]
    places: int
    unexpected: int
    known: tuple[Known, ...]
    example: Example
    first_seen: RunMark
    last_seen: RunMark
    change: Change
    arrived: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    left_as: tuple[tuple[str, int], ...] = ()
    lost: int = 0


@dataclass(frozen=True)
class Triage:
    """Clusters that are there, largest first, and those that are gone since ``since`` (None: no baseline).

    ``measured`` is the number of cases with a row that says something, ``skipped`` counts those that are
    skipped by cause. ``latest`` is the newest run.
    """

    clusters: tuple[Cluster, ...]
    gone: tuple[Cluster, ...]
    measured: int
    latest: RunMark
    since: RunMark | None
    skipped: tuple[tuple[str, int], ...] = ()
    notes: tuple[str, ...] = ()
    gaps: tuple[str, ...] = ()

    @property
    def failing(self) -> int:
        """The number of cases in all clusters."""
        return sum(len(cluster.cases) for cluster in self.clusters)


def triage(
    paths: Sequence[str],
    wanted: Wanted,
    since: str | float | None = None,
    *,
    unexpected: bool = False,
) -> Triage:
    """The clusters of the stores at ``paths``; ``unexpected`` leaves out those that data files expect whole.

    ``since`` and what is raised are those of :func:`read_failures`.
    """
    found = read_failures(paths, wanted, since)
    now = grouped(found.now.values(), _itself)
    before = grouped(found.before.values(), _itself)
    clusters = [_cluster(key, rows, before.get(key, ()), found) for key, rows in now.items()]
    gone = [_cluster(key, (), rows, found) for key, rows in before.items() if key not in now]
    return Triage(
        clusters=tuple(
            sorted((each for each in clusters if each.unexpected or not unexpected), key=_largest_first)
        ),
        gone=tuple(sorted(gone, key=lambda cluster: (-len(cluster.left), cluster.title, cluster.id))),
        measured=len(found.endings),
        latest=found.runs[-1],
        since=found.since,
        skipped=_counted(found.skipped),
        notes=found.notes,
        gaps=found.gaps,
    )


def example_of(rows: Iterable[Row]) -> Example:
    """The case of ``rows`` to look at: not flaky, soonest over, smallest."""

    def cost(row: Row) -> tuple[bool, float, float, str]:
        size = math.inf if row["parameters"] is None else float(row["parameters"])
        return Modifier.FLAKY.value in (row["modifiers"] or ()), row["duration_s"], size, row["case_id"]

    row = min(rows, key=cost)
    return Example(row["case_id"], command_of(row), row["duration_s"], row["parameters"])


def command_of(row: Row) -> str:
    """The row's command where it is plain words that repeat a case; else one that is made from the case's id.

    Why: rows come from other people's machines too, and a person pastes this into a shell.
    """
    recorded = row["reproduce"] or ""
    try:
        words = shlex.split(recorded)
    except ValueError:
        words = []
    harmless = recorded.isprintable() and shlex.join(words) == recorded
    if harmless and words[:2] == ["torchgauge", "repro"]:
        return recorded
    return shlex.join(["torchgauge", "repro", row["case_id"]])


def _itself(row: Row) -> Row:
    return row


def _cluster(
    key: ClusterKey,
    now: Sequence[Row],
    before: Sequence[Row],
    found: Failures,
) -> Cluster:
    rows = now or before
    here = {row["case_key"]: row["case_id"] for row in now}
    there = {row["case_key"]: row["case_id"] for row in before}
    arrived = tuple(sorted(name for case, name in here.items() if case not in there))
    left = {case: name for case, name in there.items() if case not in here}
    lost = sum(row["case_key"] in found.lost for row in now)
    places = {(row["suite"], row["model"], row["target"]) for row in rows}
    example = example_of(rows)
    shown = next(row for row in rows if row["case_id"] == example.case_id)
    return Cluster(
        id=key.id,
        kind=key.kind,
        title=title_of(shown, key),
        error_type=shown["error_type"] or "",
        where=shown["error_frame"] or "",
        missing_op=key.parts[0] if key.kind == "operator" else "",
        statuses=_counted(row["status"] for row in now),
        cases=tuple(sorted(here.values())),
        models=tuple(sorted({f"{row['suite']}/{row['model']}" for row in rows})),
        devices=tuple(sorted({row["target"] for row in rows})),
        configurations=tuple(sorted({row["configuration"] for row in rows})),
        places=len(places),
        unexpected=lost + sum(bool(row["unexpected"]) for row in now),
        known=_known(rows),
        example=example,
        first_seen=found.ever[key].first,
        last_seen=found.ever[key].last,
        change=_change(bool(now), bool(before), bool(arrived), bool(left), found.ever[key].in_baseline),
        arrived=arrived,
        left=tuple(sorted(left.values())),
        left_as=_counted(found.endings[case] for case in left),
        lost=lost,
    )


def _change(now: bool, before: bool, arrived: bool, left: bool, had: bool) -> Change:
    if not now:
        return Change.GONE
    if not before:
        return Change.RETURNED if had else Change.NEW
    if arrived:
        return Change.GROWN
    return Change.SHRUNK if left else Change.SAME


def _known(rows: Iterable[Row]) -> tuple[Known, ...]:
    counts: Counter[tuple[str, str, str, str]] = Counter()
    for row in rows:
        expectation = expectation_for(case_of(row))
        if expectation is not None:
            key = expectation.status.value, expectation.cause, expectation.reason, expectation.link
            counts[key] += 1
    return tuple(Known(*key, number) for key, number in counts.most_common())


def _counted(words: Iterable[str]) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(Counter(words).items(), key=lambda item: (-item[1], item[0])))


def _largest_first(cluster: Cluster) -> tuple[int, int, str, str]:
    return -cluster.places, -len(cluster.cases), cluster.title, cluster.id
