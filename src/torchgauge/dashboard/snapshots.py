"""The time axis: one snapshot per UTC day and torch build, sixty-four of them to an epoch.

Files of closed epochs are the same night after night, so that browsers keep them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from torchgauge.clock import utc
from torchgauge.results.hostile_text import slug

EPOCH_LENGTH = 64
"""Snapshots of one epoch."""

_COMMIT = re.compile(r"[0-9a-fA-F]{8,64}")


@dataclass(frozen=True)
class TorchBuild:
    """A build of torch, as far as an environment names it."""

    version: str = ""
    commit: str = ""

    @property
    def slug(self) -> str:
        """The build in an id of a snapshot."""
        if _COMMIT.fullmatch(self.commit):
            return self.commit[:10].lower()
        return slug(self.version) if self.version else "unknown"


@dataclass(frozen=True)
class Snapshot:
    """One point of the time axis; ``number`` counts from 0, ``runs`` are in order of their creation."""

    id: str
    number: int
    date: str
    build: TorchBuild
    runs: tuple[str, ...]

    @property
    def epoch(self) -> int:
        """The epoch that the snapshot belongs to."""
        return self.number // EPOCH_LENGTH


@dataclass(frozen=True)
class DatedRun:
    """A published run on the time axis; ``created_at`` is in seconds since the epoch, UTC."""

    run_id: str
    created_at: float
    build: TorchBuild

    @property
    def date(self) -> str:
        """The UTC day."""
        return f"{utc(self.created_at):%Y-%m-%d}"

    @property
    def snapshot(self) -> str:
        """The id of the run's snapshot."""
        return f"{self.date}-{self.build.slug}"


def snapshots_of(runs: Sequence[DatedRun]) -> tuple[Snapshot, ...]:
    """The snapshots of ``runs``, which are in order of creation; in order of their first run."""
    members: dict[str, list[DatedRun]] = {}
    for run in runs:
        members.setdefault(run.snapshot, []).append(run)
    return tuple(
        Snapshot(name, number, found[0].date, found[0].build, tuple(run.run_id for run in found))
        for number, (name, found) in enumerate(members.items())
    )


def dated_run(run_id: str, created_at: float, build: TorchBuild, before: Sequence[DatedRun]) -> DatedRun:
    """The run after ``before`` on the axis.

    A run of which no environment was kept has no build of its own: it joins the run before it where that is
    of the same day, since a point that looks newer and holds nothing would hide the one that does. Only what
    came before counts, so that later runs change nothing.
    """
    run = DatedRun(run_id, created_at, build)
    if build == TorchBuild() and before and before[-1].date == run.date:
        return DatedRun(run_id, created_at, before[-1].build)
    return run


def by_epoch(snapshots: Sequence[Snapshot]) -> Mapping[int, tuple[Snapshot, ...]]:
    """The snapshots of every epoch, in order."""
    found: dict[int, list[Snapshot]] = {}
    for snapshot in snapshots:
        found.setdefault(snapshot.epoch, []).append(snapshot)
    return {epoch: tuple(members) for epoch, members in found.items()}
