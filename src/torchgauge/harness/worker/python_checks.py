"""Checks of workloads that need no torch: the null system that shows what the harness itself costs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from torchgauge.errors import UnobservableError
from torchgauge.harness.backends.prepared import Prepared
from torchgauge.records import Accuracy, Cause, Phase
from torchgauge.suites.suite import BuiltWorkload

if TYPE_CHECKING:
    from torchgauge.harness.worker.case_state import CaseState
    from torchgauge.harness.worker.group_run import GroupRun


class PythonChecks:
    """Every run must return the value of the first; the plan has refused compiled configurations already."""

    def __init__(self, run: GroupRun, built: BuiltWorkload) -> None:
        self.run_, self.built = run, built
        self.first: Any = None

    def run(self) -> dict[int, Callable[[], Any]] | None:
        """Call twice; the step of each case. Raises :class:`UnobservableError` where nothing is returned."""
        self.first, second = self._call(), self._call()
        self.run_.enter(Phase.ACCURACY)
        if self.first is None:
            raise UnobservableError(
                "the step returned nothing that could be compared", hint="return the value that it computes"
            )
        equal = self.first == second
        for state in self.run_.live:
            state.accuracy = Accuracy(reference="second run", detail="equal" if equal else "differs")
            if not equal:
                self.run_.end_wrong(
                    state, Cause.NONDETERMINISTIC_EAGER, f"{self.first!r} and then {second!r}"
                )
        for state in self.run_.live:
            state.prepared = Prepared(self._call)
        return {state.index: self._call for state in self.run_.live}

    def again(self, state: CaseState, _earlier: Any = None) -> tuple[Cause, str] | None:
        """What is wrong with one more call."""
        found = self._call()
        return None if found == self.first else (Cause.TOLERANCE, f"{found!r} instead of {self.first!r}")

    def altered(self, state: CaseState) -> str:
        """Return an empty string: no setting of torch matters."""
        return ""

    def remembered(self, state: CaseState) -> str:
        """Nothing: only compiled code may answer from memory."""
        return ""

    def step(self, call: Callable[..., Any]) -> Callable[[], Any]:
        """A step is a call."""
        return call

    def with_call(self, call: Callable[..., Any]) -> None:
        """Nothing but the step is there."""

    def model_step(self, state: CaseState | None = None) -> Callable[[], Any]:
        """The step, which nobody compiles."""
        return self._call

    def results(self, state: CaseState) -> None:
        """Judge no timed call: nothing is compiled."""

    def restore(self, state: CaseState) -> None:
        """Do nothing: steps change no state that could be restored."""

    def _call(self) -> Any:
        return self.built.module(*self.built.args, **self.built.kwargs)
