"""The worker's half of a pair: one case, built and checked as in any run, that then steps when it is told to.

Protocol, JSON lines over the socket that the job names. The worker says ``ready`` with the seconds of a step
and waits. ``block`` with a number of steps is answered by the columns of the block, or by ``failed`` where
a step raised; ``end``, or a parent that has gone, ends it. How the case ended stands in the events file.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from torchgauge.errors import NotOfferedError
from torchgauge.harness.ab.recorder import StepRecorder
from torchgauge.harness.ab.wire import BLOCK_S, Wire, connect
from torchgauge.harness.worker.case_state import CaseState
from torchgauge.harness.worker.clock_watch import UNKNOWN
from torchgauge.harness.worker.contention import Contention
from torchgauge.harness.worker.group_run import GroupRun
from torchgauge.harness.worker.memory import RssProbe, peak_of_steps
from torchgauge.harness.worker.timing import quiet_collector, time_block, warm_up
from torchgauge.harness.worker.verdicts import first_line
from torchgauge.records import Phase
from torchgauge.records.comparison import START, UNSEEN
from torchgauge.suites.suite import BuiltWorkload

if TYPE_CHECKING:
    from torchgauge.suites.outputs import Observation

WARMUP_S = 0.5
"""At most so long after the first step: it comes in every launch, and what it leaves meets both sides."""


class SideRun(GroupRun):
    """One case of one side in one launch."""

    rss: RssProbe
    served: int = 0

    def _build(self) -> BuiltWorkload:
        self.rss = RssProbe()
        built = super()._build()
        if built.framework == "torch":
            from torchgauge.harness.ab.side_outputs import start_sum

            for state in self.states:
                state.facts[START] = start_sum(built)
        return built

    def shown(self, states: Sequence[CaseState], found: Observation) -> None:
        """Keep the distance of each tensor of ``found`` from its reference, or why there is none."""
        from torchgauge.harness.ab.side_outputs import output_errors
        from torchgauge.harness.worker.torch_checks import TorchChecks

        checks = self.checks
        assert isinstance(checks, TorchChecks)
        truth, why = checks.reference.fp64, "the model draws random numbers" * checks.random
        if truth is None and not why:
            truth, why = self._rounded_otherwise
        for state in states:
            state.facts.update({UNSEEN: why} if why else {})
            state.outputs = () if truth is None or why else output_errors(truth, found)

    @cached_property
    def _rounded_otherwise(self) -> tuple[Observation, str]:
        """Return eager's result with other rounding, or the reason why there is none.

        It replaces a float64 result, as in TorchBench training. Integers and booleans are eager's own.
        """
        import torch

        checks: Any = self.checks
        try:
            rounded = checks.eager_results().run(1)
        except Exception as error:  # noqa: BLE001  a model need not run in another way
            return {}, f"{checks.reference.name}; eager with other rounding raised {first_line(error)}"
        tensors = [(path, leaf) for path, leaf in checks.eager.items() if isinstance(leaf, torch.Tensor)]
        whole = {path: leaf for path, leaf in tensors if not (leaf.is_floating_point() or leaf.is_complex())}
        return {**rounded, **whole}, ""

    def _time(self, steps: dict[int, Callable[[], Any]]) -> None:
        mode = self.group.workload.mode
        for state in self.live:
            if self.own_run is not None:
                why = f"scenario {mode!r} has no steps, but builds are compared by the time of a step"
                self.end_raised(state, NotOfferedError(why))
            else:
                self._take_part(state, steps[state.index])

    def _take_part(self, state: CaseState, step: Callable[[], Any]) -> None:
        self.enter(Phase.WARMUP, state)
        series = replace(self._series(state, step), settled=False)
        try:
            if unknown := self.clocks.begin():
                state.facts[UNKNOWN] = unknown
            self._first_steps(state, series)
            budget = min(WARMUP_S, self.settings.warmup_budget_s)
            warm_up(series, self.session, replace(self.settings, min_block_s=BLOCK_S, warmup_budget_s=budget))
            self.clocks.close(series)
            with self.running(state):
                if self.settings.memory_probe:
                    state.measurements.append(peak_of_steps(step, self.session, self.rss, self.subject))
                step_s = time_block(step, series.inner, self.session).wall
        except Exception as error:  # noqa: BLE001  the case's own failure: it becomes its status
            self.end_raised(state, error)
            return
        state.facts["warmup"] = series.warmup
        self.enter(Phase.MEASURE, state)
        wire = connect(self.job.control)
        wire.send(ev="ready", step_s=step_s)
        with quiet_collector(), Contention() as contention:
            failed = self._serve(wire, StepRecorder(step, self.session), state)
        if failed is not None:
            self.end_raised(state, failed)
            wire.send(ev="failed")
            return
        state.facts.update(contention.facts())
        self.check_again(state, f"{self.served:,} steps later", series.inner - 1)
        if state.ended:
            return
        self.pass_(state)

    def _serve(self, wire: Wire, recorder: StepRecorder, state: CaseState) -> Exception | None:
        """Run blocks as long as they are asked for; what a step raised, if one did."""
        while True:
            command = wire.receive()
            if command is None or command["cmd"] == "end":
                return None
            self.served += command["steps"]
            try:
                with self.running(state), self.observed(state, command["steps"]):
                    columns = recorder.block(command["steps"])
            except Exception as error:  # noqa: BLE001  the case's own failure: it becomes its status
                return error
            wire.send(ev="block", **asdict(columns))
