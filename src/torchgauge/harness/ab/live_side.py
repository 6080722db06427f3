"""One side of a pair while it lives: built, asked for block after block, and ended with an outcome."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchgauge.harness.ab.wire import ANSWERS, Listener, Wire
from torchgauge.harness.pool.derived_status import derive_statuses
from torchgauge.harness.pool.watch import QUIET_TICK_S, TICK_S, Watch
from torchgauge.records import Outcome, PlannedCase


class LiveSide:
    """A worker that was started; every question has the deadline of the worker's phase."""

    def __init__(self, planned: PlannedCase, watch: Watch, listener: Listener) -> None:
        self.planned, self._watch, self._listener = planned, watch, listener
        self._wire: Wire | None = None

    def wait(self) -> float | None:
        """Seconds of a step, once the worker has built, checked and warmed up; None where it has ended."""
        while self._wire is None:
            self._wire = self._listener.accept(TICK_S, ANSWERS)
            if self._watch.look(0.0) and self._wire is None:
                return None
        said = self._hear()
        return None if said is None else float(said["step_s"])

    def block(self, steps: int) -> dict[str, Any] | None:
        """The columns of one block; None where the side has failed or died."""
        assert self._wire is not None
        self._watch.restart_deadline()  # it waited for the lock
        self._wire.send(cmd="block", steps=steps)
        return self._hear()

    def finish(self, kernel_killed: Callable[[], bool]) -> Outcome:
        """Tell the worker to end, wait until it has, and say how the case ended."""
        self._watch.restart_deadline()
        if self._wire is not None:
            self._wire.send(cmd="end")
        while not self._watch.look(TICK_S):
            pass
        if self._wire is not None:
            self._wire.close()
        self._listener.close()
        return derive_statuses([self.planned], self._watch.ending, kernel_killed).outcomes[
            self.planned.case.key
        ]

    @property
    def lost(self) -> bool:
        """Whether the host itself went away."""
        return self._watch.ending.lost

    def _hear(self) -> dict[str, Any] | None:
        assert self._wire is not None
        while True:
            try:
                reply = self._wire.receive(QUIET_TICK_S)
            except ValueError as error:
                reason = f"the model's process sent a line that cannot be parsed: {error}"
                self._watch.condemn("forged", reason)
                return None
            if reply:
                return None if reply["ev"] == "failed" else reply
            if reply is None or self._watch.look(0.0):
                return None
