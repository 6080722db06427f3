"""The worker's measurement of one group: build once, check every configuration, time them interleaved."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from torchgauge.counted import counted
from torchgauge.devices.session import DeviceSession
from torchgauge.errors import (
    ClockContradictionError,
    NotOfferedError,
    NotRunError,
    PluginError,
    add_note,
    note_on,
)
from torchgauge.harness.backends.backend import as_compiled, beside, compiler_of
from torchgauge.harness.backends.prepared import BackendSession, refuse_changes, restored
from torchgauge.harness.derived_series import ITEMS
from torchgauge.harness.events import GROWTH, NOBODY, EventWriter
from torchgauge.harness.job import Job
from torchgauge.harness.scenarios.own_run import Run, detailed, measured
from torchgauge.harness.scenarios.scenario import EarlierSteps, Subject, require
from torchgauge.harness.timing_lock_client import TimingLockClient
from torchgauge.harness.worker import case_measurements
from torchgauge.harness.worker.case_state import CaseState
from torchgauge.harness.worker.clock_watch import UNKNOWN, ClockWatch, without_times
from torchgauge.harness.worker.closer_look import CloserLook
from torchgauge.harness.worker.compilation import SKIPPED, SUPPRESSED, gave_up
from torchgauge.harness.worker.contention import Contention
from torchgauge.harness.worker.failure import line_in, missing_op
from torchgauge.harness.worker.libraries import import_builder, library_facts
from torchgauge.harness.worker.memory import give_back
from torchgauge.harness.worker.memory_growth import MemoryGrowth
from torchgauge.harness.worker.process_settings import compiler_settings
from torchgauge.harness.worker.ranks import RANKS
from torchgauge.harness.worker.realise import realise
from torchgauge.harness.worker.roofline import BEYOND, Peaks, attainable
from torchgauge.harness.worker.series import Series
from torchgauge.harness.worker.shared_budget import SharedBudget
from torchgauge.harness.worker.timing import measure, warm_up
from torchgauge.harness.worker.verdicts import WrongResultError, outcome_of, sound
from torchgauge.records import (
    AUTOCAST,
    Cause,
    Modifier,
    Outcome,
    Phase,
    Realised,
    Scalar,
    Status,
)
from torchgauge.suites.lacking import raised_in
from torchgauge.suites.suite import BuiltWorkload, Work

if TYPE_CHECKING:
    from torchgauge.harness.worker.python_checks import PythonChecks
    from torchgauge.harness.worker.torch_checks import TorchChecks
    from torchgauge.suites.outputs import Observation

NOT_RUN = "the configuration did not run"
OVERRIDE = "TORCH_COMPILE_OVERRIDE_BACKENDS"
"""The variable by which torch gives graphs to other back ends, to search for faults."""
HELD = 4 << 30
"""Resident bytes above which a process gives freed memory back at the beginning of each phase."""


class GroupRun:
    """One group in one process; every case gets exactly one outcome unless the process dies."""

    def __init__(
        self,
        job: Job,
        session: DeviceSession,
        events: EventWriter,
        where: Mapping[str, Scalar] | None = None,
    ) -> None:
        """``where`` says on which CPUs and threads this process runs; every row carries it."""
        if job.group is None:
            raise ValueError("a measuring job needs a group")
        self.job, self.session, self.events, self.group = job, session, events, job.group
        self.settings, self.timing_lock = job.settings, TimingLockClient(job.timing_lock, events)
        self.states = [
            CaseState(planned, i, facts=dict(where or {})) for i, planned in enumerate(job.group.cases)
        ]
        self.realised: Realised | None = None
        self.subject: Subject | None = None
        self.checks: PythonChecks | TorchChecks | None = None
        self.memory_format = self.group.cases[0].case.configuration.memory_format
        self.items_per_step = 1
        self.work: Work | None = None
        self.compiler_settings: dict[str, Any] = {}
        self.growth = MemoryGrowth(session, self._grows)
        self.closer_look, self.clocks = CloserLook(self), ClockWatch(session)

    # --- the life of the group ---------------------------------------------------------------

    def run(self) -> None:
        """Build, check, time and report."""
        self._refuse_unsupported()
        built = self._shared(Phase.BUILD, self._build)
        steps = self._shared(Phase.EAGER, lambda: self._prepare(built))
        if steps is not None:
            self._time(steps)
            self.closer_look.take(steps)
        with ExitStack() as closing:  # each is closed, whatever another one's raises
            for state in self.states:
                closing.callback(state.prepared.close)
        self.events.phase(Phase.DONE)

    def enter(self, phase: Phase, state: CaseState | None = None) -> None:
        """Say which phase ``state`` (or every unfinished case) has reached; give freed memory back."""
        give_back(HELD)
        for each in self.live if state is None else [state]:
            each.phase = phase
        self.events.phase(phase, state.key if state is not None else None)
        RANKS.enter(phase)

    @property
    def live(self) -> list[CaseState]:
        """Cases that have no outcome yet."""
        return [state for state in self.states if not state.ended]

    def end(self, state: CaseState, outcome: Outcome) -> None:
        """Report the outcome of ``state`` with everything measured so far; the last one reported counts."""
        state.ended = True
        said = replace(without_times(state.told(outcome)), realised=self.realised)
        self.events.outcome(sound(state.planned, said))

    def end_raised(self, state: CaseState, error: BaseException) -> None:
        """Report that ``state`` raised in its present phase, or computed something wrong."""
        if isinstance(error, WrongResultError):
            self.enter(Phase.ACCURACY, state)
            self.end_wrong(state, error.cause, str(error))
            return
        if not note_on(error) and (line := line_in(str(self.group.recipe.get("file", "")), error)):
            add_note(error, line)
        outcome = outcome_of(error, state.key, state.phase, self.session, self.job.remedies)
        if outcome.status is Status.OOM and state.grows:
            outcome = replace(outcome, reason=f"{state.grows}; {outcome.reason}"[:500])
        self.end(state, outcome)

    def end_wrong(self, state: CaseState, cause: Cause, reason: str) -> None:
        """Report that the numbers of ``state`` are wrong."""
        self.end(state, Outcome(state.key, Status.FAIL_ACCURACY, state.phase, cause, reason))

    def shown(self, states: Sequence[CaseState], found: Observation) -> None:
        """Take what ``states`` compute; a run of its own compares it with no other build."""

    @contextmanager
    def running(self, state: CaseState) -> Iterator[None]:
        """Run steps of ``state`` inside, in the context of its back end, from the first step's state."""
        self.events.point(state.index)
        try:
            if self.checks is not None:
                self.checks.restore(state)
            with self._restored(state), state.prepared.context():
                yield
        finally:
            self.events.point(NOBODY)

    @contextmanager
    def observed(self, state: CaseState, steps: int = 1, least: int = 1, number: int = 0) -> Iterator[None]:
        """Raise :class:`NotRunError` unless each of the ``steps`` inside enters the code of ``state`` alone.

        There must be an entry for each step on average: the number of graphs may differ from step to step. A
        later TorchBench step may leave its module out, if eager's does so too and ``least`` entries remain.
        If dynamo has skipped frames, or reached its recompile limit, eager runs, as in the user's program,
        and the case is degraded. Code that another back end made of inductor's graphs does not count. A
        message about one step contains its ``number``.
        """
        before = self._entered()
        yield
        entered = {code: count - before[code] for code, count in self._entered().items()}
        own, name = state.prepared.entries, state.planned.case.configuration.name
        count = entered.pop(_code_of(state))
        if own is not None and own.watched and not gave_up(state.prepared.degraded):
            due = steps
            if count < due and self.subject is not None:
                due = max(least, math.ceil(due * self.subject.built.least_calls(self.subject)))
            if count < due:
                which = f"step {number}" if number and steps == 1 else counted(steps, "step")
                problem = f"{which} entered the code of {name} {counted(count, 'time')}"
                if own.others:
                    problem += f", and {counted(own.others, 'graph')} went to another back end"
                    problem += f": {OVERRIDE} is set" if os.environ.get(OVERRIDE) else ""
                reasons = state.prepared.degraded
                given_away = os.environ.get(OVERRIDE) and own.others
                if given_away or not own.skipped() or any(SUPPRESSED in why for why in reasons):
                    raise NotRunError("; ".join([f"{NOT_RUN}: {problem}", *reasons]))
                frames = counted(own.skipped(), "frame")
                reasons.append(f"{SKIPPED}{frames}, which eager runs: {problem}")
        if any(entered.values()):
            raise NotRunError(f"{NOT_RUN}: steps of {name} entered the code of another configuration")
        if self.memory_format and self.subject is not None:
            from torchgauge.harness.worker.memory_format import refuse_others

            refuse_others(self.subject.built.tensors(self.subject), self.memory_format)

    def _entered(self) -> dict[tuple[object, ...], int]:
        """Return the number of entries so far for each key of :func:`_code_of`, summed over its cases."""
        entered = dict.fromkeys(map(_code_of, self.states), 0)
        for state in self.states:
            if state.prepared.entries is not None:
                entered[_code_of(state)] += state.prepared.entries.count
        return entered

    def _restored(self, state: CaseState) -> AbstractContextManager[None]:
        """Notice what strangers change of the process while they run, and put it back; ours do not."""
        return restored(state.changed) if self._strangers(state) else nullcontext()

    def _strangers(self, state: CaseState) -> str:
        """Whose code runs beside ours where ``state`` does, by kind and name."""
        workload = self.group.workload
        suite = "" if self.job.builder.startswith("torchgauge.") else f"suite {workload.suite!r}"
        scenario = "" if self.job.scenario.startswith("torchgauge.") else f"scenario {workload.mode!r}"
        return " or ".join(filter(None, (suite, scenario, state.prepared.stranger)))

    def backend_session(self, state: CaseState) -> BackendSession:
        """What the backend of ``state`` may use."""
        job, checks = self.job, self.checks
        assert checks is not None
        return BackendSession(
            self.session,
            checks.step,
            cache=job.cache,
            kept=job.kept,
            cold=job.cold,
            filled=job.filled,
            alone=self.timing_lock.held,
            stage=partial(self.events.stage, state.key),
        )

    # --- stages ------------------------------------------------------------------------------

    def _refuse_unsupported(self) -> None:
        dtype = self.group.workload.dtype
        low = dtype.removeprefix(AUTOCAST) if dtype.startswith(AUTOCAST) else ""
        refused = ""
        if low and low not in self.session.autocast_dtypes():
            working = ", ".join(self.session.autocast_dtypes()) or "none"
            refused = f"autocast to {low} does not work on {self.session.name}; working dtypes: {working}"
        for state in self.live:
            reason = refused or self.session.unsupported(as_compiled(state.planned.case.configuration))
            if reason:
                self.end(state, Outcome(state.key, Status.UNSUPPORTED, Phase.START, None, reason))

    def _shared(self, phase: Phase, stage: Callable[[], Any]) -> Any:
        """Run a stage that all cases share; its exception ends them all."""
        if not self.live:
            return None
        self.enter(phase)
        try:
            return stage()
        except Exception as error:  # noqa: BLE001  the models' own failure: it becomes their status
            for state in self.live:
                self.end_raised(state, error)
            return None

    def _made(self) -> BuiltWorkload:
        """Return the workload as its suite builds it."""
        self.enter(Phase.IMPORT)
        build = import_builder(self.job)
        self.enter(Phase.BUILD)
        try:
            built: BuiltWorkload = build(self.group.workload, self.group.recipe)
        except NotImplementedError as error:
            if not self._refused(error):
                raise
            raise NotOfferedError(str(error) or "the suite raised NotImplementedError") from error
        return built

    def _build(self) -> BuiltWorkload:
        self.compiler_settings = compiler_settings()
        built = self._made()
        if built.framework == "torch" and self.session.torch_device is None:
            raise NotOfferedError(f"device {self.session.name!r} does not run torch")
        if built.framework == "torch":
            require(built.capabilities, self.group.workload.mode, self.job.scenario)
        self.realised = realise(built)
        self.items_per_step, self.work = built.items_per_step, built.work
        as_planned = self.items_per_step == self.group.workload.batch
        items: dict[str, Scalar] = {} if as_planned else {ITEMS: self.items_per_step}
        low = self.group.workload.dtype.removeprefix(AUTOCAST)
        known: dict[str, Scalar] = getattr(self.session, "dtype_facts", lambda _: {})(low)
        for state in self.states:
            state.facts.update({**library_facts(self.job.preload), **known, **built.facts, **items})
        return built

    def _refused(self, error: NotImplementedError) -> bool:
        """Return whether the suite's own code, or a missing operator of the device, raised ``error``."""
        suite: Any = import_module(self.job.builder.partition(":")[0].partition(".")[0])
        frame = raised_in(error, Path(next(iter(getattr(suite, "__path__", ())), suite.__file__)))
        if frame is None:
            return bool(missing_op(str(error)))
        return not any(kind.__name__ == "Module" for kind in type(frame.f_locals.get("self")).__mro__)

    def _prepare(self, built: BuiltWorkload) -> dict[int, Callable[[], Any]] | None:
        """Check every configuration; returns the step function of each case that is right."""
        if built.framework == "python":
            from torchgauge.harness.worker.python_checks import PythonChecks

            self.checks = PythonChecks(self, built)
        else:
            from torchgauge.harness.worker.torch_checks import TorchChecks

            self.checks = TorchChecks(self, built)
        return self.checks.run()

    def _time(self, steps: dict[int, Callable[[], Any]]) -> None:
        """Warm up and measure what is right, with the machine to itself."""
        if not self.live:
            return
        if self.own_run is not None:
            self._run_own(steps)
            return
        with self.timing_lock.held():
            all_series = self._warm_up(steps) if self._clocks_agree(self._known_work) else {}
            if not all_series:
                return
            # Where the work of a step is known, measure the least time that the device needs for it.
            if self.work is not None:
                least = attainable(self.work, self.session, self.group.cases[0].case.workload.dtype)
                for state in self.live:
                    state.measurements.append(least)
            self.enter(Phase.MEASURE)
            contention, shared_budget = Contention(rest=self._rest), SharedBudget(self.job.shared_budget)
            stopped = measure(
                list(all_series.values()),
                self.session,
                self.settings,
                shared_budget,
                contention,
                self.growth,
            )
            taken = {**contention.facts(), **RANKS.facts()}
            if not self._clocks_agree(lambda: self.clocks.judge(all_series.values())):
                return
            self._add_details(all_series, stopped)
            self._repeat(all_series)
            self._confirm_growth(all_series)
            self._compare_with_peaks(all_series)
        self._report(all_series, stopped, taken)

    def _known_work(self) -> None:
        self.enter(Phase.WARMUP)
        if unknown := self.clocks.begin():
            for state in self.live:
                state.facts[UNKNOWN] = unknown

    def _clocks_agree(self, check: Callable[[], None]) -> bool:
        """Whether ``check`` finds no contradiction; one ends every case, as all are timed by these clocks."""
        try:
            check()
        except Exception as error:  # noqa: BLE001  a contradiction, or a device that broke under the look
            for state in self.live:
                self.end_raised(state, error)
        return bool(self.live)

    @property
    def own_run(self) -> Run | None:
        """The function of a scenario that measures something else than steps; None for all others."""
        return getattr(getattr(self.checks, "scenario", None), "run", None)

    def _run_own(self, steps: dict[int, Callable[[], Any]]) -> None:
        """Let the scenario measure, with the machine to itself; what it breaks ends every case."""
        all_series = {state.index: self._series(state, steps[state.index]) for state in self.live}
        with self.timing_lock.held():
            if not self._clocks_agree(self._known_work):
                return
            self.enter(Phase.MEASURE)
            try:
                assert self.own_run is not None
                name, own = self.group.workload.mode, list(all_series.values())
                before = self._entered()
                with self._restored(self.live[0]):
                    found = measured(name, self.own_run, own, self.session, self.settings)
            except Exception as error:  # noqa: BLE001  the scenario's own failure: it becomes their status
                for state in self.live:
                    self.end_raised(state, error)
                return
        entered = self._entered()
        for state in self.live:
            series = all_series[state.index]
            state.measurements += found.get(series.key, [])
            watched = state.prepared.entries is not None and state.prepared.entries.watched
            watched = watched and not gave_up(state.prepared.degraded)
            if series.failed is None and watched and entered[_code_of(state)] == before[_code_of(state)]:
                name = state.planned.case.configuration.name
                series.failed = NotRunError(f"{NOT_RUN}: the measurement did not enter the code of {name}")
            if series.failed is not None:
                self.end_raised(state, series.failed)
            else:
                self.check_again(state, "after it")
        self._pass_all()

    def _add_details(self, all_series: dict[int, Series], stopped: str) -> None:
        """What else the scenario has to say of the steps that were timed, until ``stopped``."""
        scenario = getattr(self.checks, "scenario", None)
        for state in self.live:
            series = all_series[state.index]
            series.stopped = series.stopped or stopped
            try:
                if series.failed is None:
                    name = self.group.workload.mode
                    state.measurements += detailed(scenario, name, series, self.session)
            except Exception as error:  # noqa: BLE001  the scenario's own failure: it becomes their status
                series.failed = error

    def _repeat(self, all_series: dict[int, Series]) -> None:
        """Find compiled code that remembers answers: new inputs take it longer than repeated ones."""
        for state in self.live:
            series = all_series[state.index]
            results = series.results if state.planned.case.configuration.compiled else None
            if series.failed is None and results is not None:
                try:
                    with self.running(state), state.with_other_inputs():
                        results.repeat(series, self.settings.measure_budget_s)
                except WrongResultError as error:
                    series.failed = error

    def _grows(self, series: Series, sentence: str) -> None:
        """Note that the memory of ``series`` seems to grow, and report it, as the process may be killed."""
        state = next(state for state in self.states if state.key == series.key)
        state.grows = sentence
        self.events.emit(GROWTH, case=series.key, text=sentence)

    def _confirm_growth(self, all_series: dict[int, Series]) -> None:
        """Mark the cases whose steps keep memory, except in groups of several ranks, which step together."""
        for state in self.live if RANKS.count == 1 else ():
            series = all_series[state.index]
            if series.failed is None:
                try:
                    with self.running(state):
                        if leak := self.growth.confirm(series):
                            state.facts[Modifier.LEAKS.value] = leak
                except Exception as error:  # noqa: BLE001  the case's own failure: it becomes its status
                    series.failed = error

    def _compare_with_peaks(self, all_series: dict[int, Series]) -> None:
        """Mark cases whose steps are faster than the device's peak, such as code with stored answers."""
        if not self.settings.calibrate or RANKS.count > 1 or self.session.torch_device is None:
            return
        peaks = Peaks(self.session)
        for state in self.live:
            series = all_series[state.index]
            values = {one.metric: one.samples[0] for one in state.measurements if one.samples}
            seconds = median(series.wall) if series.wall and series.failed is None else math.inf
            if seconds * BEYOND < values.get("attainable", math.inf):
                moved = float(self.work.bytes) if self.work else 0.0
                if excess := peaks.beaten(seconds, values.get("flops", 0.0), moved):
                    state.facts[Modifier.FASTER_THAN_PEAK.value] = excess

    def _rest(self, seconds: float) -> None:
        """Let other workers have the machine: time passes between the visits to this group."""
        with self.timing_lock.away():
            time.sleep(seconds)

    def _warm_up(self, steps: dict[int, Callable[[], Any]]) -> dict[int, Series]:
        all_series: dict[int, Series] = {}
        for state in self.live:
            self.enter(Phase.WARMUP, state)
            series = self._series(state, steps[state.index])
            try:
                self._first_steps(state, series)
                warm_up(series, self.session, self.settings, self.growth)
                self.clocks.close(series)
            except ClockContradictionError as error:
                for each in self.live:
                    self.end_raised(each, error)
                return {}
            except Exception as error:  # noqa: BLE001  the case's own failure: it becomes its status
                self.end_raised(state, error)
            else:
                all_series[state.index] = series
        return all_series

    def _first_steps(self, state: CaseState, series: Series) -> None:
        """Compare the results of the first steps, which are not timed."""
        if series.results is not None:
            note = partial(self.growth.note, series, 0.0)
            with self.running(state), self.observed(state):
                series.results.first_steps(series.step, note, self.settings.measure_budget_s)
            self.growth.skip()

    def _series(self, state: CaseState, step: Callable[[], Any]) -> Series:
        assert self.checks is not None
        subject = self.checks.with_call(state.prepared.call)
        settled = state.prepared.settled
        running, observed = partial(self.running, state), partial(self.observed, state)
        return Series(
            state.key,
            step,
            subject,
            running,
            observed,
            results=self.checks.results(state),
            settled=settled,
            closer=self.clocks.closer(),
        )

    def _report(self, all_series: dict[int, Series], stopped: str, taken: dict[str, Scalar]) -> None:
        for state in self.live:
            series = all_series[state.index]
            results = series.results
            state.facts.update(results.facts() if results is not None else {})
            if series.failed is not None:
                self.end_raised(state, series.failed)
            else:
                steps = counted(series.inner * len(series.wall), "step")
                self.check_again(state, f"{steps} later", series.inner - 1)
        for state in list(self.live):
            self.check_inputs(state)
        eager = next(
            (all_series[s.index] for s in self.live if not s.planned.case.configuration.compiled), None
        )
        for state in self.live:
            series = all_series[state.index]
            compiled = self._compiled_beside(state, all_series)
            state.measurements += case_measurements.timings(series, eager, stopped, compiled)
            known = [*state.measurements, *state.prepared.measurements]
            state.measurements += case_measurements.rates(known, self.items_per_step)
            state.measurements += case_measurements.contention(series, stopped)
            state.measurements += self.growth.measurements(series, stopped)
            state.facts.update(steps_per_block=series.inner, blocks=len(series.wall), warmup=series.warmup)
            state.facts.update(taken)
            state.facts.update(series.throttling())
        self._pass_all()

    def _compiled_beside(self, state: CaseState, all_series: dict[int, Series]) -> Series | None:
        """The series of what ``state`` is planned beside, where its backend wants that and it passed."""
        wanted = beside(state.planned.case.configuration)
        return next(
            (all_series[s.index] for s in self.live if s.planned.case.configuration.name in wanted[:1]), None
        )

    def _pass_all(self) -> None:
        """Report that what is left passed."""
        for state in self.live:
            self.pass_(state)

    def pass_(self, state: CaseState) -> None:
        """Report that ``state`` passed, unless it changed what it was to be measured under."""
        try:
            refuse_changes(self._strangers(state), state.changed)
        except PluginError as error:
            self.end_raised(state, error)
            return
        if self.checks is not None and (reason := self.checks.altered(state)):
            state.prepared.degraded.append(reason)
        state.phase = Phase.DONE
        self.closer_look.expect(state)
        self.end(state, Outcome(state.key, Status.PASS, Phase.DONE))

    def check_again(self, state: CaseState, later: str, earlier: int = 0) -> None:
        """End ``state`` if one more observation is wrong; ``later`` tells when it is made.

        If upstream steps its TorchBench model, ``earlier`` compiled steps precede the observed step.
        """
        if self.checks is None:
            return
        self.enter(Phase.ACCURACY, state)
        try:
            with self.running(state):
                problem = self.checks.again(state, EarlierSteps(earlier))
        except Exception as error:  # noqa: BLE001  the case's own failure: it becomes its status
            self.end_raised(state, error)
        else:
            if problem is not None:
                cause, detail = problem
                self.end_wrong(state, cause, f"correct at first, wrong {later}: {detail}")

    def check_inputs(self, state: CaseState) -> None:
        """End ``state`` if its result is wrong for other inputs, or other random numbers."""
        if self.checks is None or not state.planned.case.configuration.compiled:
            return
        self.enter(Phase.ACCURACY, state)
        with self.running(state), state.with_other_inputs():
            problem = self.checks.remembered(state)
        if problem:
            self.end_wrong(state, Cause.TOLERANCE, problem)


def _code_of(state: CaseState) -> tuple[object, ...]:
    """Return a key that is equal for cases that may run each other's code.

    Dynamo keeps code by function, guards and back end, and so does not compile again what an equal back end
    has compiled for another case.
    """
    one = state.planned.case.configuration
    compiler = compiler_of(one)
    return (compiler, one.compile_mode, one.options, one.dynamic, one.fullgraph) if compiler else (state.key,)
