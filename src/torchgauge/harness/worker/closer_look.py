"""One more step of each case that passed, under the profiler: by which path it really ran.

It comes after everything was measured and reported. So it disturbs no number, and a device that is lost or
hangs here takes nothing with it: the last outcome that a worker reports counts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from torchgauge.harness.worker import compiled_share, fallbacks
from torchgauge.records import Outcome, Phase, Status

if TYPE_CHECKING:
    from torchgauge.harness.worker.group_run import CaseState, GroupRun

UNFINISHED = "the process ended before one step could be profiled"


class CloserLook:
    """The cases of a group that are to be looked at, and the looks."""

    def __init__(self, run: GroupRun) -> None:
        self.run, self.passed = run, []  # type: tuple[GroupRun, list[CaseState]]

    def expect(self, state: CaseState) -> None:
        """Say in the outcome why nothing is known, in case the process does not get so far."""
        if fallbacks.possible(self.run.session):
            wanted = self.run.settings.fallback_check
            state.facts[fallbacks.UNKNOWN] = UNFINISHED if wanted else fallbacks.SWITCHED_OFF
        if state.planned.case.configuration.compiled:
            state.facts[compiled_share.UNKNOWN] = UNFINISHED
        if UNFINISHED in state.facts.values():
            self.passed.append(state)

    def take(self, steps: Mapping[int, Callable[[], Any]]) -> None:
        """Look at each expected case, and report its outcome again with what that shows."""
        for state in self.passed:
            self.run.events.phase(Phase.CHECK, state.key)
            if state.facts.get(fallbacks.UNKNOWN) == UNFINISHED:
                self._find_fallbacks(state, steps[state.index])
            if compiled_share.UNKNOWN in state.facts:
                self._find_share(state)
            self.run.end(state, Outcome(state.key, Status.PASS, Phase.DONE))

    def _find_fallbacks(self, state: CaseState, step: Callable[[], Any]) -> None:
        found = fallbacks.look(step, self.run.session)
        if isinstance(found, str):
            state.facts[fallbacks.UNKNOWN] = found
            return
        del state.facts[fallbacks.UNKNOWN]
        state.facts.update(found.facts)
        state.degraded += [found.text] if found.text else []

    def _find_share(self, state: CaseState) -> None:
        checks = self.run.checks
        assert checks is not None
        found = compiled_share.look(checks.model_step(state), checks.model_step(), self.run.session)
        if isinstance(found, str):
            state.facts[compiled_share.UNKNOWN] = found
            return
        del state.facts[compiled_share.UNKNOWN]
        state.facts["compiled_share"] = round(found, 4)
        text = compiled_share.complaint(found)
        state.degraded += [text] if text and not state.degraded else []
