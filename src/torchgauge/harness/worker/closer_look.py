"""One more step of each case that passed, under the profiler: by which path it really ran.

It comes after everything was measured and reported. So it disturbs no number, and a device that is lost or
hangs here takes nothing with it: the last outcome that a worker reports counts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torchgauge.counted import counted
from torchgauge.harness.worker import fallbacks, host_kernels
from torchgauge.harness.worker.verdicts import first_line
from torchgauge.records import Outcome, Phase, Status

if TYPE_CHECKING:
    from torchgauge.harness.worker.case_state import CaseState
    from torchgauge.harness.worker.group_run import GroupRun

UNFINISHED = "the process ended before a step was profiled"
UNTRACED = "trace_unknown"
"""Name of the fact with the reason why ``--trace`` wrote no file."""


class CloserLook:
    """The cases of a group that are to be looked at, and the looks."""

    def __init__(self, run: GroupRun) -> None:
        self.run, self.passed = run, []  # type: tuple[GroupRun, list[CaseState]]

    def expect(self, state: CaseState) -> None:
        """Say in the outcome why nothing is known, in case the process does not get so far."""
        if fallbacks.possible(self.run.session):
            wanted = self.run.settings.fallback_check
            state.facts[fallbacks.UNKNOWN] = UNFINISHED if wanted else fallbacks.SWITCHED_OFF
        if state.planned.trace:
            state.facts[UNTRACED] = UNFINISHED
        if state.prepared.look is not None:
            state.prepared.evidence[state.prepared.look.unknown] = UNFINISHED
            self.passed.append(state)
            return
        if UNFINISHED in state.facts.values():
            self.passed.append(state)

    def take(self, steps: Mapping[int, Callable[[], Any]]) -> None:
        """Look at each expected case, and report its outcome again with what that shows."""
        for state in self.passed:
            self.run.events.phase(Phase.CHECK, state.key)
            if state.planned.trace:
                self._trace(state, steps[state.index])
            if state.facts.get(fallbacks.UNKNOWN) == UNFINISHED:
                with self.run.running(state):
                    self._find_fallbacks(state, steps[state.index])
            self._take_own(state)
            self.run.end(state, Outcome(state.key, Status.PASS, Phase.DONE))

    def _trace(self, state: CaseState, step: Callable[[], Any]) -> None:
        """Write the trace of a few steps of ``state``, in the first of several processes."""
        from torchgauge.harness.worker.step_trace import STEPS, write_trace

        path = None if self.run.job.rank else Path(state.planned.trace)
        try:
            with self.run.running(state), self.run.observed(state, STEPS):
                write_trace(getattr(step, "glance", step), self.run.session, path)
            del state.facts[UNTRACED]
        except Exception as error:  # noqa: BLE001  the row is measured; why it has no trace is a fact of it
            state.facts[UNTRACED] = first_line(error)

    def _find_fallbacks(self, state: CaseState, step: Callable[[], Any]) -> None:
        found = fallbacks.look(getattr(step, "glance", step), self.run.session)
        if isinstance(found, str):
            state.facts[fallbacks.UNKNOWN] = found
            return
        del state.facts[fallbacks.UNKNOWN]
        state.facts.update(found.facts)
        if not found.names:
            state.facts[host_kernels.FACT] = host_kernels.told(state.measurements)
        state.degraded += [found.text] if found.text else []

    def _take_own(self, state: CaseState) -> None:
        """The look that the backend of ``state`` wants to be taken, if any.

        If upstream steps its TorchBench model, all calls of its module are to be compiled too.
        """
        look, checks, made = state.prepared.look, self.run.checks, state.prepared
        if look is None:
            return
        assert checks is not None
        try:
            with self.run.running(state):
                found = look.take(checks.model_step(state), checks.model_step())
            facts, text = ({look.unknown: found}, "") if isinstance(found, str) else found
            facts = {str(name): value for name, value in facts.items()}
            own = not getattr(checks.built, "wrappable", True)
            module = getattr(made.call, "_orig_mod", None) if own else None
            if module is not None and not text:
                from torchgauge.harness.worker import compiled_share

                calls = compiled_share.eager_calls(checks.model_step(state), module)
                text = f"{counted(calls, 'call')} of the module in a step ran as eager" if calls else ""
        except Exception as error:  # noqa: BLE001  what cannot be looked at is a fact of the row, not a status
            facts, text = {look.unknown: first_line(error)}, ""
        del made.evidence[look.unknown]
        made.evidence.update(facts)
        made.degraded += [str(text)] if text and not (made.degraded or state.degraded) else []
