"""A night: one UTC day of the time axis, and what it changed against all that was known before it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from torchgauge.dashboard.arrow_columns import Bits, Integers
from torchgauge.dashboard.history import History
from torchgauge.dashboard.names import CaseName


@dataclass(frozen=True)
class Night:
    """One UTC day: the snapshots from ``first`` up to ``stop`` of ``history``; there is at least one."""

    history: History
    first: int
    stop: int

    @property
    def date(self) -> str:
        """The day, such as 2026-01-01."""
        return self.history.snapshots[self.first].date

    @property
    def torch(self) -> tuple[str, ...]:
        """The versions of torch that were measured, as far as they are known."""
        builds = (snapshot.build for snapshot in self.history.snapshots[self.first : self.stop])
        return tuple(dict.fromkeys(build.version for build in builds if build.version))

    @property
    def runs(self) -> frozenset[str]:
        """The runs of the night."""
        return frozenset(run for each in self.history.snapshots[self.first : self.stop] for run in each.runs)

    @property
    def before(self) -> Night | None:
        """The night before this one; None where the stretch has none."""
        return night_until(self.history, self.first)

    @property
    def cases(self) -> tuple[CaseName, ...]:
        """The cases of which the night says something."""
        said = self.history.said[:, self.first : self.stop].any(axis=1)
        return tuple(self.history.cases[row] for row in np.flatnonzero(said).tolist())

    def moved(self, case_keys: Iterable[str]) -> tuple[int, int]:
        """Cases that pass since the night and did not before, and the other way round.

        A case of which nothing was known before it is in neither number.
        """
        rows = self._rows(case_keys)
        (known, now), (before, then) = (self._standing(rows, stop) for stop in (self.stop, self.first))
        both = known & before
        return int((both & now & ~then).sum()), int((both & ~now & then).sum())

    def _rows(self, case_keys: Iterable[str]) -> Integers:
        places = (self.history.number_of(key) for key in case_keys)
        return np.array([place for place in places if place is not None], np.int64)

    def _standing(self, rows: Integers, stop: int) -> tuple[Bits, Bits]:
        """Whether anything is known of each case before ``stop``, and whether it passed when last known."""
        said = self.history.said[rows, :stop]
        place = np.where(said, np.arange(stop), -1).max(axis=1, initial=-1)
        return place >= 0, self.history.counted[rows, place]


def night_until(history: History, stop: int) -> Night | None:
    """The last night of ``history`` before the snapshot numbered ``stop``; None where there is none."""
    if not stop:
        return None
    dates = [snapshot.date for snapshot in history.snapshots]
    return Night(history, dates.index(dates[stop - 1]), stop)


def newest_night(history: History) -> Night | None:
    """The newest night; None for a stretch without a snapshot."""
    return night_until(history, len(history.snapshots))
