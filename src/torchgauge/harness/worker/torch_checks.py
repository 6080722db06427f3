"""Accuracy before speed: references, eager runs and the results of every back end, in the worker."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from functools import cache, cached_property, partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

import torch

from torchgauge.counted import counted
from torchgauge.errors import NotRunError, UnobservableError
from torchgauge.harness.backends.backend import Backend, backend_named, compiler_of
from torchgauge.harness.backends.compiler_start import compiler_start
from torchgauge.harness.backends.inductor_knobs import INDUCTOR
from torchgauge.harness.backends.prepared import (
    ATTRIBUTES,
    REUSE,
    BackendSession,
    Entries,
    Prepared,
    checked,
    prepare,
)
from torchgauge.harness.scenarios.scenario import EarlierSteps, RemadeCall, Subject
from torchgauge.harness.worker import compiled_share, random_draws
from torchgauge.harness.worker.accuracy import (
    Verdict,
    compare,
    nonfinite,
    spread,
    without_nan,
)
from torchgauge.harness.worker.captured_graphs import captured
from torchgauge.harness.worker.case_measurements import single
from torchgauge.harness.worker.closeness import FORWARD, NEAR, TIGHT, nonsense
from torchgauge.harness.worker.compilation import own_code, reset
from torchgauge.harness.worker.contract import (
    COMPUTED,
    NOT_PROMISED,
    READ,
    Contract,
    Recorded,
    computed,
    differences,
    read,
)
from torchgauge.harness.worker.flops import count_flops
from torchgauge.harness.worker.kept_state import keeps_state
from torchgauge.harness.worker.memory import fits, model_bytes, tensor_bytes
from torchgauge.harness.worker.memory_format import lay_out, watched
from torchgauge.harness.worker.observer import AFTER, STATE, Observer
from torchgauge.harness.worker.other_inputs import OtherInputs
from torchgauge.harness.worker.process_settings import altered, compiler_settings, process_settings
from torchgauge.harness.worker.random_draws import DRAWN
from torchgauge.harness.worker.ranks import RANKS
from torchgauge.harness.worker.reference import DrawWatch, Reference, SeedWatch, float64_reference
from torchgauge.harness.worker.roofline import declared
from torchgauge.harness.worker.rounding import TIMES, EagerResults, rounded_otherwise
from torchgauge.harness.worker.subjects import make_subject
from torchgauge.harness.worker.tied_parameters import FACT, tied, told, unties
from torchgauge.harness.worker.timed_results import FIRST_STEPS, UPSTREAM_STEPS, TimedResults, copied
from torchgauge.harness.worker.verdicts import WrongResultError
from torchgauge.records import Accuracy, Cause, Modifier, Phase, Tolerance
from torchgauge.suites.outputs import Observation, as_tensor, elements
from torchgauge.suites.placing import named
from torchgauge.suites.suite import HOST, BuiltWorkload
from torchgauge.suites.torchbench.step_state import same_bits

SIZE = "model_size"
FULL_PRECISION = ("float32", "float64")
MODES = ("inference", "training")
"""The modes in which results for other inputs are compared."""

if TYPE_CHECKING:
    from torchgauge.harness.worker.case_state import CaseState
    from torchgauge.harness.worker.group_run import GroupRun


NOT_ASKED = "--no-accuracy turned the check off"
KEPT_DTYPES = "kept_dtypes"
"""The fact that names the tensors which are not in the workload's dtype."""
NOT_COMPARABLE = "results are not compared: model and reference draw different random numbers"
EXACT = 100.0
"""Factor by which two float64 runs must lie nearer than the tolerance; a larger difference is random."""
SEEDS_APART = 1000
"""Distance of seeds: an observation of several iterations takes one for each."""
LATER = 4.5
"""Observations of a later step need at most so many times the memory of eager's first observation."""
STEP_STATES = 8.0
"""Factor on the model's memory for the states before and after such a step, with gradients and moments."""
SLACK = 3.0
"""Rounding explains so many times as much in a later step: in one of many steps, compiled code may turn a
ReLU that no eager run with other rounding turns.
"""
OTHER_DRAWS = 1000.0
"""Other seeds explain so many times as much if distributions are compared too: a draw may be rare."""
COMPARED = "compared_elements"
"""The fact that says how many numbers and texts of a run were compared."""


class TorchChecks:
    """Accuracy of every case of a group; wrong code is never timed.

    ``observer`` exists if results are checked, with ``eager``, eager's observation, and ``reference``. They
    are kept until the timed code has been checked again. ``ended`` is the state of the host's generator after
    eager's observation. ``others`` exists in inference and training. ``rounding_s`` is the CPU time of
    eager's runs with other rounding.
    """

    observer: Observer | None = None
    eager: Observation
    contracts: list[Contract]
    ended: torch.Tensor
    others: OtherInputs | None = None
    reference: Reference
    random = steep = draws_itself = False
    reads = False
    rounding_s = 0.0
    unrestored = ""
    """Holds the reason if the program keeps state that cannot be restored: no later result is compared."""

    def __init__(self, run: GroupRun, built: BuiltWorkload) -> None:
        self.run_, self.built = run, built
        self.session, self.settings = run.session, run.settings
        self.workload = run.group.workload
        self.scenario: Any = import_module(run.job.scenario)
        # backends may have looser ones than eager, by whose tolerance eager is judged
        self.tolerance = min((each.tolerance for each in run.group.cases), key=lambda one: one.absolute)
        self._results: dict[tuple[bool, bool, bool], EagerResults] = {}
        self.unchecked = "" if self.settings.accuracy else NOT_ASKED
        if not hasattr(self.scenario, "observe"):
            self.unchecked = (
                f"the scenario {self.workload.mode} has no observe(), so results are not compared"
            )

    def run(self) -> dict[int, Callable[[], Any]] | None:
        """Check every case; returns the step functions of those that are right."""
        self.scenario.enter()
        self.process_settings = process_settings(self.session.torch_device.type)
        self.reference = self._references()
        self.draws = SeedWatch(self.session.seed)
        subject = make_subject(self.built, self.workload, self.draws, self.session.torch_device)
        self.subject = self.run_.subject = subject
        for state in self.run_.live if subject.kept else ():
            state.facts[KEPT_DTYPES] = named(subject.kept)
        if self.run_.memory_format:
            lay_out(subject, self.run_.memory_format)
        with watched(subject, self.run_.memory_format) if self.run_.memory_format else nullcontext():
            if not self._eager():
                return None
        # Run inductor's work of once a process before the first case compiles.
        compiled = (
            each for each in self.run_.live if compiler_of(each.planned.case.configuration) == INDUCTOR
        )
        first = next(compiled, None)
        if first is not None and self.run_.job.cold:
            self.run_.enter(Phase.COMPILE, first)
            compiler_start(self.run_.backend_session(first))
        steps: dict[int, Callable[[], Any]] = {}
        for state in list(self.run_.live):
            state.prepared = Prepared(subject.module)
            if state.planned.case.configuration.compiled:
                self._prepare(state)
            if not state.ended:
                steps[state.index] = self.step(state.prepared.call)
        self._tell_size()
        return steps

    def _tell_size(self) -> None:
        """Say the bytes of the module as it was built, where a copy of another size is measured beside it."""
        sized = [any(one.metric == SIZE for one in each.prepared.measurements) for each in self.run_.states]
        if any(sized):
            size = single(SIZE, float(model_bytes(self.subject.module)), "storage of parameters and buffers")
            for state, has_own in zip(self.run_.states, sized, strict=True):
                state.measurements += [] if has_own or state.prepared.rule else [size]

    def again(self, state: CaseState, earlier: EarlierSteps | None = None) -> tuple[Cause, str] | None:
        """Return what is wrong with one more observation of ``state``, by the rule that the first one passed.

        If upstream steps its TorchBench model, the observed compiled step and eager's begin from the state
        after the compiled steps of ``earlier``. They begin from the first state if memory is short, or if
        eager's step does not repeat its result after these steps or raises: what they have stored may have
        the names of a compiled module's parameters.
        """
        if self.observer is None:
            return None
        compiled = state.planned.case.configuration.compiled
        repeated = not compiled and self.reference.host is None
        results = cache(partial(self.eager_results, on_host=not compiled, repeated=repeated))
        earlier = earlier if earlier is not None and earlier.count and self.can_go_on(state) else None
        steps, least = getattr(self.scenario, "ITERATIONS", 1), 1
        if earlier:
            earlier.leader = self.with_call(state.prepared.call).call
            steps, least = (earlier.count + 1, 1) if earlier.start is None else (1, 0)
        ended, self.observer.earlier, eager = self.ended, earlier, None
        try:
            with self.run_.observed(state, steps, least, earlier.count + 1 if earlier else 0):
                observation = self._observed(state, earlier)
            self.left = torch.get_rng_state()
            with suppress(Exception) if earlier else nullcontext():
                eager = results(drawn=False)
            self.ended = torch.get_rng_state() if earlier else ended
            if written := self._written(state):
                return Cause.TOLERANCE, written
            if eager is not None:
                verdict = self._promised(state, observation, results, exactly=not repeated)
                if verdict.ok:
                    self.note_nonfinite(state, eager.base)
                    return None
                if not earlier or self.repeats(eager, self.observer.observe()):
                    step = f" (seen in {earlier.place or f'step {earlier.count + 1}'})" if earlier else ""
                    return verdict.cause or Cause.TOLERANCE, verdict.detail + step
        finally:
            self.ended, self.observer.earlier = ended, None
        assert earlier is not None
        earlier.end = None
        return self.again(state)

    def _observed(self, state: CaseState, earlier: EarlierSteps | None) -> Observation:
        """Observe ``state``, once more after all ``earlier`` steps from the first state if it raises.

        The step may have read a file that eager's observed steps have written in the meantime.
        """
        assert self.observer is not None
        try:
            return self.observer.observe(state.prepared.call)
        except Exception:
            if earlier is None or earlier.start is None or earlier.count > UPSTREAM_STEPS:
                raise
        earlier.start = None
        return self.observer.observe(state.prepared.call)

    def next_step(self, state: CaseState, count: int) -> tuple[Cause, str] | None:
        """Return what is wrong with the step after ``count`` timed steps of ``state``.

        If upstream steps its TorchBench model, compiled code and eager begin from the state that the timed
        steps have left. The next timed steps go on from that state, or from the one after the observed step.
        """
        if self.observer is None or not self.can_be_copied:
            return self.again(state)
        place = f"a step after {counted(count, 'timed step')}"
        start = self.built.instance(self.subject).present()
        earlier = EarlierSteps(count, start, keeps_end=True, place=place)
        problem = self.again(state, earlier)
        (earlier.end or start).restore()
        self.observer.observed = False
        return problem

    def can_go_on(self, state: CaseState) -> bool:
        """Return whether a step of ``state`` can be compared from the state that earlier steps have left."""
        return self.can_be_copied and state.planned.case.configuration.compiled

    @cached_property
    def can_be_copied(self) -> bool:
        """Return whether upstream steps its TorchBench model, with memory for copies of its state."""
        if self.built.wrappable:
            return False
        needed = LATER * tensor_bytes(self.eager) + STEP_STATES * model_bytes(self.subject.module)
        return fits(needed, self.settings.memory_limit_bytes)

    def unequal(
        self,
        state: CaseState,
        found: Observation,
        replayed: Observation | None = None,
        again: Callable[[], Observation] | None = None,
    ) -> tuple[Cause, str] | None:
        """Return how a timed result of ``state`` differs from eager's first one, or from a ``replayed`` one.

        For compiled code, ``again`` runs with other rounding: errors grow with the number of steps. Values
        are judged like those of an observation. State that the steps leave passes within the tolerance.
        Otherwise, other rounding has to explain its largest difference too, or compiled state has to pass the
        rule of a result with float64.
        """
        compiled = state.planned.case.configuration.compiled
        results = self.eager_results(repeated=not compiled)
        if replayed is not None and again is not None and compiled:
            results = EagerResults(partial(rounded_otherwise, again), replayed)
        results.runs_more = replayed is not None
        tolerance, rule = state.planned.tolerance, state.prepared.rule
        compared = partial(self._compare, results, tolerance=tolerance, rule=rule, whole=False)
        if replayed is None:
            verdict = compared(self.of_a_step(self.eager), found, exactly=compiled)
        else:
            expected, own = self.of_a_step(replayed), self.of_a_step(found)
            truth = self._truth_later(replayed)
            verdict = compared(expected, own, exactly=compiled, truth=truth)
            if verdict.ok:
                expected, own = self.of_a_step(replayed, left=True), self.of_a_step(found, left=True)
                results.each = True
                verdict = compared(expected, own, exactly=False)
                if not verdict.ok and compiled:  # eager may be farther from float64 than the tolerance
                    verdict = compared(expected, own, truth=truth)
        results.runs_more, results.each = True, False
        return None if verdict.ok else (verdict.cause or Cause.TOLERANCE, verdict.detail)

    def of_a_step(self, shown: Observation, *, left: bool = False) -> Observation:
        """Return the part of ``shown`` that an observation and a timed step share, or what is ``left``."""
        return {path: leaf for path, leaf in shown.items() if path.startswith(self.scenario.TIMED) != left}

    def note_nonfinite(self, state: CaseState, eager: Observation) -> None:
        """Mark ``state`` unchecked if a later result of eager has more NaNs and infinities than the first.

        Compiled code that has them in the same places is not shown to be right.
        """
        shared = (path for path in eager if path in self.eager)
        path = next((each for each in shared if _infinite(eager[each]) > _infinite(self.eager[each])), "")
        if path:
            reason = f"eager returned NaN or infinity in {path} in a later step"
            state.facts.setdefault(Modifier.UNCHECKED.value, reason)

    def _truth_later(self, replayed: Observation) -> Observation:
        """Return float64 results of a later step of eager: those of the first, moved by as much as eager.

        The error of eager is then that of its first step.
        """
        found: Observation = {}
        fp64 = {} if self.random else self.reference.fp64 or {}
        for path, value in replayed.items():
            first = path if path in fp64 else path.replace(f"{AFTER}.", "iteration0.", 1)
            leaves = [as_tensor(leaf) for leaf in (fp64.get(first), self.eager.get(first), value)]
            if all(isinstance(leaf, torch.Tensor) and leaf.is_floating_point() for leaf in leaves):
                of_first, later = (leaf.double() for leaf in leaves[1:])
                if of_first.shape == later.shape == leaves[0].shape:
                    found[path] = leaves[0] + (later - of_first)
        return found

    def altered(self, state: CaseState) -> str:
        """Return a reason that names the settings that the model changed for ``state``; else empty."""
        threads = state.facts.get("threads", self.process_settings["the number of threads"])
        before = {**self.process_settings, "the number of threads": threads, "autocast": False}
        if not self.built.wrappable:  # upstream's steps set it
            del before["the gradient mode"]
        elif hasattr(self.built, "steps"):
            before["the gradient mode"] = self.built.steps.gradients
        now = process_settings(self.session.torch_device.type)
        if state.planned.case.configuration.compiled and not state.prepared.stranger:
            before, now = before | self.run_.compiler_settings, now | compiler_settings()
        return altered(before, now)

    def results(self, state: CaseState) -> TimedResults | None:
        """Return the judge of the timed steps of ``state``; None if results are not compared.

        They are not compared in a group of several ranks, which would have to choose the same blocks.
        """
        return TimedResults(self, state) if self.observer is not None and RANKS.count == 1 else None

    def recording(self, state: CaseState) -> Recorded | None:
        """Return an object that records timed results of ``state``; None if contracts are not compared."""
        compared = self.built.wrappable and "out" in getattr(self.scenario, "TIMED", ())
        if not compared or not state.planned.case.configuration.compiled or self.observer is None:
            return None
        return self.observer.recording(state.prepared.call)

    def broken_while_timed(
        self, state: CaseState, recorded: Recorded, returned: Any, steps: int
    ) -> tuple[str, bool]:
        """Return how the result of a timed step breaks eager's contract, and whether eager ran again.

        A model's results may change from step to step, so eager repeats up to :data:`FIRST_STEPS` steps.
        """
        args, kwargs = self.subject.args, self.subject.kwargs
        recorded.note(returned, args, kwargs)
        found = recorded.contracts[-1:]
        if not self.broken_promise(state, found):
            return "", False
        assert self.observer is not None
        own, step = self.observer.recording(self.subject.module), self.step(self.subject.module)
        self.restore(whole=True)
        for _ in range(min(steps, FIRST_STEPS)):
            own.note(step(), args, kwargs)
        self.restore(whole=True)
        self.contracts += own.contracts
        return self.broken_promise(state, found), True

    def broken_promise(self, state: CaseState, found: Sequence[Contract]) -> str:
        """Return how ``found`` breaks eager's contract; note aspects that the back end does not promise."""
        for aspect, text in differences(self.contracts, found):
            if aspect == COMPUTED or aspect not in state.prepared.unpromised:
                return text
            fact = Modifier.REUSES_OUTPUT.value if aspect == REUSE else NOT_PROMISED
            state.facts.setdefault(fact, text)
        return ""

    def has_results(self, state: CaseState) -> bool:
        """Return whether timed steps of ``state`` have results that can be compared."""
        has = self.built.wrappable and hasattr(self.scenario, "timed_result")
        return has and not self._draws_otherwise(state)

    def _draws_otherwise(self, state: CaseState) -> bool:
        """Return whether code of ``state`` draws other random numbers than eager."""
        return self.random and state.planned.case.configuration.compiled and not state.draws_as_eager

    def _other_distribution(self, state: CaseState) -> str:
        """Return how results of ``state`` with other random numbers are distributed unlike eager's."""
        if self.others is None or state.prepared.rule is not None or not self._draws_otherwise(state):
            return ""
        with self.run_.observed(state):
            return random_draws.problem(self, state)

    def timed_result(self, state: CaseState, returned: Any, *, whole: bool = False) -> Observation | None:
        """Return the comparable result of a timed step that ``returned`` a value; None if there is none.

        With ``whole``, it contains the state that changed since the last :meth:`restore`.
        """
        if not self.has_results(state):
            return None
        shown: Observation = self.scenario.timed_result(self.with_call(state.prepared.call), returned)
        return {**shown, **self.left_by(state)} if whole else shown

    def left_by(self, state: CaseState) -> Observation:
        """Return the state that the steps since :meth:`restore` changed, of ``state`` or of eager."""
        return self._kept(state, self.observer.left()) if self.observer is not None else {}

    def left_to_compute(self, returned: Any) -> str:
        """Return the first lazy part of a timed result that eager's results do not have; else empty."""
        paths = {text: path for path, text in computed(returned)}
        texts = {text for contract in self.contracts for text in contract.values()}
        if paths.keys() <= texts:
            return ""
        texts |= {text for _, text in computed(self.step(self.subject.module)())}
        return next((f"{path}: {text}" for text, path in paths.items() if text not in texts), "")

    def replayed(self, state: CaseState, number: int, steps: int, *, whole: bool) -> Observation:
        """Run ``steps`` eager steps from the first state, and return the result of step ``number``."""
        self.restore(whole=True)
        step, kept = self.step(self.subject.module), None
        for count in range(steps):
            returned = step()
            kept = returned if count == number else kept
        shown: Observation = self.scenario.timed_result(self.subject, kept)
        left = self.left_by(state) if whole else {}
        kept_result = copied(shown)
        self.restore(whole=True)
        return {**kept_result, **left}

    def remembered(self, state: CaseState) -> str:
        """Return what is wrong with ``state`` for other inputs or random numbers; empty if nothing is."""
        return (self.others.problem(state) if self.others else "") or self._other_distribution(state)

    def restore(self, state: CaseState | None = None, *, whole: bool = False) -> None:
        """Restore the first state before the next steps, which are those of ``state``.

        Parameters that each step moves are restored only if ``whole``, or if timed steps move them too.
        Without ``whole``, steps of upstream's own go on from the present state.
        """
        if self.observer is None:
            return
        if state is None:
            self.observer.restore(whole=whole or self.steep)
        else:
            self.observer.begin(self._runner(state), whole=whole or self.steep)

    def moved(self) -> bool:
        """Return whether timed steps have moved a parameter that is not restored before each block."""
        return not self.steep and self.observer is not None and self.observer.moved()

    def judged(
        self,
        state: CaseState,
        results: EagerResults,
        found: Observation,
        *,
        exactly: bool,
        timed: bool = False,
    ) -> Verdict:
        """Judge a result of ``state``, or of a ``timed`` step, for other inputs.

        It is judged by the tolerance alone unless ``exactly``.
        """
        expected, found = self._kept(state, results.base), self._kept(state, found)
        expected = self.of_a_step(expected) if timed else expected
        tolerance, rule = state.planned.tolerance, state.prepared.rule
        return self._compare(results if exactly else None, expected, found, tolerance, rule, exactly=exactly)

    def repeats(self, results: EagerResults, found: Observation) -> bool:
        """Return whether eager has repeated itself but for rounding."""
        return self._compare(results, results.base, found, self.tolerance, exactly=False).ok

    def model_step(self, state: CaseState | None = None) -> Callable[[], Any]:
        """A step of ``state``, or of eager, in whose profile the model's own part is marked.

        The ``glance`` of a step that has one: a shorter one that runs the same.
        """
        call = self.subject.module if state is None else state.prepared.call
        if self.built.wrappable:
            call = _marked(call)
        step = self.step(call)
        return getattr(step, "glance", step)

    def step(self, call: Callable[..., Any]) -> Callable[[], Any]:
        """The scenario's step with ``call`` in the module's place; an observation where it steps nothing."""
        subject = self.with_call(call)
        if not hasattr(self.scenario, "step"):
            return partial(self.scenario.observe, subject)
        step: Callable[[], Any] = self.scenario.step(subject)
        return (lambda: read(step())) if self.reads else step

    def with_call(self, call: Callable[..., Any]) -> Subject:
        """The subject with ``call`` in the module's place."""
        return self.subject.run_by(call)

    # --- references and eager ----------------------------------------------------------------

    def _references(self) -> Reference:
        if self.unchecked:
            return Reference("not checked", None, None)
        names = tied(self.built.module)
        untied = bool(names) and unties(self.session.torch_device)
        if untied:
            for state in self.run_.live:
                state.facts[FACT] = told(names)
        on_host = self._on_host() and not self.run_.memory_format
        return float64_reference(
            self.built,
            self.workload,
            self.scenario,
            on_host,
            untied=untied,
            limit=self.settings.memory_limit_bytes,
        )

    def _on_host(self) -> bool:
        return bool(self.session.torch_device.type == HOST)

    def _eager(self) -> bool:
        """Run eager K times; a failure here ends every case, because none could be judged."""
        if self.unchecked:
            # Under a dispatch mode, an operator that raises in a device's backward thread ends the process
            # (seen with torch 2.13 on an out-of-tree device): a plain step first raises it with its name.
            self.step(self.subject.module)()
            self._count_flops()
            for state in self.run_.live:
                state.facts[Modifier.UNCHECKED.value] = self.unchecked
            return True
        self.observer = Observer(self.scenario, self.subject, self.reference.boxes)
        runs = [self._observed_eager()]
        runs += [_held_once(self.observer.observe(), runs[0]) for _ in range(1, self.settings.eager_runs)]
        self.eager, self.contracts = runs[0], [*self.observer.contracts]
        self._note_computed()
        self.ended = self.left = torch.get_rng_state()
        self.observer.settle(runs)
        if self.workload.mode in MODES and RANKS.count == 1:
            self.others = OtherInputs(self, self.observer)
        self.random = self.draws.look() or self.reference.random
        with DrawWatch() as watch:
            self._count_flops()
        self.draws_itself = watch.drew
        self.run_.enter(Phase.ACCURACY)
        self._count_elements()
        problem = self._eager_problem(runs)
        if problem is not None:
            for state in list(self.run_.live):
                self.run_.end_wrong(state, *problem)
            return False
        if self.unrestored:  # its steps are timed, and no later result is compared
            self.observer = self.others = None
            for state in self.run_.live:
                state.accuracy, state.facts[Modifier.UNCHECKED.value] = None, self.unrestored
        return True

    def _observed_eager(self) -> Observation:
        """Return eager's observation; mark all rows unchecked if eager enters code that the model compiles.

        Code that the process has compiled before is forgotten, unless it is that of a caller.
        """
        assert self.observer is not None
        imported, entries = "torch._dynamo" in sys.modules, Entries()
        if imported and not self.run_.backend_session(self.run_.live[0]).foreign:
            reset()
        with captured(entries, "") if imported else nullcontext():
            shown = self.observer.observe()
        if not imported and "torch._dynamo" in sys.modules:  # by the model's first torch.compile
            return self._observed_eager()
        if entries.count:
            problem = "eager is not eager: it called code that the model compiles itself"
            for state in self.run_.live:
                state.facts[Modifier.UNCHECKED.value] = problem
        return shown

    def _note_computed(self) -> None:
        """Note the lazy parts of eager's results; if there are any, timed steps read them."""
        pairs = [(*key, text) for contract in self.contracts for key, text in contract.items()]
        parts = [f"{path} is a {text}" for path, aspect, text in pairs if aspect == COMPUTED]
        self.reads = bool(parts) and hasattr(self.scenario, "timed_result")
        for state in self.run_.live if self.reads else ():
            state.facts[READ] = named(list(dict.fromkeys(parts)))

    def _count_flops(self) -> None:
        work = self.built.work
        known = declared(work) if work else ()
        found = known or (count_flops(self.step(self.subject.module)),)
        self.step(self.subject.module)  # to make upstream's own step restores its state, and frees gradients
        for state in self.run_.live:
            state.measurements += found

    def _count_elements(self) -> None:
        """Say how much is compared; raises :class:`UnobservableError` where nothing is."""
        compared = elements(self.eager)
        for state in self.run_.live:
            state.facts[COMPARED] = compared
        if not compared:
            raise UnobservableError(
                "the model returned nothing that could be compared",
                hint="return the result from the model, or let the scenario's observe() show it",
            )

    def _compare(
        self,
        results: EagerResults | None,
        expected: Observation,
        found: Observation,
        tolerance: Tolerance,
        rule: Callable[[Any, Any, Any], Any] | None = None,
        *,
        exactly: bool = True,
        truth: Observation | None = None,
        whole: bool = True,
    ) -> Verdict:
        """Judge ``found`` against ``expected``, and by what else eager's ``results`` may be.

        Unless ``exactly``, as in state after later steps and in repetitions, the tolerance replaces float64
        and own scales. ``truth`` replaces the float64 result. The scenario's own judge judges only ``whole``
        observations: a timed step shows a part of one.
        """
        assert self.observer is not None
        own_reference = hasattr(self.scenario, "reference")  # exact for it, or of another implementation
        strict = rule is not None or RANKS.count > 1 or own_reference  # ranks step together
        expected, found = self.observer.complete(expected, found)
        if hasattr(self.scenario, "settled"):
            found = self.scenario.settled(expected, found)
        truth = results.fp64 if truth is None and results is not None else truth
        fp64 = truth if exactly else None
        if whole and hasattr(self.scenario, "judge"):
            verdict: Verdict = self.scenario.judge(expected, found, fp64, tolerance)
        else:
            verdict = compare(expected, found, fp64, tolerance, exactly, None if strict else results)
        return verdict if rule is None else rule(expected, found, verdict)

    def eager_results(
        self, *, on_host: bool = False, drawn: bool = False, repeated: bool = False
    ) -> EagerResults:
        """Return what eager's result for the first inputs may be, on the device or ``on_host``.

        If other random numbers are ``drawn``, eager with other seeds replaces float64; every second run also
        has other rounding. Results that eager ``repeated`` are judged by runs on the host, which no fault of
        the device affects. After ``earlier`` steps, ``base`` is a new observation.
        """
        assert self.observer is not None
        earlier = self.observer.earlier
        host = self.reference.host if on_host or repeated else None
        again = partial(self.observer.observe, None) if host is None else self.reference.again

        def run(number: int) -> Observation:
            if drawn:
                offset = number * SEEDS_APART
                draw = partial(again, offset)
                with _other_seeds(offset):
                    return draw() if number % 2 else rounded_otherwise(draw, number)
            if repeated and not self._repeats():
                return {}
            began = time.process_time()
            if earlier:
                earlier.nudge = number if number > len(TIMES) else 0
            try:
                return rounded_otherwise(partial(again, 0), number)
            finally:
                self.rounding_s += time.process_time() - began
                if earlier:
                    earlier.nudge = 0

        def exact() -> Observation | None:
            return None if self.random else self.reference.fp64

        tight = FORWARD if self.workload.mode == MODES[0] else TIGHT
        near = tight if self.workload.dtype in FULL_PRECISION else NEAR
        if earlier:
            return EagerResults(run, self.observer.observe(), near=near, slack=SLACK)
        if host is not None and not self._on_host():  # another device may round more, as with TF32
            near = NEAR
        slack = OTHER_DRAWS if drawn and self.others is not None else 1.0
        made = EagerResults(run, host or self.eager, exact, near, slack)
        return self._results.setdefault((host is not None, drawn, repeated), made)

    def _repeats(self) -> bool:
        """Return whether two float64 runs agree: rounding is too small in float64 to show, but noise is not.

        Without a float64 run the result is False, because noise cannot be told from rounding.
        """
        assert self.observer is not None
        if self.reference.fp64 is None:
            return False
        self.observer.restore(whole=True)  # on the host, the float64 model copies the subject's
        limit = self.tolerance.absolute / EXACT
        exact = replace(self.tolerance, absolute=limit, relative=limit)
        try:
            again = self.reference.again(0, torch.float64)
        except Exception:  # noqa: BLE001  an optimizer whose state is filled need not run in float64
            return False
        return compare(*self.observer.complete(self.reference.fp64, again), None, exact, False).ok

    def _against(
        self,
        expected: Observation,
        found: Observation,
        tolerance: Tolerance,
        states: Sequence[CaseState],
        *,
        results: Callable[..., EagerResults],
        rule: Callable[[Any, Any, Any], Any] | None = None,
    ) -> Verdict:
        """Judge what ``states`` show; mark them unchecked if other random numbers explain the difference."""
        own_draws = all(DRAWN in state.facts for state in states)
        equal = any(state.draws_as_eager for state in states) or (not own_draws and self._drew_as_eager())
        drawn = own_draws and not equal
        verdict = self._compare(results(drawn=drawn), expected, found, tolerance, rule)
        if not verdict.ok and self.random and rule is None and not drawn and not equal:
            if self._ignores_seeds(states, found):
                verdict.detail += "; eager draws random numbers, and this result is the same for every seed"
            elif self._compare(results(drawn=True), expected, found, tolerance).ok:
                verdict, drawn = replace(verdict, ok=True, cause=None, detail=""), True
                for state in states:
                    state.facts[Modifier.UNCHECKED.value] = NOT_COMPARABLE
            else:
                verdict.detail += "; the model draws random numbers, and other seeds change results by less"
        for state in states if not drawn else ():
            state.facts.update(verdict.facts)
        return verdict

    def _drew_as_eager(self) -> bool:
        """Return whether the last observation left the host's generator in the state in which eager does."""
        return self.draws.look() and torch.equal(self.left, self.ended)

    def _ignores_seeds(self, states: Sequence[CaseState], found: Observation) -> bool:
        """Return whether compiled code gives the result ``found`` for another seed too."""
        assert self.observer is not None
        if len(states) != 1 or not states[0].planned.case.configuration.compiled:
            return False
        with _other_seeds(SEEDS_APART):
            again = self.observer.observe(states[0].prepared.call, SEEDS_APART)
        return all(path in found and same_bits(found[path], leaf) for path, leaf in again.items())

    def _eager_problem(self, runs: list[Observation]) -> tuple[Cause, str] | None:
        assert self.observer is not None
        pairs = [self.observer.complete(runs[0], other) for other in runs[1:]]
        gap = max((spread(first, other) for first, other in pairs), default=0.0)
        tolerance = self.tolerance
        results = partial(self.eager_results, on_host=True)
        expected = results().base
        verdict = self._against(expected, runs[0], tolerance, self.run_.live, results=results)
        self._record_eager(gap, verdict)
        self.run_.shown(self.run_.live, runs[0])
        # where eager is alone, infinities that each run repeats are its result, and NaNs unless it trains
        alone = runs[0] if self.workload.mode == MODES[0] else without_nan(runs[0])
        reference = self.reference.fp64 or self.reference.host or alone
        bad = next((path for run in runs if (path := nonfinite(run, reference))), "")
        if bad:
            return Cause.NONFINITE, f"eager returned NaN or infinity in {bad}"
        for other in runs[1:]:
            # nobody is to blame where a sum in another order leaves another rounding error of a zero gradient
            repetition = self.eager_results(repeated=True)
            again = self._compare(repetition, runs[0], other, tolerance, exactly=False)
            for state in self.run_.live:
                state.facts.update(again.facts)
            if not again.ok:
                why, copied = keeps_state(self)
                if not why:
                    return Cause.NONDETERMINISTIC_EAGER, f"two seeded eager runs differ: {again.detail}"
                self.unrestored = f"{why}: {again.detail}"
                if not copied:  # the reference began from another state
                    return None
        if not verdict.ok:
            return Cause.TOLERANCE, (
                f"eager on {self.session.name} differs from {self.reference.eager_of}: {verdict.detail}"
            )
        # in any other precision rounding may leave nothing of a gradient; other random numbers are no error
        comparable = self.workload.dtype in FULL_PRECISION and not self.random
        if comparable and self._on_host() and (odd := nonsense(verdict.tensors)):
            if self.draws_itself:  # from a generator of its own, or after seeding the host's
                for state in self.run_.live:
                    state.facts[Modifier.UNCHECKED.value] = NOT_COMPARABLE
                return None
            return Cause.TOLERANCE, f"eager on the host is far from the float64 run: {odd}"
        return None

    def _record_eager(self, gap: float, verdict: Verdict) -> None:
        accuracy = _accuracy(self.reference.name, verdict)
        for state in self.run_.live:
            state.accuracy = replace(accuracy, eager_spread=_finite(gap))

    # --- every other backend -----------------------------------------------------------------

    def _prepare(self, state: CaseState) -> None:
        """Let the backend of ``state`` prepare it, and judge what comes of it against eager.

        What fails with something that the backend kept of earlier runs is prepared once more without it,
        unless a wrong result is right when the same code runs again.
        """
        configuration = state.planned.case.configuration
        try:
            backend = backend_named(configuration.backend)
            session = self.run_.backend_session(state)
            compared = self.observer is not None and compiler_of(configuration) == INDUCTOR
            if compared and self.random and self._module_draws:
                self._judge_drawing(state, backend, session)
            try:
                self._judge(state, partial(prepare, backend, self.subject, configuration, session))
            except Exception as error:
                retry = state.prepared.retry
                if retry is None or (isinstance(error, WrongResultError) and self._right_again(state)):
                    raise
                trouble = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
                self._judge(state, lambda: checked(retry(trouble), backend, self.subject))
        except Exception as error:  # noqa: BLE001  the case's own failure: it becomes its status
            self.run_.end_raised(state, error)

    def _right_again(self, state: CaseState) -> bool:
        """Return whether the same code gives a right result in another observation."""
        with suppress(Exception), self.run_.running(state):
            return self.again(state) is None
        return False

    @cached_property
    def _module_draws(self) -> bool:
        """Return whether the module draws random numbers in its own call, which compiled code replaces.

        It is True if that cannot be observed: on another device, or in a step that does not call the module.
        """
        module, before, after = self.subject.module, list[torch.Tensor](), list[torch.Tensor]()
        if not self._on_host() or not isinstance(module, torch.nn.Module):
            return True
        self.restore(whole=True)
        with (
            module.register_forward_pre_hook(lambda *_: before.append(torch.get_rng_state())),
            module.register_forward_hook(lambda *_: after.append(torch.get_rng_state())),
        ):
            self.step(module)()
        self.restore(whole=True)
        return not before or not all(map(torch.equal, before, after))

    def _runner(self, state: CaseState) -> str:
        return state.key if state.planned.case.configuration.compiled else ""

    def _written(self, state: CaseState) -> str:
        """Return a sentence about state that code of ``state`` changes and eager does not; else empty."""
        runner, call = self._runner(state), state.prepared.call
        if self.observer is None or not runner:
            return ""
        steps = {"": self.step(self.subject.module), runner: self.step(call)}
        written = self.observer.written_by(runner, steps)
        return f"compiled code, unlike eager, changes state: {named(written)}" if written else ""

    def _judge_drawing(self, state: CaseState, backend: Backend, session: BackendSession) -> None:
        """Compile once more with ``fallback_random``, under which inductor draws as eager, and compare.

        Results of its first steps are compared too. If a result is wrong, compile again without
        ``layout_optimization``: it makes convolutions channels-last, and ``rand_like`` of their outputs then
        draws in order of memory. The timed code is compiled later, without these changes.
        """
        from torch._inductor import config

        configuration = state.planned.case.configuration
        for changed in ({}, {"layout_optimization": False}):
            folder = f"{session.cache}-{DRAWN}{len(changed)}"
            own_session = replace(session, cache=folder, kept="", cold=False)
            try:
                with config.patch(fallback_random=True, **changed):
                    self._judge(state, partial(prepare, backend, self.subject, configuration, own_session))
                    if (results := self.results(state)) is not None and state.draws_as_eager:
                        with self.run_.running(state), self.run_.observed(state):
                            step = self.step(state.prepared.call)
                            results.first_steps(step, lambda: None, self.settings.measure_budget_s)
                state.prepared.close()
                break
            except WrongResultError:
                if changed:
                    raise
                state.prepared.close()
        layout = " and without layout_optimization" if changed else ""
        state.facts[DRAWN] = f"checked with fallback_random{layout}, to draw as eager; timed without this"

    def _judge(self, state: CaseState, make: Callable[[], Prepared]) -> None:
        """Prepare ``state`` by ``make`` and compare it with eager; raises :class:`WrongResultError`."""
        run = self.run_
        run.enter(Phase.COMPILE, state)
        state.prepared = Prepared(self.subject.module)
        with run.running(state), own_code():
            state.prepared = make()
        verdict = None
        if self.observer is not None:
            self.observer.forgive()
            run.enter(Phase.ACCURACY, state)
            try:
                with run.running(state):
                    with run.observed(state, getattr(self.scenario, "ITERATIONS", 1)):
                        found = self.observer.observe(state.prepared.call)
                    self.left = torch.get_rng_state()
                    state.draws_as_eager = self._drew_as_eager()
                    if DRAWN in state.facts and state.draws_as_eager:  # as many numbers, but maybe others
                        results, tolerance = self.eager_results(), state.planned.tolerance
                        state.draws_as_eager = self._compare(results, results.base, found, tolerance).ok
                    self.observer.repeat(state.prepared.call)
            except NotRunError as error:
                state.prepared.judged()
                more = [why for why in state.prepared.degraded if why not in str(error)]
                raise NotRunError("; ".join([str(error), *more])) from None
            with run.running(state):
                written = self._written(state)
            verdict = self._promised(state, found, self.eager_results)
            run.shown([state], found)
            if written:
                verdict = replace(verdict, ok=False, cause=Cause.TOLERANCE, detail=written)
            with run.running(state):
                if verdict.ok and (why := self._other_distribution(state)):
                    verdict.fail(Cause.TOLERANCE, why)
            kept = state.accuracy.eager_spread if state.accuracy else None
            alone = self.reference.host is None and self.reference.fp64 is None
            name = self.reference.name if alone else f"eager and {self.reference.name}"
            if DRAWN not in state.facts:
                state.accuracy = replace(_accuracy(name, verdict), eager_spread=kept)
        state.prepared.judged()
        if verdict is not None and not verdict.ok:
            raise WrongResultError(verdict.cause or Cause.TOLERANCE, verdict.detail)

    def _promised(
        self,
        state: CaseState,
        found: Observation,
        results: Callable[..., EagerResults],
        *,
        exactly: bool = True,
    ) -> Verdict:
        """Judge values, attributes and contract of ``found``; note the aspects that are not promised."""
        assert self.observer is not None
        made, expected = state.prepared, results(drawn=False).base
        kept = self._kept(state, expected)
        lost = [path for path in expected if path not in kept]
        state.facts.update({NOT_PROMISED: f"{named(lost)}: not compared"} if lost else {})
        expected, found = kept, self._kept(state, found)
        tolerance = state.planned.tolerance
        if exactly:
            verdict = self._against(expected, found, tolerance, [state], results=results, rule=made.rule)
        else:
            repetition = results(drawn=False)
            verdict = self._compare(repetition, expected, found, tolerance, made.rule, exactly=False)
            state.facts.update(verdict.facts)
        if made.rule is None and (untrained := self.observer.untrained(expected, found)):
            verdict.fail(
                Cause.TOLERANCE, f"compiled code, unlike eager, changes no parameter: {named(untrained)}"
            )
        if broken := self.broken_promise(state, self.observer.contracts):
            verdict.fail(Cause.CONTRACT, broken)
        return verdict

    @staticmethod
    def _kept(state: CaseState, shown: Observation) -> Observation:
        """Return ``shown`` without attributes, if the back end of ``state`` does not promise to keep them."""
        odd = (STATE,) if ATTRIBUTES in state.prepared.unpromised else ()
        return {path: leaf for path, leaf in shown.items() if not path.startswith(odd)}


@contextmanager
def _other_seeds(offset: int) -> Iterator[None]:
    """Add ``offset`` to each seed that a program sets by ``torch.manual_seed()`` in this context."""
    seed = torch.manual_seed
    torch.manual_seed = lambda number: seed(int(number) + offset)
    try:
        yield
    finally:
        torch.manual_seed = seed


def _marked(call: Callable[..., Any]) -> Callable[..., Any]:
    """``call`` marked in the profile, of the same module."""
    if isinstance(call, RemadeCall):
        return replace(call, call=compiled_share.marked(call.call, compiled_share.MODEL))
    return compiled_share.marked(call, compiled_share.MODEL)


def _accuracy(reference: str, verdict: Verdict) -> Accuracy:
    rmse, eager = _finite(verdict.rmse), _finite(verdict.reference_rmse)
    return Accuracy(
        reference=reference,
        max_abs_error=_finite(verdict.max_abs_error),
        rmse=rmse,
        rmse_eager=eager,
        rmse_ratio=rmse / eager if rmse is not None and eager else None,
        detail=verdict.detail[:500],
    )


def _finite(value: float | None) -> float | None:
    """``value`` where it is a number: a reference that overflowed has no distance."""
    return value if value is not None and math.isfinite(value) else None


def _infinite(leaf: Any) -> int:
    """Return the number of NaNs and infinities."""
    tensor = as_tensor(leaf)
    return int((~tensor.isfinite()).sum()) if isinstance(tensor, torch.Tensor) else 0


def _held_once(shown: Observation, first: Observation) -> Observation:
    """Return ``shown`` with those leaves of ``first`` that equal its own, so that they are held once."""
    return {path: same if same_bits(leaf, same := first.get(path)) else leaf for path, leaf in shown.items()}
