"""The clocks of one group: held against each other before, during and after what is timed by them.

Processes that step together find together: what one of them sees ends the cases of all, since the others
would wait for it in the next step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial

from torchgauge.devices.clock_check import (
    Closer,
    applies,
    closed,
    in_time,
    refuse_early_end,
    refuse_wrong_events,
    told,
)
from torchgauge.devices.session import DeviceSession
from torchgauge.errors import ClockContradictionError
from torchgauge.harness.worker.ranks import RANKS
from torchgauge.harness.worker.series import Series
from torchgauge.records import METRICS, Cause, Measurement, Outcome

UNKNOWN = "clock_unknown"
"""The fact that says why the clocks could not be held against each other with known work."""
ELSEWHERE = "another process of the group found that the clocks of its device contradict each other"
_TIMES = frozenset({"s", "1/s", "B/s", "FLOP/s"})


class ClockWatch:
    """The clocks of ``session``; every method raises :class:`ClockContradictionError` where they disagree."""

    def __init__(self, session: DeviceSession) -> None:
        self._session = session

    def closer(self) -> Closer | None:
        """What closes blocks of a series; None where host and device are one."""
        return Closer(self._session) if applies(self._session) else None

    def begin(self) -> str:
        """Let the device do known work; why that tells nothing, "" where it does."""
        contradicted, unknown = told(self._session)
        _together(lambda: _refuse(contradicted))
        return unknown

    def close(self, series: Series) -> None:
        """Run one block of ``series`` that is no sample, and wait for what it computes.

        A long one is not repeated where the one before it was closed, and the device was in time.
        """
        closer = series.closer
        if closer is None or _in_time(series):
            return

        def block() -> tuple[float, float]:
            wall, late = RANKS.slowest(*closed(series.step, self._session, closer, series.inner))
            return wall or 0.0, late or 0.0

        with series.running():
            _together(lambda: refuse_early_end(block))

    def judge(self, all_series: Iterable[Series]) -> None:
        """Hold what the rounds of ``all_series`` showed against what can be."""
        for series in all_series:
            if series.failed is None and series.closer is not None:
                _together(partial(refuse_wrong_events, series.spans))
                self.close(series)


def _in_time(series: Series) -> bool:
    """Whether the last block of ``series`` was closed, and the device was in time."""
    if not series.late:
        return False
    wall, late = RANKS.slowest(*series.late[-1])
    return in_time(wall or 0.0, late or 0.0)


def _refuse(found: str) -> None:
    if found:
        raise ClockContradictionError(found)


def _together(check: Callable[[], None]) -> None:
    found = ""
    try:
        check()
    except ClockContradictionError as error:
        found = error.message
    _, anybody = RANKS.slowest(0.0, 1.0 if found else 0.0)
    if anybody:
        raise ClockContradictionError(found or ELSEWHERE)


def without_times(outcome: Outcome) -> Outcome:
    """``outcome`` without anything that was read from clocks, where those contradict each other."""
    if outcome.cause is not Cause.CLOCK_CONTRADICTION:
        return outcome
    return replace(outcome, measurements=_untimed(outcome.measurements))


def _untimed(measurements: Sequence[Measurement]) -> tuple[Measurement, ...]:
    def timed(each: Measurement) -> bool:
        metric = METRICS.get(each.metric)
        return each.unit in _TIMES or metric is None or metric.of_a_step

    return tuple(each for each in measurements if not timed(each))
