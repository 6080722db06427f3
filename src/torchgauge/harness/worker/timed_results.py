"""Results of timed steps, compared with the result that was judged before timing.

All timed steps of a case have the same inputs. Code that is wrong in every seventh call, or from the
hundredth call on, can pass a check before timing and one after it. So torchgauge compares the results of
the first steps one by one before timing. Between blocks, it compares the result of one random step.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from statistics import median
from typing import TYPE_CHECKING, Any

from torchgauge.harness.worker.other_inputs import gain_of_repetition, gains
from torchgauge.harness.worker.verdicts import WrongResultError
from torchgauge.records import Cause, Scalar
from torchgauge.suites.outputs import Observation, to_host
from torchgauge.suites.torchbench.step_state import near

if TYPE_CHECKING:
    from torchgauge.harness.worker.case_state import CaseState
    from torchgauge.harness.worker.series import Series
    from torchgauge.harness.worker.torch_checks import TorchChecks

SHARE = 0.03
"""Largest share of the sampled time that comparisons may take; the first one always takes place."""
FIRST_STEPS = 100
"""Maximum number of steps that are compared one by one before warm-up, within :data:`SHARE`."""
LEAST_S = 0.1
"""Seconds of CPU time that these first steps may always take."""
LATE = 10.0
"""Seconds of wall time that count as one second of CPU time: steps may wait for a device."""
MIDDLE = 6
"""Number of blocks before the first whole check, if timed steps have no result to compare."""


class TimedResults:
    """Judges the results of timed steps of one case, and raises :class:`WrongResultError` for a wrong one."""

    def __init__(self, checks: TorchChecks, state: CaseState) -> None:
        self._checks, self._state = checks, state
        self._right: Observation = {}
        self._blocks, self._sampled_s, self._spent_s = 0, 0.0, 0.0
        self.compared = 0
        self._gain: float | None = None

    def first_steps(self, step: Callable[[], Any], budget_s: float) -> None:
        """Run up to :data:`FIRST_STEPS` steps and compare the result of each."""
        limit_s = max(LEAST_S, SHARE * budget_s)
        self._checks.restore(whole=True)
        cpu_end, wall_end = time.process_time() + limit_s, time.perf_counter() + LATE * limit_s
        for number in range(FIRST_STEPS):
            if time.process_time() > cpu_end or time.perf_counter() > wall_end:
                return
            returned = step()
            self._refuse_computed(returned)
            shown = self._checks.timed_result(self._state, returned)
            if shown is None or self._compare(shown, number, number + 1, exact=True):
                return

    def judge(self, returned: Any, number: int, steps: int, block_s: float) -> None:
        """Compare the result of step ``number`` of a block, unless comparisons have used up their time."""
        self._blocks, self._sampled_s = self._blocks + 1, self._sampled_s + block_s
        if self._spent_s > SHARE * self._sampled_s:
            return
        began = time.perf_counter()
        self._refuse_computed(returned)
        shown = self._checks.timed_result(self._state, returned, whole=True)
        if shown is not None:
            self._compare(shown, number, steps)
        elif self._blocks >= MIDDLE:
            self._refuse(self._checks.again(self._state))
            self.compared += 1
        if self._blocks > 1:  # in the first block, eager repeats the steps of a program with state
            self._spent_s += time.perf_counter() - began

    def repeat(self, series: Series, budget_s: float) -> None:
        """Compare step times with new and with repeated inputs; skip a model that refuses new values."""
        checks = self._checks
        assert checks.observer is not None
        eager = checks.step(checks.subject.module)
        remembers = False
        with checks.observer.new_inputs() as inputs, suppress(Exception):  # no model need take other values
            measured = partial(gains, inputs, checks.session, itertools.count(1))
            self._gain, remembers = gain_of_repetition(
                series.step, measured, eager, median(series.wall), budget_s
            )
        if remembers:
            why = f"a step takes {self._gain:.3g} times as long with new inputs"
            self._refuse((Cause.TOLERANCE, f"answers from memory: {why}"))

    def facts(self) -> dict[str, Scalar]:
        """Return the number of compared results, and the rate of wrong steps that they exclude at 95 %.

        By the rule of three: of steps that are wrong with probability p, n are right with probability
        (1 - p)^n, which is 5 % for p = 3 / n.
        """
        rate = {"fault_rate_below": round(min(1.0, 3.0 / self.compared), 4)} if self.compared else {}
        gain = {} if self._gain is None else {"new_over_repeated_inputs": round(self._gain, 4)}
        return {"timed_results": self.compared, **rate, **gain}

    def _compare(self, shown: Observation, number: int, steps: int, *, exact: bool = False) -> bool:
        """Judge ``shown`` unless it equals the last right result; return whether eager repeated the steps.

        A result that differs from eager's first one may be right, because a model's results may change from
        step to step. So eager repeats the steps from the restored state. If steps that are not ``exact`` have
        moved a parameter for the first time, the state is restored and the result is not judged.
        """
        if _equal(self._right, shown):
            self.compared += 1
            return False
        checks, state = self._checks, self._state
        shown = {path: to_host(leaf) for path, leaf in shown.items()}
        moved = not exact and checks.moved()  # before eager runs again with other rounding
        problem = checks.unequal(state, shown)
        if problem is not None and moved:
            checks.steep = True
            checks.restore(whole=True)
            return False
        self.compared += 1
        if repeats := problem is not None:
            problem = checks.unequal(state, shown, checks.replayed(state, number, steps, whole=not exact))
            self._refuse(problem and (problem[0], f"{problem[1]} (step {number + 1} of {steps})"))
        self._right = shown
        return repeats

    def _refuse_computed(self, returned: Any) -> None:
        """Raise :class:`WrongResultError` for a lazy result, unless eager's is lazy too."""
        part = self._checks.left_to_compute(returned)
        self._refuse((Cause.CONTRACT, part) if part else None)

    def _refuse(self, problem: tuple[Cause, str] | None) -> None:
        """Raise :class:`WrongResultError` for a problem, after putting back what the steps changed."""
        if problem is not None:
            self._checks.restore(whole=True)
            raise WrongResultError(problem[0], f"right before timing, wrong while timed: {problem[1]}")


def _equal(one: Observation, other: Observation) -> bool:
    return one.keys() == other.keys() and all(near(value, other[path]) for path, value in one.items())
