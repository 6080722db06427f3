"""For every case of a store: the run that holds its newest row, and the last row that says something."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from torchgauge.dashboard.arrow_columns import Bits, Integers
from torchgauge.dashboard.history import STATUSES
from torchgauge.dashboard.run_rows import Rows
from torchgauge.records import INCOMPLETE

NONE = -1
"""Stands for a run where there is none."""

_SAYS_NOTHING = np.array([status in INCOMPLETE for status in STATUSES])


@dataclass(frozen=True)
class NewestRows:
    """By index of the case: rank of a run, and when the case started there, in microseconds."""

    run: Integers
    when: Integers
    known_run: Integers
    known_when: Integers

    def updated(self, rows: Rows, cases: int) -> NewestRows:
        """With later ``rows``; ``cases`` is the number of cases by now."""
        grown = self._grown(cases)
        run, when = _fold(grown.run, grown.when, rows, np.ones(len(rows), np.bool_))
        known_run, known_when = _fold(grown.known_run, grown.known_when, rows, says_something(rows))
        return NewestRows(run, when, known_run, known_when)

    def _grown(self, cases: int) -> NewestRows:
        more = np.full(cases - len(self.run), NONE, np.int64)
        parts = (self.run, self.when, self.known_run, self.known_when)
        return NewestRows(*(np.concatenate([part, more]) for part in parts))


def nothing_seen() -> NewestRows:
    """Of no case."""
    none = np.zeros(0, np.int64)
    return NewestRows(none, none, none, none)


def says_something(rows: Rows) -> Bits:
    """Which rows say something of their case: all but ``infra`` and ``not_run``."""
    found: Bits = ~_SAYS_NOTHING[rows.status]
    return found


def _fold(run: Integers, when: Integers, rows: Rows, counts: Bits) -> tuple[Integers, Integers]:
    """The later of what is known and ``rows``, by start and then by rank of the run."""
    here = np.flatnonzero(counts)
    order = here[np.lexsort((rows.run[here], rows.when[here], rows.case[here]))]
    last = np.append(np.diff(rows.case[order]) != 0, True) if len(order) else np.zeros(0, np.bool_)
    chosen = order[last]
    case, later_when, later_run = rows.case[chosen], rows.when[chosen], rows.run[chosen]
    newer = (run[case] == NONE) | (later_when > when[case])
    newer |= (later_when == when[case]) & (later_run > run[case])
    run, when = run.copy(), when.copy()
    run[case[newer]], when[case[newer]] = later_run[newer], later_when[newer]
    return run, when
