"""Memory that steps keep: the bytes in use after each timed block, less those after the block before.

Attributes are restored before each timed block, which frees what steps keep there. So warm-up counts too, in
which nothing is restored. Garbage is not collected while steps are timed, and caches fill up. So a series
whose memory seems to grow runs for some seconds more, with garbage collections. Memory that grows to the end
is a leak.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean, median

from torchgauge.devices.session import DeviceSession
from torchgauge.harness.worker.case_measurements import of
from torchgauge.harness.worker.memory import heap_counter
from torchgauge.harness.worker.series import Series
from torchgauge.harness.worker.stopping import interval_rank
from torchgauge.records import Measurement, absent

HOST_GROWTH, DEVICE_GROWTH = "memory_growth", "memory_growth_device"
_MEMORY = {HOST_GROWTH: "host memory", DEVICE_GROWTH: "the device's memory"}
LEAST_BYTES = 1024.0
"""Growth per step from which on a series leaks: records about a step may take less."""
SHARE = 0.01
"""Largest share of the sampled time that readings may take, after the first :data:`ALWAYS` of a series."""
FEWEST, ALWAYS = 8, 24
"""Number of blocks after which growth is reported for the first time, and of blocks that are always read."""
LOOKS = 8
"""Number of rows of steps, with a garbage collection after each, that confirm a leak. By chance all grow in
one of 256 series."""
LOOK_S = 0.5
"""Seconds of the host's CPU time that such a row lasts, if it does not end early."""
LATE = 4.0
"""Seconds of wall time that count as one second of CPU time: steps may wait for a device."""
LOOK_BYTES = 16 << 20
"""Growth that ends a row early."""
PYTHON_BLOCK = 64
"""Bytes that a small Python object counts as: Python reports only the number of objects."""
MANY_OBJECTS = 1024
"""Small objects per step that may be a leak. A count takes up to 10 ms, so it is not made in each block."""


class MemoryGrowth:
    """The memory that blocks keep; calls ``tell`` with each series that grows, and a sentence about it."""

    def __init__(self, session: DeviceSession, tell: Callable[[Series, str], None]) -> None:
        self._session, self._tell = session, tell
        heap = heap_counter()
        self._counters: dict[str, Callable[[], int | None]] = {HOST_GROWTH: heap} if heap is not None else {}
        if hasattr(session, "memory_in_use"):
            self._counters[DEVICE_GROWTH] = session.memory_in_use
        self._last: Mapping[str, int] = {}
        self._spent_s = self._sampled_s = 0.0
        self._objects = sys.getallocatedblocks()

    def begin(self) -> None:
        """Count small objects before steps are sampled."""
        self._objects = sys.getallocatedblocks()

    def end_warm_up(self, series: Series) -> None:
        """Note whether ``series`` kept memory to the end of its warm-up, and begin anew: caches filled up."""
        series.keeps = any(_goes_on(samples[len(samples) // 2 :]) for samples in series.growth.values())
        series.growth.clear()
        self.skip()

    def skip(self) -> None:
        """Exclude all allocations until the end of the next block."""
        self._last = {}

    def note(self, series: Series, block_s: float) -> None:
        """Read the memory in use after a block of ``series`` that took ``block_s`` seconds."""
        self._sampled_s += block_s
        few = all(len(samples) < ALWAYS for samples in series.growth.values())
        if not self._last and not few and self._spent_s > SHARE * self._sampled_s:
            return
        began = time.thread_time()
        last, self._last = self._last, self._read()
        for metric, grown in _differences(last, self._last, series.steps).items():
            samples = series.growth.setdefault(metric, [])
            samples.append(grown)
            due = len(samples) >= FEWEST and len(samples).bit_count() == 1
            if due and _lower_bound(samples) >= LEAST_BYTES:
                self._tell(series, _told({metric: samples}))
        self._spent_s += time.thread_time() - began
        if last and not few and self._spent_s > SHARE * self._sampled_s:
            self.skip()

    def confirm(self, series: Series) -> str:
        """Run ``series`` again if it seems to leak; return a sentence about its leak, "" if there is none.

        Growth that ends is the filling of a cache, and memory that is freed is no leak.
        """
        grows = series.keeps or any(map(_goes_on, series.growth.values()))
        if not grows and self._new_objects() < MANY_OBJECTS * series.steps * len(series.wall):
            return ""
        self._look(series, 0.0)  # frees what earlier blocks have left
        looks = [self._look(series, LOOK_S)]
        while len(looks) < LOOKS:
            ended = not any(growth >= LEAST_BYTES for growth in looks[-1].values())
            looks.append(self._look(series, 0.0 if ended else LOOK_S))
        series.growth = {metric: [look[metric] for look in looks] for metric in looks[0]}
        kept = {metric: samples for metric, samples in series.growth.items() if min(samples) >= LEAST_BYTES}
        return _told(kept)

    def _look(self, series: Series, seconds: float) -> dict[str, float]:
        """Return the growth per step, without garbage, in at least a block and some ``seconds``."""
        first, most, steps = self._read_all(), 0.0, 0
        cpu_end, wall_end = time.thread_time() + seconds, time.perf_counter() + LATE * seconds
        while not steps or (
            time.thread_time() < cpu_end and time.perf_counter() < wall_end and most < LOOK_BYTES
        ):
            for _ in range(series.inner):
                series.step()
            self._session.synchronize()
            steps += series.inner
            most = max(_differences(first, self._read(), 1).values(), default=0.0)
        gc.collect()
        return _differences(first, self._read_all(), steps)

    def _read_all(self) -> dict[str, int]:
        """Return the readings with an estimate of Python's small objects, which other allocators hold."""
        objects = {HOST_GROWTH: PYTHON_BLOCK * sys.getallocatedblocks()}
        return {metric: count + objects.get(metric, 0) for metric, count in self._read().items()}

    def measurements(self, series: Series, stopped: str) -> list[Measurement]:
        """Return the growth of each memory whose bytes in use can be read."""
        if not series.growth:
            return [
                absent(
                    HOST_GROWTH,
                    "requires timed blocks, and glibc 2.33 or a device whose allocator counts bytes in use",
                )
            ]
        how = "bytes in use after a block, less those before"
        return [of(metric, samples, how, stopped=stopped) for metric, samples in series.growth.items()]

    def _new_objects(self) -> int:
        """Return how many small objects sampling has left, after a garbage collection if they are many."""
        new = sys.getallocatedblocks() - self._objects
        if new >= MANY_OBJECTS:
            gc.collect()
            new = sys.getallocatedblocks() - self._objects
        return new

    def _read(self) -> dict[str, int]:
        readings = {metric: read() for metric, read in self._counters.items()}
        return {metric: int(count) for metric, count in readings.items() if count is not None}


def _differences(before: Mapping[str, int], after: Mapping[str, int], steps: int) -> dict[str, float]:
    """Return the growth per step, in whole bytes, of each metric that both readings have."""
    both = before.keys() & after.keys()
    return {metric: float(round((after[metric] - before[metric]) / steps)) for metric in both}


def _goes_on(samples: Sequence[float]) -> bool:
    """Return whether both halves of ``samples`` grow by :data:`LEAST_BYTES` per step on average."""
    half = len(samples) // 2
    return bool(half) and min(fmean(samples[:half]), fmean(samples[half:])) >= LEAST_BYTES


def _told(growth: Mapping[str, Sequence[float]]) -> str:
    """Return a sentence about memory that grows; empty if none does."""
    return " and ".join(
        f"{_MEMORY[metric]} grew by {median(samples) / 1024.0:,.1f} KiB per step"
        for metric, samples in growth.items()
    )


def _lower_bound(samples: Sequence[float]) -> float:
    """Return the lower end of the median's interval at 95 %; 0 for fewer than six samples."""
    rank = interval_rank(len(samples), 0.95)
    return sorted(samples)[rank - 1] if rank else 0.0
