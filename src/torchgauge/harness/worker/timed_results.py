"""Results of timed steps, compared with the result that was judged before timing.

All timed steps of a case have the same inputs. Code that is wrong in every seventh call, or from the
hundredth call on, can pass a check before timing and one after it. So torchgauge compares the results of
the first steps one by one before timing. Between blocks, it compares the result of one random step.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from statistics import median
from typing import TYPE_CHECKING, Any

from torchgauge.harness.scenarios.scenario import EarlierSteps
from torchgauge.harness.worker.contract import HELD
from torchgauge.harness.worker.memory import tensor_bytes
from torchgauge.harness.worker.other_inputs import Repetition
from torchgauge.harness.worker.timing import time_block
from torchgauge.harness.worker.verdicts import WrongResultError
from torchgauge.records import Cause, Scalar
from torchgauge.suites.outputs import Observation, to_host
from torchgauge.suites.torchbench.step_state import near

if TYPE_CHECKING:
    from torchgauge.harness.worker.case_state import CaseState
    from torchgauge.harness.worker.contract import Recorded
    from torchgauge.harness.worker.series import Series
    from torchgauge.harness.worker.torch_checks import TorchChecks

SHARE, FIRST_SHARE = 0.03, 0.1
"""Largest share of the sampled time that comparisons may take, and that of the first :data:`ENOUGH`."""
ENOUGH = 30
"""Number of results of random steps that exclude wrong results in one step of ten."""
FIRST_STEPS = 100
"""Maximum number of steps that are compared one by one before warm-up, within :data:`SHARE`."""
KEPT = 64 << 20
"""Maximum bytes of kept results of compiled steps."""
LEAST_S = 0.1
"""Seconds of CPU time that these first steps may always take."""
UPSTREAM_STEPS, UPSTREAM_S = 300, 8.0
"""Maximum number of the first steps that are observed if upstream steps its model, and the seconds of CPU
time that observations may always take; eager's runs with other rounding may take as many.
"""
UNRESTORED = frozenset({1, 2, 3, 6, 19, 83})
"""Numbers, from 0, of the steps of upstream's own before which the state is not restored: restoring may make
compiled code read a weight again that it has cached.
"""
LATE = 10.0
"""Seconds of wall time that count as one second of CPU time: steps may wait for a device."""
FURTHER, CALM, FURTHER_S = 16, 4, 30.0
"""Maximum number of further steps of a program whose first ones compile, number of steps without compilation
that end them, and their maximum wall time. Dynamo gives up after 8 compilations by default.
"""
MIDDLE = 6
"""Number of blocks before the first whole check, if timed steps have no result to compare."""


class Limit:
    """A limit of CPU time in ``seconds``, and of wall time in :data:`LATE` times as many.

    Up to ``seconds`` of the CPU time that ``uncounted_s`` returns do not count.
    """

    def __init__(self, seconds: float, uncounted_s: Callable[[], float] = float) -> None:
        self.seconds, self._uncounted_s = seconds, uncounted_s
        self._cpu_end, self._wall_end = time.process_time() + seconds, time.perf_counter() + LATE * seconds
        self._uncounted_before = uncounted_s()

    @property
    def rest_s(self) -> float:
        """Return the seconds of CPU time that are left."""
        uncounted_s = min(self.seconds, self._uncounted_s() - self._uncounted_before)
        return self._cpu_end + uncounted_s - time.process_time()

    @property
    def reached(self) -> bool:
        """Return whether one of the limits is reached."""
        return self.rest_s < 0.0 or time.perf_counter() > self._wall_end


class TimedResults:
    """Judges the results of timed steps of one case, and raises :class:`WrongResultError` for a wrong one."""

    def __init__(self, checks: TorchChecks, state: CaseState) -> None:
        self._checks, self._state = checks, state
        self._right: Observation = {}
        self._blocks, self._sampled_s, self._spent_s = 0, 0.0, 0.0
        self.compared = self.random = 0
        self._gain: float | None = None
        self._observes = False
        self._earlier = EarlierSteps(0)

    def first_steps(self, step: Callable[[], Any], note: Callable[[], Any], budget_s: float) -> None:
        """Run up to :data:`FIRST_STEPS` steps, call ``note`` before each, and compare the result of each.

        The contracts of the first :data:`HELD` are not compared: results are held for it, as by a leak. If
        these steps compile, further ones follow: a program that is compiled anew for each value of a counter
        reaches the compiler's limit, but not in the steps of a block, before which the counter is restored.
        If compiled steps return no comparable result, each is replaced by an observation.
        """
        before = _compilations()
        count = self._compare_first_steps(step, note, budget_s)
        further = FURTHER if _compilations() > before else 0
        end, calm = time.perf_counter() + FURTHER_S, 0
        for number in range(count, count + further):
            before = _compilations()
            if self._observes:
                self._observe(number)
            else:
                step()
            calm = 0 if _compilations() > before else calm + 1
            if calm == CALM or time.perf_counter() > end:
                break
        self._earlier = EarlierSteps(0)

    def _compare_first_steps(self, step: Callable[[], Any], note: Callable[[], Any], budget_s: float) -> int:
        """Return the number of the next step."""
        checks, before = self._checks, _compilations()
        checks.restore(whole=True)
        recorded = checks.recording(self._state)
        compiled = self._state.planned.case.configuration.compiled
        self._observes = compiled and not checks.has_results(self._state)
        upstream = self._observes and not checks.built.wrappable
        seconds = max(UPSTREAM_S if upstream else LEAST_S, SHARE * budget_s)
        start = partial(Limit, seconds, lambda: checks.rounding_s)
        limit = start()
        for number in range(UPSTREAM_STEPS if upstream else FIRST_STEPS):
            if number == 1 and (self._observes or _compilations() > before):  # compiling takes none of it
                limit = start()
            if limit.reached:
                return number
            if self._observes:
                self._observe(number)
                if upstream and number and self._earlier.end is None:  # there is no state to go on from
                    return number + 1
                continue
            note()
            returned = step()
            self._refuse_computed(returned)
            shown = checks.timed_result(self._state, returned)
            if shown is None:
                return 1
            if self._compare(shown, number, number + 1, exact=True) or (
                number >= HELD and self._compare_contract(recorded, returned, number)
            ):
                return max(number + 1, self._compare_with_eager(step, note, Limit(limit.rest_s / 4.0)))
        return number + 1

    def _compare_with_eager(self, step: Callable[[], Any], note: Callable[[], Any], limit: Limit) -> int:
        """Compare results that change from step to step with eager's, and the state left by the last.

        Return the number of steps. Compiled steps begin again from the first state, up to the ``limit``.
        Eager then takes as many.
        """
        checks, state, found, size = self._checks, self._state, list[Observation](), 0
        checks.restore(whole=True)
        while not found or (len(found) < FIRST_STEPS and size < KEPT and not limit.reached):
            note()
            found.append(copied(checks.timed_result(state, step()) or {}))
            size += tensor_bytes(found[-1])
        found[-1] |= checks.left_by(state)
        checks.restore(whole=True)
        eager, show = checks.step(checks.subject.module), checks.scenario.timed_result
        expected = [copied(show(checks.subject, eager())) for _ in found]
        expected[-1] |= checks.left_by(state)
        checks.restore(whole=True)
        count = len(found)
        for number, pair in enumerate(zip(found, expected, strict=True), 1):
            again = partial(checks.replayed, state, number - 1, number, whole=number == count)
            self._judge_replayed(*pair, again, f"step {number} of {count}")
        self.compared += count
        return count

    def _observe(self, number: int) -> None:
        """Judge an observation, of step ``number`` if upstream steps its TorchBench model."""
        last = self._earlier
        start = last.end if last.count + 1 == number and number not in UNRESTORED else None
        self._earlier = EarlierSteps(number, start, keeps_end=True)
        self._refuse(self._checks.again(self._state, self._earlier))
        self.compared += 1

    def judge(self, returned: Any, number: int, steps: int, block_s: float) -> None:
        """Compare the result of step ``number`` of a block, unless comparisons have used up their time."""
        self._blocks, self._sampled_s = self._blocks + 1, self._sampled_s + block_s
        share = SHARE if self.random >= ENOUGH else FIRST_SHARE
        if self._spent_s > share * self._sampled_s:
            return
        began, checks = time.perf_counter(), self._checks
        self._refuse_computed(returned)
        shown = checks.timed_result(self._state, returned, whole=True)
        if shown is not None:
            before = self.compared
            self._compare(shown, number, steps)
            self.random += self.compared - before
            self._compare_contract(checks.recording(self._state), returned, number)
        elif self._blocks >= MIDDLE:
            self._refuse(checks.next_step(self._state, steps * self._blocks))
            self.compared += 1
            self.random += checks.can_go_on(self._state)
        if self._blocks > 1:  # in the first block, eager repeats the steps of a program with state
            self._spent_s += time.perf_counter() - began

    def repeat(self, series: Series, budget_s: float) -> None:
        """Compare step times with new and with repeated inputs; skip a model that refuses new values."""
        checks, state = self._checks, self._state
        assert checks.observer is not None
        eager = checks.step(checks.subject.module)
        remembers = False
        with checks.observer.new_inputs() as inputs, suppress(Exception):  # no model need take other values
            repetition = Repetition(inputs, checks.session, _compilations)
            self._gain, remembers = repetition.gain(
                series.step, eager, series.inner, median(series.wall), budget_s
            )
        if remembers:
            why = f"a step takes {self._gain:.3g} times as long with new inputs"
            checks.restore(whole=True)
            raise WrongResultError(Cause.TOLERANCE, f"answers from memory: {why}")
        if checks.others is None or checks.others.eager is None:
            return
        with checks.observer.new_inputs() as inputs, suppress(Exception):
            if checks.observer.stateful:
                series.step()
            if inputs.renew(checks.others.seed, half=True):
                returned = time_block(series.step, 1, checks.session).result
                shown = checks.of_a_step(checks.timed_result(state, returned) or {})
                checks.others.timed[state.key] = copied(shown)

    def facts(self) -> dict[str, Scalar]:
        """Return the number of compared results, and the rate of wrong steps that they exclude at 95 %.

        By the rule of three: of random steps that are wrong with probability p, n are right with probability
        (1 - p)^n, which is 5 % for p = 3 / n. The first steps are not random: they exclude a fault in every
        so many steps, and no fault that begins later.
        """
        rate = {"fault_rate_below": round(3.0 / self.random, 4)} if self.random > 3 else {}
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
        shown = copied(shown)
        moved = not exact and checks.moved()  # before eager runs again with other rounding
        problem = checks.unequal(state, shown)
        if problem is not None and moved:
            checks.steep = True
            checks.restore(whole=True)
            return False
        self.compared += 1
        if repeats := problem is not None:
            again = partial(checks.replayed, state, number, steps, whole=not exact)
            self._judge_replayed(shown, again(), again, f"step {number + 1} of {steps}")
        self._right = shown
        return repeats

    def _judge_replayed(
        self, shown: Observation, replayed: Observation, again: Callable[[], Observation], step: str
    ) -> None:
        """Judge the result ``shown`` of a ``step`` by eager's, which ``again`` computes once more."""
        problem = self._checks.unequal(self._state, shown, replayed, again)
        self._refuse(problem and (problem[0], f"{problem[1]} ({step})"))
        self._checks.note_nonfinite(self._state, replayed)

    def _refuse_computed(self, returned: Any) -> None:
        """Raise :class:`WrongResultError` for a lazy result, unless eager's is lazy too."""
        self._refuse_broken(self._checks.left_to_compute(returned))

    def _compare_contract(self, recorded: Recorded | None, returned: Any, number: int) -> bool:
        """Refuse a result that breaks eager's contract; return whether eager repeated the steps."""
        if recorded is None:
            return False
        part, repeated = self._checks.broken_while_timed(self._state, recorded, returned, number + 1)
        self._refuse_broken(f"{part} (step {number + 1})" if part else "")
        return repeated

    def _refuse_broken(self, part: str) -> None:
        """Raise :class:`WrongResultError` if a ``part`` of a result breaks eager's contract."""
        self._refuse((Cause.CONTRACT, part) if part else None)

    def _refuse(self, problem: tuple[Cause, str] | None) -> None:
        """Raise :class:`WrongResultError` for a problem, after putting back what the steps changed."""
        if problem is not None:
            self._checks.restore(whole=True)
            raise WrongResultError(problem[0], f"correct at first, wrong in a later step: {problem[1]}")


def copied(shown: Observation) -> Observation:
    """Return a copy of ``shown``: a leaf may be live state."""
    return {path: to_host(leaf) for path, leaf in shown.items()}


def _equal(one: Observation, other: Observation) -> bool:
    return one.keys() == other.keys() and all(near(value, other[path]) for path, value in one.items())


def _compilations() -> int:
    """Return how many programs dynamo has compiled in this process, or refused to compile again."""
    utils: Any = sys.modules.get("torch._dynamo.utils")
    return int(utils.counters["frames"]["total"]) if utils is not None else 0
