"""The shortest time in which a device could do the work of one step, from peaks that it shows right here.

The roofline of Williams, Waterman and Patterson (2009): a step takes at least its floating-point operations
over the peak rate, and at least its bytes over the peak bandwidth. Both are measured by the worker that times
the step, just before it, with its threads: the best of five square products in the step's dtype, and the best
of five rows of copies that move as many bytes as the step: what fits a cache is compared with a cache.
"""

from __future__ import annotations

from collections.abc import Iterator

from torchgauge.devices.calibrate import product_times, row_of_copies, timed
from torchgauge.devices.hooks import HOOK_ERRORS, first_line
from torchgauge.devices.session import DeviceSession
from torchgauge.harness.worker.case_measurements import single
from torchgauge.records import AUTOCAST, Measurement, absent
from torchgauge.suites.suite import Work

DECLARED = "declared by the suite"
FAST_DTYPES = ("float32", "bfloat16", "float16", "int8")
"""Dtypes of matrix products; the fastest one sets the peak, as compiled code may use it for any other."""
BEYOND = 1.5
"""Ratio of a step's rate to the peak above which the step skipped work; a measured peak is not exact."""
STREAMS = 2.0
"""Ratio of the bandwidth of a step that only reads to that of a copy."""
QUICK = 512
"""Side of a small product, which shows quickly that the rate of most steps is possible."""
REPEATS = 5
MOST_MOVED = 256 << 20
"""More than any cache holds; a copy of more needs memory and shows nothing else."""


def declared(work: Work) -> tuple[Measurement, ...]:
    """``flops`` and ``bytes`` of ``work``, which need no counting."""
    flops = (
        single("flops", float(work.flops), DECLARED)
        if work.flops
        else absent("flops", "the operation is memory-bound, so its arithmetic is not counted")
    )
    return flops, single("bytes", float(work.bytes), DECLARED)


def attainable(work: Work, session: DeviceSession, dtype: str) -> Measurement:
    """Seconds that one step of ``work`` takes at least; absent with the reason where a peak is not to be had.

    Raises what the device raises where it is lost or its memory is full.
    """
    try:
        found = list(_least_times(work, session, dtype.removeprefix(AUTOCAST)))
    except HOOK_ERRORS as error:
        if session.is_oom(error) or session.is_lost(error):
            raise
        return absent("attainable", f"no peak could be measured: {first_line(error)}")
    return single("attainable", max(seconds for seconds, _ in found), "; ".join(told for _, told in found))


def _least_times(work: Work, session: DeviceSession, dtype: str) -> Iterator[tuple[float, str]]:
    if work.flops:
        size, times = product_times(session, dtype, REPEATS)
        peak = 2 * size**3 / min(times)
        yield work.flops / peak, f"product in {dtype}: {peak:.3g} FLOP/s"
    seconds = copy_time(session, work.bytes)
    yield seconds, f"copy of as many bytes: {work.bytes / seconds:.3g} B/s"


class Peaks:
    """The peaks of a device, each measured only if a step exceeds those before it."""

    def __init__(self, session: DeviceSession) -> None:
        self.session, self.rates = session, dict[str, float]()

    def beaten(self, seconds: float, flops: float, moved: float) -> str:
        """Return by how much a step of ``seconds`` exceeds all peaks; empty if it does not, or none exist.

        ``moved`` is the number of bytes that it reads and writes, 0 if that is unknown.
        """
        if moved and (copied := copy_bandwidth(self.session, int(moved)).samples):
            times = moved / seconds / copied[0]
            if times > BEYOND * STREAMS:
                return f"{moved:.3g} bytes in {seconds:.3g} s are {times:.3g} times the bandwidth of a copy"
        for dtype in ("", *FAST_DTYPES):
            if flops / seconds <= BEYOND * self._rate(dtype):
                return ""
        best = max(self.rates, key=lambda dtype: self.rates[dtype])
        if not self.rates[best]:
            return ""
        times = flops / seconds / self.rates[best]
        name = best or "float32"  # on a busy machine the small product can be the fastest
        return f"{flops:.3g} operations in {seconds:.3g} s are {times:.3g} times the peak rate of {name}"

    def _rate(self, dtype: str) -> float:
        """Return the operations per second of products in ``dtype``; 0 if the device has none.

        An empty ``dtype`` stands for a small product in float32, whose rate few steps exceed.
        """
        if dtype not in self.rates:
            try:
                size, times = self._products(dtype)
                self.rates[dtype] = 2 * size**3 / min(times)
            except HOOK_ERRORS as error:
                if self.session.is_oom(error) or self.session.is_lost(error):
                    raise
                self.rates[dtype] = 0.0
        return self.rates[dtype]

    def _products(self, dtype: str) -> tuple[int, list[float]]:
        import torch

        if dtype:
            return product_times(self.session, dtype, 3 * REPEATS)
        block = torch.ones(QUICK, QUICK, device=self.session.torch_device)
        return QUICK, [timed(self.session, lambda: torch.mm(block, block)) for _ in range(3)]


def copy_bandwidth(session: DeviceSession, moved: int) -> Measurement:
    """Bytes read and written by second of a copy that moves as many as ``moved``, or ``MOST_MOVED``."""
    moved = min(moved, MOST_MOVED)
    try:
        rate = moved / copy_time(session, moved)
    except HOOK_ERRORS as error:
        if session.is_oom(error) or session.is_lost(error):
            raise
        return absent("copy_bytes_per_s", f"no copy could be timed: {first_line(error)}")
    return single(
        "copy_bytes_per_s", rate, f"fastest of {REPEATS} series of copies that move {moved:,} bytes each"
    )


def copy_time(session: DeviceSession, moved: int) -> float:
    """Seconds of a copy on the device that reads and writes ``moved`` bytes in all."""
    row, copies = row_of_copies(session, moved // 2)
    return min(timed(session, row) for _ in range(REPEATS)) / copies
