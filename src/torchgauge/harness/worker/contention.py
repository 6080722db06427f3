"""How much of the cores that a measurement wanted went to others, as far as the system tells.

Why: on a shared machine threads that meet at a barrier wait for the one that lost its core, and a model can
look fifty times slower than it is. What others took is kept with each block: the machine is blamed, not the
model.

A block's contention is the share of its wall time for which one of the process's threads, the one that waited
most, could run and had no core. That is exact however short the block is; the counts of the machine have
steps of 10 ms and stand beside the whole measurement.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable

from torchgauge.devices.cpu_times import CpuTimes, allowed_cpus
from torchgauge.devices.host import throttled_s
from torchgauge.harness.worker.run_queue import RunQueue
from torchgauge.records import Scalar

UNKNOWN = "the system does not report the time that threads wait for a core"
"""Why there is no contention where there is none."""
SHORTEST_S = 0.2
"""Seconds from which the machine's counts, in steps of 10 ms, say something."""


class Contention:
    """What others take of this process's cores, from its creation on."""

    def __init__(
        self,
        queue: RunQueue | None = None,
        clock: Callable[[], int] = time.perf_counter_ns,
        rest: Callable[[float], None] = time.sleep,
    ) -> None:
        """``rest`` lets others have the machine for as many seconds."""
        self._queue, self._clock, self._rest = queue or RunQueue(), clock, rest
        self._before: dict[str, int] = {}
        self._block_began = 0
        self._began, self._own = time.perf_counter(), time.process_time()
        self._machine, self._throttled = CpuTimes.read(), throttled_s()

    def leave(self, seconds: float) -> None:
        """Leave the machine to others; what they do meanwhile is not counted."""
        began, own = time.perf_counter(), time.process_time()
        machine, throttled = CpuTimes.read(), throttled_s()
        self._rest(seconds)
        self._began += time.perf_counter() - began
        self._own += time.process_time() - own
        later = CpuTimes.read()
        if self._machine is not None and machine is not None and later is not None:
            self._machine = self._machine.without(machine, later)
        now = throttled_s()
        if self._throttled is not None and throttled is not None and now is not None:
            self._throttled += now - throttled

    def begin_block(self) -> None:
        """Note what the threads have waited; a block begins."""
        self._queue.refresh()
        self._before = self._queue.read()
        self._block_began = self._clock()

    def end_block(self) -> float | None:
        """Share of the block in which the thread that waited most had no core; None where nobody counts."""
        if not self._queue.known:
            return None
        wall = max(1, self._clock() - self._block_began)
        after = self._queue.read()
        waited = max((now - self._before.get(thread, 0) for thread, now in after.items()), default=0)
        return round(min(1.0, max(0, waited) / wall), 4)

    def facts(self) -> dict[str, Scalar]:
        """The machine's load, and what others, its hypervisor and its quota took since the beginning.

        ``others_cores`` counts cores; the shares are of the time, over all CPUs that this process may use.
        """
        facts: dict[str, Scalar] = {"load_1min": round(os.getloadavg()[0], 2)}
        seconds, own = time.perf_counter() - self._began, time.process_time() - self._own
        now, throttled = CpuTimes.read(), throttled_s()
        if seconds < SHORTEST_S:
            return facts
        if self._machine is not None and now is not None:
            busy, stolen = now.busy_share(self._machine), now.stolen_share(self._machine)
            if busy is not None and stolen is not None:
                others = (busy - stolen) * len(allowed_cpus()) - own / seconds
                facts["others_cores"] = round(max(0.0, others), 2)
                facts["stolen_share"] = round(stolen, 3)
        if self._throttled is not None and throttled is not None:
            facts["throttled_share"] = round((throttled - self._throttled) / seconds, 3)
        return facts

    def __enter__(self) -> Contention:  # noqa: PYI034  Self is Python 3.11's
        return self

    def __exit__(self, *exc: object) -> None:
        """Close what was opened to look at blocks; :meth:`facts` may still be asked."""
        self._queue.close()
