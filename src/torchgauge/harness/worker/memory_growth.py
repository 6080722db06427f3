"""Memory that steps keep: the bytes in use after each timed block, less those after the block before.

Garbage is not collected while steps are timed, and caches fill up. So a series whose memory seems to grow
runs a few more blocks, with a garbage collection after each. Memory that then grows in every block is a leak.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from statistics import median

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
"""Largest share of the sampled time that readings may take, after the first :data:`FEWEST` of a series."""
FEWEST = 8
"""Number of blocks after which growth is judged for the first time."""
LOOKS = 6
"""Number of blocks, with a garbage collection after each, that confirm a leak; by chance all six grow in one
of 64 series."""
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

    def skip(self) -> None:
        """Exclude all allocations until the end of the next block."""
        self._last = {}

    def note(self, series: Series, block_s: float) -> None:
        """Read the memory in use after a block of ``series`` that took ``block_s`` seconds."""
        self._sampled_s += block_s
        few = all(len(samples) < FEWEST for samples in series.growth.values())
        if not self._last and not few and self._spent_s > SHARE * self._sampled_s:
            return
        began = time.thread_time()
        last, self._last = self._last, self._read()
        for metric, grown in _differences(last, self._last, series.inner).items():
            samples = series.growth.setdefault(metric, [])
            samples.append(grown)
            if len(samples) >= FEWEST and len(samples).bit_count() == 1 and (sentence := _sentence(series)):
                self._tell(series, sentence)
        self._spent_s += time.thread_time() - began
        if last and not few and self._spent_s > SHARE * self._sampled_s:
            self.skip()

    def confirm(self, series: Series) -> str:
        """Run ``series`` again if it seems to leak; return a sentence about its leak, "" if there is none."""
        if not _sentence(series) and self._new_objects() < MANY_OBJECTS * series.inner * len(series.wall):
            return ""
        readings = []
        for _ in range(LOOKS + 2):  # the first block contains effects of earlier ones
            for _ in range(series.inner):
                series.step()
            self._session.synchronize()
            gc.collect()
            objects = {HOST_GROWTH: PYTHON_BLOCK * sys.getallocatedblocks()}
            readings.append(
                {metric: count + objects.get(metric, 0) for metric, count in self._read().items()}
            )
        grown = [_differences(one, other, series.inner) for one, other in pairwise(readings[1:])]
        series.growth = {metric: [growth[metric] for growth in grown] for metric in grown[0]}
        return _sentence(series)

    def measurements(self, series: Series, stopped: str) -> list[Measurement]:
        """Return the growth of each memory whose bytes in use can be read."""
        if not series.growth:
            return [
                absent(
                    HOST_GROWTH,
                    "it needs timed blocks, and glibc 2.33 or a device whose allocator counts bytes in use",
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


def _sentence(series: Series) -> str:
    """Return a sentence about the memory that grows by :data:`LEAST_BYTES` per step at least; else ""."""
    grows = [
        f"{_MEMORY[metric]} grew by {median(samples) / 1024.0:,.1f} KiB per step"
        for metric, samples in series.growth.items()
        if _lower_bound(samples) >= LEAST_BYTES
    ]
    return " and ".join(grows)


def _lower_bound(samples: Sequence[float]) -> float:
    """Return the lower end of the median's interval at 95 %; 0 for fewer than six samples."""
    rank = interval_rank(len(samples), 0.95)
    return sorted(samples)[rank - 1] if rank else 0.0
