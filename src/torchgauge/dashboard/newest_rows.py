"""For every case of a store: the run that holds its newest row, and the last row that says something."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from torchgauge.dashboard.arrow_columns import Bits, Integers
from torchgauge.dashboard.case_index import CaseIndex
from torchgauge.dashboard.history import STATUSES
from torchgauge.dashboard.run_rows import Rows
from torchgauge.records import INCOMPLETE
from torchgauge.results.latest import last_of

NONE = -1
"""Stands for a run where there is none."""

_SAYS_NOTHING = np.array([status in INCOMPLETE for status in STATUSES])


@dataclass(frozen=True)
class NewestRows:
    """By index of the case: rank of a run, and when the case started there, in microseconds.

    ``lost`` says where the newest row is of a run that says nothing of any case of its device; for these
    ``heard_run`` holds the newest row that is of none.
    """

    run: Integers
    when: Integers
    known_run: Integers
    heard_run: Integers
    lost: Bits

    @classmethod
    def of(cls, rows: Rows, case_index: CaseIndex) -> NewestRows:
        """Those of ``rows``, whose cases are all in ``case_index``."""
        cases, says = len(case_index), says_something(rows)
        run, when = np.full(cases, NONE, np.int64), np.full(cases, NONE, np.int64)
        known_run, heard_run, lost = run.copy(), run.copy(), np.zeros(cases, np.bool_)
        newest, known = _newest(rows), np.flatnonzero(says)
        run[rows.case[newest]], when[rows.case[newest]] = rows.run[newest], rows.when[newest]
        known = known[_newest(rows.take(known))]
        known_run[rows.case[known]] = rows.run[known]
        silent = _lost(rows, says, case_index)
        lost[rows.case[newest]] = silent[newest]
        heard = np.flatnonzero(~silent & lost[rows.case])
        heard = heard[_newest(rows.take(heard))]
        heard_run[rows.case[heard]] = rows.run[heard]
        return cls(run, when, known_run, heard_run, lost)


def says_something(rows: Rows) -> Bits:
    """Which rows say something of their case: all but ``infra`` and ``not_run``."""
    found: Bits = ~_SAYS_NOTHING[rows.status]
    return found


def _newest(rows: Rows) -> Integers:
    """The place of the newest row of every case."""
    return last_of([rows.case], [rows.run, rows.when])


def _lost(rows: Rows, says: Bits, case_index: CaseIndex) -> Bits:
    """Which rows are of a run and a device of which no row says anything: its runner died."""
    names, device = np.unique([case.device for case in case_index], return_inverse=True)
    if not len(rows):
        return says
    night = rows.run * len(names) + device[rows.case]
    told = np.zeros(int(night.max()) + 1, np.bool_)
    told[night[says]] = True
    found: Bits = ~told[night]
    return found
