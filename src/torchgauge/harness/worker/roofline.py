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
REPEATS = 5
MOST_MOVED = 256 << 20
"""More than any cache holds; a copy of more needs memory and shows nothing else."""


def declared(work: Work) -> tuple[Measurement, ...]:
    """``flops`` and ``bytes`` of ``work``, which need no counting."""
    flops = (
        single("flops", float(work.flops), DECLARED)
        if work.flops
        else absent("flops", "the operation is bound by memory, its arithmetic is not counted")
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


def copy_bandwidth(session: DeviceSession, moved: int) -> Measurement:
    """Bytes read and written by second of a copy that moves as many as ``moved``, or ``MOST_MOVED``."""
    moved = min(moved, MOST_MOVED)
    try:
        rate = moved / copy_time(session, moved)
    except HOOK_ERRORS as error:
        if session.is_oom(error) or session.is_lost(error):
            raise
        return absent("copy_bytes_per_s", f"no copy could be timed: {first_line(error)}")
    return single("copy_bytes_per_s", rate, f"best of {REPEATS} rows of copies of {moved:,} bytes, beside it")


def copy_time(session: DeviceSession, moved: int) -> float:
    """Seconds of a copy on the device that reads and writes ``moved`` bytes in all."""
    row, copies = row_of_copies(session, moved // 2)
    return min(timed(session, row) for _ in range(REPEATS)) / copies
