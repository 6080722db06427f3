"""A group of cases over objects of the calling process, measured by the worker's own code.

The adapter between :func:`torchgauge.measure` and :class:`GroupRun`: it takes the live model in the place of
what a suite builds, keeps outcomes in memory in the place of an events file, and names what only a process of
its own could tell.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch

from torchgauge.devices.session import Absent, DeviceSession
from torchgauge.harness.backends.prepared import BackendSession
from torchgauge.harness.cold_sampling import NOT_SAMPLED
from torchgauge.harness.job import Job
from torchgauge.harness.worker.case_measurements import single
from torchgauge.harness.worker.case_state import CaseState
from torchgauge.harness.worker.group_run import GroupRun
from torchgauge.harness.worker.memory import STEPS
from torchgauge.harness.worker.series import Series
from torchgauge.records import Measurement, Outcome, Phase, absent
from torchgauge.suites.losses import loss_in
from torchgauge.suites.suite import HOST, BuiltWorkload

ELSEWHERE = "this metric requires a separate process: use `torchgauge run`"
"""Why a metric is absent that other objects of the calling process would enter."""


def loss_of(output: Any) -> Any:
    """Return the scalar that a training step differentiates; raises ``TypeError`` where there is none."""
    found = loss_in(output)
    if isinstance(found, torch.Tensor) and not found.ndim:
        return found
    shown = type(found).__name__
    if isinstance(found, torch.Tensor):
        shown = f"a tensor of shape {tuple(found.shape)}"
    raise TypeError(f"training needs a loss, and the model returns {shown}: pass loss=lambda output: ...")


class KeptOutcomes:
    """Takes the events of a run in memory: of each case the last outcome counts."""

    def __init__(self, on_phase: Callable[[str], None]) -> None:
        self.by_case: dict[str, Outcome] = {}
        self.last, self._on_phase = Phase.START, on_phase

    def emit(self, kind: str, **payload: Any) -> None:
        """Ignore an event that is for the parent of a worker."""

    def phase(self, phase: Phase, case: str | None = None) -> None:
        """Keep the phase, and report it for progress."""
        self.last = phase
        self._on_phase(phase.value)

    def stage(self, case: str, stage: str) -> None:
        """Ignore it: no deadline is kept here."""

    def outcome(self, outcome: Outcome) -> None:
        """Keep ``outcome``."""
        self.by_case[outcome.case_key] = outcome

    def point(self, index: int) -> None:
        """Ignore it: a crash ends this process anyway."""


class LiveRun(GroupRun):
    """One group over a workload that the caller has built."""

    def __init__(self, job: Job, session: DeviceSession, events: KeptOutcomes, built: BuiltWorkload) -> None:
        where = {"threads": torch.get_num_threads(), "interop_threads": torch.get_num_interop_threads()}
        super().__init__(job, session, events, where)  # type: ignore[arg-type]
        self.live_workload = built
        self._held = int(getattr(session, "memory_in_use", lambda: 0)() or 0)

    def _made(self) -> BuiltWorkload:
        self.enter(Phase.BUILD)
        return self.live_workload

    def _strangers(self, state: CaseState) -> str:
        return " or ".join(filter(None, ("the model", state.prepared.stranger)))

    def backend_session(self, state: CaseState) -> BackendSession:
        """Return the session of the worker's run, in a process that has compiled code of its caller."""
        return replace(super().backend_session(state), foreign=True)

    def _add_details(self, all_series: dict[int, Series], stopped: str) -> None:
        super()._add_details(all_series, stopped)
        for state in self.live:
            series = all_series[state.index]
            try:
                if series.failed is None:
                    with self.running(state):
                        state.measurements.append(self._device_memory(series.step))
            except Exception as error:  # noqa: BLE001  the case's own failure: it becomes its status
                series.failed = error

    def pass_(self, state: CaseState) -> None:
        """Report that ``state`` passed, with the reasons of what is not measured here."""
        made = state.prepared.measurements
        made[:] = [absent(each.metric, ELSEWHERE) if each.absent == NOT_SAMPLED else each for each in made]
        super().pass_(state)

    def _device_memory(self, step: Callable[[], Any]) -> Measurement:
        """Return the peak of the device's allocator over two steps, above what the caller held before."""
        self.session.reset_peak_memory()
        for _ in range(STEPS):
            step()
        reading = self.session.peak_memory()
        if isinstance(reading, Absent):
            on_host = self.session.torch_device.type == HOST
            return absent("peak_memory", ELSEWHERE if on_host else reading.reason)
        held = f"{reading.provenance}, minus the memory in use before the case"
        return single("peak_memory", float(max(0, reading.bytes - self._held)), held)
