"""For every case of a store: the run that holds its newest row, and the last row that says something."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from torchgauge.dashboard.arrow_columns import Bits, Integers
from torchgauge.dashboard.history import STATUSES
from torchgauge.dashboard.run_rows import Rows
from torchgauge.records import INCOMPLETE
from torchgauge.results.latest import last_of

NONE = -1
"""Stands for a run where there is none."""

_SAYS_NOTHING = np.array([status in INCOMPLETE for status in STATUSES])


@dataclass(frozen=True)
class NewestRows:
    """By index of the case: rank of a run, and when the case started there, in microseconds."""

    run: Integers
    when: Integers
    known_run: Integers

    @classmethod
    def of(cls, rows: Rows, cases: int) -> NewestRows:
        """Those of ``rows``; ``cases`` is the number of cases."""
        run, when = _newest(rows, cases)
        return cls(run, when, _newest(rows.take(np.flatnonzero(says_something(rows))), cases)[0])


def says_something(rows: Rows) -> Bits:
    """Which rows say something of their case: all but ``infra`` and ``not_run``."""
    found: Bits = ~_SAYS_NOTHING[rows.status]
    return found


def _newest(rows: Rows, cases: int) -> tuple[Integers, Integers]:
    run, when = np.full(cases, NONE, np.int64), np.full(cases, NONE, np.int64)
    places = last_of([rows.case], [rows.run, rows.when])
    run[rows.case[places]], when[rows.case[places]] = rows.run[places], rows.when[places]
    return run, when
