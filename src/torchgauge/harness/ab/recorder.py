"""Blocks of steps with everything that the worker can note of each step.

On the host each step is timed by itself. An asynchronous device is waited for before and after a block
only, because waiting in between would measure something else; each of its steps carries the block's mean.
"""

from __future__ import annotations

import math
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any

from torchgauge.devices.session import DeviceSession, EventTimer
from torchgauge.harness.ab.wire import BLOCK_S
from torchgauge.harness.worker.run_queue import RunQueue
from torchgauge.harness.worker.timing import Clocks, run_steps
from torchgauge.suites.suite import HOST

READING_FROM_S = 50e-6
"""Minimum seconds of a step for reading the run queue after each step; else it is read after each block.

The reading lies outside of what is timed. It is worth its time: a wait that is known for a block only makes
all of its steps suspect. The number of steps in a block decides, which both sides share: a side that reads
after each step measures with other contents of the caches than one that does not.
"""


@dataclass
class Columns:
    """One value per step, in seconds; ``refused`` counts steps whose clocks stood or went back."""

    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    delay: list[float] = field(default_factory=list)
    switches: list[int] = field(default_factory=list)
    device: list[float] = field(default_factory=list)
    refused: int = 0


class StepRecorder:
    """Runs blocks of one step function and says what each step took."""

    def __init__(
        self,
        step: Callable[[], Any],
        session: DeviceSession,
        clocks: Clocks | None = None,
    ) -> None:
        self._step, self._session = step, session
        self._clocks = clocks or Clocks(time.perf_counter_ns, time.process_time_ns)
        self._timer: EventTimer | None = session.event_timer()
        device = session.torch_device
        self._whole = device is not None and device.type != HOST
        queue = RunQueue()
        self._queue = queue if queue.known else None

    def block(self, steps: int) -> Columns:
        """Run ``steps`` steps between two synchronisations; whatever a step raises goes through."""
        if self._queue is not None:
            self._queue.refresh()
        waited = self._waited()
        columns = self._as_one(steps) if self._whole else self._one_by_one(steps)
        kept = len(columns.wall)
        if self._queue is not None and not columns.delay:
            columns.delay = [round((self._waited() - waited) * 1e-9 / steps, 9)] * kept
        if self._timer is not None:
            event = self._timer.elapsed_s() / steps
            if not math.isfinite(event) or event <= 0:
                return Columns(refused=steps)
            columns.device = [round(event, 9)] * kept
        return columns

    def _one_by_one(self, steps: int) -> Columns:
        columns = Columns()
        each = self._queue is not None and steps * READING_FROM_S <= BLOCK_S
        self._session.synchronize()
        if self._timer is not None:
            self._timer.start()
        wall, cpu, step = self._clocks.wall, self._clocks.cpu, self._step
        waited = now_waited = self._waited() if each else 0
        for _ in repeat(None, steps):
            taken = _switches()
            cpu_before, before = cpu(), wall()
            step()
            after, cpu_after = wall(), cpu()
            if each:
                waited, now_waited = now_waited, self._waited()
            if after <= before or cpu_after < cpu_before:
                columns.refused += 1
                continue
            columns.wall.append(round((after - before) * 1e-9, 9))
            columns.cpu.append(round((cpu_after - cpu_before) * 1e-9, 9))
            if each:
                columns.delay.append(round(max(0, now_waited - waited) * 1e-9, 9))
            columns.switches.append(_switches() - taken)
        if self._timer is not None:
            self._timer.stop()
        self._session.synchronize()
        return columns

    def _as_one(self, steps: int) -> Columns:
        taken = _switches()
        wall, cpu, *_ = run_steps(self._step, steps, self._session, self._timer, self._clocks)
        if wall <= 0 or cpu < 0:
            return Columns(refused=steps)
        wall_s, cpu_s = (round(each * 1e-9 / steps, 9) for each in (wall, cpu))
        columns = Columns([wall_s] * steps, [cpu_s] * steps)
        each, more = divmod(_switches() - taken, steps)
        columns.switches = [each + (number < more) for number in range(steps)]
        return columns

    def _waited(self) -> int:
        return 0 if self._queue is None else self._queue.read_ns()


def _switches() -> int:
    """Return how often a core was taken from this process."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw
