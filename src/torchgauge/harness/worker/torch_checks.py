"""Right before fast: references, eager runs and compiled runs of one group, in the worker."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torchgauge.harness.cold_turn import NOT_ITS_TURN
from torchgauge.harness.compile_cache import EMPTY, FACT, KEPT, NEW, folder_name
from torchgauge.harness.metrics import absent
from torchgauge.harness.scenarios.scenario import Subject
from torchgauge.harness.worker import compilation
from torchgauge.harness.worker.accuracy import Verdict, compare, nonfinite, spread
from torchgauge.harness.worker.case_measurements import single
from torchgauge.harness.worker.closeness import nonsense
from torchgauge.harness.worker.flops import count_flops
from torchgauge.harness.worker.reference import Reference, float64_reference
from torchgauge.harness.worker.subjects import make_subject
from torchgauge.records import Accuracy, Cause, Phase
from torchgauge.suites.host import HOST
from torchgauge.suites.outputs import Observation
from torchgauge.suites.suite import BuiltWorkload

FULL_PRECISION = ("float32", "float64")

if TYPE_CHECKING:
    from torchgauge.harness.worker.group_run import CaseState, GroupRun


class TorchChecks:
    """Accuracy and compilation of every case of a group; what is wrong is never timed."""

    def __init__(self, run: GroupRun, built: BuiltWorkload) -> None:
        self.run_, self.built = run, built
        self.session, self.settings = run.session, run.settings
        self.workload = run.group.workload
        self.scenario: Any = built.steps or import_module(run.job.scenario)
        run.fallbacks = compilation.FallbackWatch().install()

    def run(self) -> dict[int, Callable[[], Any]] | None:
        """Check every case; returns the step functions of those that are right."""
        self.scenario.enter()
        reference = self._references()
        subject = make_subject(self.built, self.workload, self.session, self.session.torch_device)
        self.run_.subject = subject
        eager = self._eager(subject, reference)
        if eager is None:
            return None
        steps: dict[int, Callable[[], Any]] = {}
        for state in list(self.run_.live):
            call = subject.module
            if state.planned.case.configuration.compiled:
                call = self._compile(state, subject, eager, reference)
            if not state.ended:
                steps[state.index] = self.scenario.step(replace(subject, call=call))
        return steps

    # --- references and eager ----------------------------------------------------------------

    def _references(self) -> Reference:
        if not self.settings.accuracy:
            return Reference("not checked", None, None)
        return float64_reference(self.built, self.workload, self.scenario, self._on_host())

    def _on_host(self) -> bool:
        return bool(self.session.torch_device.type == HOST)

    def _eager(self, subject: Subject, reference: Reference) -> Observation | None:
        """Run eager K times; a failure here ends every case, because none could be judged."""
        if not self.settings.accuracy:
            # Under a dispatch mode, an operator that raises in a device's backward thread ends the process
            # (seen with torch 2.13 on an out-of-tree device): a plain step first raises it with its name.
            self.scenario.step(subject)()
            self._count_flops(subject)
            return {}
        runs = [self.scenario.observe(subject) for _ in range(self.settings.eager_runs)]
        self._count_flops(subject)
        self.run_.enter(Phase.ACCURACY)
        problem = self._eager_problem(runs, reference)
        if problem is None:
            first: Observation = runs[0]
            return first
        for state in list(self.run_.live):
            self.run_.end_wrong(state, *problem)
        return None

    def _count_flops(self, subject: Subject) -> None:
        flops = count_flops(self.scenario.step(subject))
        for state in self.run_.live:
            state.measurements.append(flops)

    def _eager_problem(self, runs: list[Observation], reference: Reference) -> tuple[Cause, str] | None:
        gap = max((spread(runs[0], other) for other in runs[1:]), default=0.0)
        tolerance = self.run_.group.cases[0].tolerance
        verdict = compare(reference.host or runs[0], runs[0], reference.fp64, tolerance)
        self._record_eager(gap, verdict, reference)
        bad = next((path for path in map(nonfinite, runs) if path), "")
        if bad:
            return Cause.NONFINITE, f"eager returned NaN or infinity in {bad}"
        for other in runs[1:]:
            # nobody is to blame where a sum in another order leaves another rounding error of a zero gradient
            again = compare(runs[0], other, None, tolerance, own_scale=False)
            if not again.ok:
                return Cause.NONDETERMINISTIC_EAGER, f"two seeded eager runs differ: {again.detail}"
        if not verdict.ok:
            return Cause.TOLERANCE, f"eager on {self.session.name} differs from the host: {verdict.detail}"
        # in any other precision rounding may leave nothing of a gradient; other random numbers are no error
        comparable = self.workload.dtype in FULL_PRECISION and not reference.random
        if comparable and self._on_host() and (odd := nonsense(verdict.tensors)):
            return Cause.TOLERANCE, f"eager on the host is nothing like the float64 run: {odd}"
        return None

    def _record_eager(self, gap: float, verdict: Verdict, reference: Reference) -> None:
        accuracy = _accuracy(reference.name, verdict)
        for state in self.run_.live:
            state.accuracy = replace(accuracy, eager_spread=_finite(gap))

    # --- compiled ----------------------------------------------------------------------------

    def _compile(
        self, state: CaseState, subject: Subject, eager: Observation, reference: Reference
    ) -> Callable[..., Any]:
        """Compile and judge against eager; returns the callable to time.

        What fails with code from the kept cache is compiled again into an empty one before it is believed.
        """
        job = self.run_.job
        try:
            if job.kept and not job.cold:
                call, trouble = self._try_kept(state, subject, eager, reference)
                if call is not None:
                    return call
                state.facts[FACT] = f"{EMPTY}, after the kept one failed: {trouble}"
            else:
                state.facts[FACT] = EMPTY
            return self._attempt(state, subject, eager, reference, job.cache)
        except _WrongResultError as error:
            self.run_.end_wrong(state, error.verdict.cause or Cause.TOLERANCE, error.verdict.detail)
        except Exception as error:  # noqa: BLE001  the case's own failure: it becomes its status
            self.run_.end_raised(state, error)
        return subject.module  # type: ignore[no-any-return]

    def _try_kept(
        self, state: CaseState, subject: Subject, eager: Observation, reference: Reference
    ) -> tuple[Callable[..., Any] | None, str]:
        """The callable from the kept cache, or why there is none where the cache may be to blame."""
        kept = self.run_.job.kept
        began_empty = not (Path(kept) / folder_name(state.planned.case.configuration)).is_dir()
        state.facts[FACT] = NEW if began_empty else KEPT
        before = len(state.measurements), list(state.degraded)
        try:
            return self._attempt(state, subject, eager, reference, kept), ""
        except Exception as error:
            if began_empty:
                raise
            trouble = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
        del state.measurements[before[0] :]
        state.degraded[:] = before[1]
        return None, trouble

    def _attempt(
        self, state: CaseState, subject: Subject, eager: Observation, reference: Reference, cache: str
    ) -> Callable[..., Any]:
        """Compile with the caches in the folder ``cache`` and judge; raises what is wrong with the result."""
        run, configuration = self.run_, state.planned.case.configuration
        run.enter(Phase.COMPILE, state)
        run.point_at(state)
        state.cache = cache
        compilation.use_cache(cache, configuration)
        compilation.reset()
        call = compilation.compiled(subject.module, configuration)
        step = self.scenario.step(replace(subject, call=call))
        with run.turn.held() if run.job.cold else nullcontext():
            seconds = compilation.timed_call(step, self.session)
        state.measurements.append(
            single("compile_cold", seconds, "first call, empty cache")
            if run.job.cold
            else absent("compile_cold", NOT_ITS_TURN)
        )
        verdict = None
        if self.settings.accuracy:
            run.enter(Phase.ACCURACY, state)
            verdict = self._judge(state, replace(subject, call=call), eager, reference)
        self._count(state)
        if verdict is not None and not verdict.ok:
            raise _WrongResultError(verdict)
        return call

    def _judge(self, state: CaseState, subject: Subject, eager: Observation, reference: Reference) -> Verdict:
        found = self.scenario.observe(subject)
        verdict = compare(eager, found, reference.fp64, state.planned.tolerance)
        kept = state.accuracy.eager_spread if state.accuracy else None
        state.accuracy = replace(_accuracy(f"eager and {reference.name}", verdict), eager_spread=kept)
        return verdict

    def _count(self, state: CaseState) -> None:
        counts = compilation.counters()
        if state.facts.get(FACT) == KEPT and counts.graphs and not counts.cache_hits:
            state.facts[FACT] = NEW
        state.measurements += [
            single("graph_count", counts.graphs, "dynamo unique_graphs"),
            single("graph_breaks", counts.breaks, "dynamo graph_break"),
            single("recompiles", counts.recompiles, "dynamo frame compilations beyond the first"),
        ]
        if counts.break_reasons:
            state.facts["graph_break_reasons"] = " | ".join(counts.break_reasons)
        if counts.graphs == 0:
            state.degraded.append("dynamo captured no graph: every step runs eager")


class _WrongResultError(Exception):
    """What was compiled computes something else than eager."""

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(verdict.detail)
        self.verdict = verdict


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
