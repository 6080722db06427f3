"""A night: one UTC day of the time axis, and what it changed against all that was known before it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from torchgauge.clock import DAY_S
from torchgauge.dashboard.arrow_columns import Bits, Integers
from torchgauge.dashboard.history import NOTHING_PLANNED, History
from torchgauge.dashboard.names import CaseName
from torchgauge.results import units
from torchgauge.results.latest import STALE_AFTER_S

GAINS = {
    "broke": -1, "fixed": 1, "measured again": 1, "no longer measured": -1, "new and passing": 1,
    "no longer planned": -1,
}  # fmt: skip
"""How a headline changes by a case, by the kind of the case's change."""


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

    def changes(
        self, case_keys: Iterable[str], dropped: Iterable[str] = ()
    ) -> Mapping[str, tuple[CaseName, ...]]:
        """Return the cases by which a headline counts more or fewer passes after the night than before it.

        What is fixed or broke is so against the last result before the night. A case that was lost counts as
        no pass, and as one again once it is measured; where its whole device was lost, what was known before
        stands, up to the age from which it is silent. ``dropped`` are the cases that nobody plans any more.
        """
        rows = self._rows(case_keys)
        (known, now), (before, then) = (self._standing(rows, stop) for stop in (self.stop, self.first))
        (planned, shown), (earlier, was) = (self._headline(rows, stop) for stop in (self.stop, self.first))
        now, then, both = now & known, then & before, planned & earlier
        lost, found = now & ~shown, then & ~was
        gone = self._rows(dropped)
        hits = {
            "broke": rows[both & then & ~now],
            "fixed": rows[both & before & now & ~then],
            "measured again": rows[both & ((found & ~lost) | (now & ~before))],
            "no longer measured": rows[both & lost & ~found],
            "new and passing": rows[planned & ~earlier & shown],
            "no longer planned": gone[np.logical_and(*self._headline(gone, self.first))],
        }
        return {kind: tuple(self.history.cases[row] for row in hit.tolist()) for kind, hit in hits.items()}

    def _rows(self, case_keys: Iterable[str]) -> Integers:
        places = (self.history.number_of(key) for key in case_keys)
        return np.array([place for place in places if place is not None], np.int64)

    def _standing(self, rows: Integers, stop: int) -> tuple[Bits, Bits]:
        """Whether anything is known of each case before ``stop``, and whether it passed when last known."""
        return self._at_last(rows, self.history.said[rows, :stop])

    def _headline(self, rows: Integers, stop: int) -> tuple[Bits, Bits]:
        """Return where a headline counts a case as planned, and where it counts it as passed.

        A planned case that was lost does not pass if its device has other results; on a silent device none
        passes.
        """
        days = np.array([each.date for each in self.history.snapshots[:stop]], "datetime64[D]")
        devices = [self.history.cases[row].device for row in rows.tolist()]
        heard = np.array([self._heard[device][:stop] for device in devices], np.bool_)
        least = days[-1:] - np.timedelta64(int(STALE_AFTER_S / DAY_S), "D")
        fresh = {device: (days[nights[:stop]] >= least).any() for device, nights in self._heard.items()}
        planned = self.history.status[rows, :stop] != NOTHING_PLANNED
        known = self.history.said[rows, :stop] | (planned & heard.reshape(planned.shape))
        ever, passed = self._at_last(rows, known)
        return ever, passed & np.array([fresh[device] for device in devices], np.bool_)

    @cached_property
    def _heard(self) -> dict[str, Bits]:
        """Snapshots in which a device said anything, by device."""
        found: dict[str, Bits] = {}
        for row, case in enumerate(self.history.cases):
            said = self.history.said[row]
            found[case.device] = found[case.device] | said if case.device in found else said
        return found

    def _at_last(self, rows: Integers, where: Bits) -> tuple[Bits, Bits]:
        """Whether ``where`` holds of each case at any time, and whether it passed the last time."""
        place = np.where(where, np.arange(where.shape[1]), -1).max(axis=1, initial=-1)
        return place >= 0, self.history.counted[rows, place]


def night_until(history: History, stop: int) -> Night | None:
    """The last night of ``history`` before the snapshot numbered ``stop``; None where there is none."""
    if not stop:
        return None
    dates = [snapshot.date for snapshot in history.snapshots]
    return Night(history, dates.index(dates[stop - 1]), stop)


def newest_night(history: History, now: float) -> Night | None:
    """The newest night up to ``now``, in seconds since the epoch; None for a stretch without one.

    A snapshot that is dated later is of a machine whose clock is ahead: it is nobody's newest night, unless
    there is no other; then it may as well be this clock that is behind.
    """
    today = units.day(now)
    known = sum(snapshot.date <= today for snapshot in history.snapshots)
    return night_until(history, known or len(history.snapshots))
