"""How fast this machine is right now: one matrix product, one copy, one launch, in well under a second.

Worker side. A throttled or shared machine shows here, instead of being blamed on a model.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Any

from torchgauge.devices.clock_check import Closer, applies, closed, refuse_early_end, told
from torchgauge.devices.hooks import HOOK_ERRORS, first_line
from torchgauge.devices.session import DeviceSession
from torchgauge.errors import ClockContradictionError
from torchgauge.records import Calibration

GEMM_TARGET_S = 0.03
GEMM_SMALLEST, GEMM_LARGEST = 256, 8192
COPY_BYTES = 64 << 20
ROW_S = 2e-3
"""Minimum seconds of a row of copies: the synchronisations at its ends are then a small part."""
MOST_COPIES = 4096
LAUNCHES, ROWS = 100, 15
REPEATS = 5


def calibrate(session: DeviceSession, at: str) -> Calibration:
    """GEMM rate, copy bandwidth and launch time of the session's device; ``at`` says when in the shard.

    ``gemm_flops`` is 2 n^3 / s of a square product in the session's first calibration dtype.
    ``copy_bytes_per_s`` counts each byte of a device-to-device copy once read and once written (as STREAM
    does). ``launch_s`` is the time of one operator on one element, in a row of many. A part that the device
    cannot do is None, and ``absent`` says why; of clocks that contradict each other all are.
    """
    dtypes = session.calibration_dtypes()
    if session.torch_device is None or not dtypes:
        return Calibration(session.name, at, None, None, None, "the device does not run torch")
    contradicted, _ = told(session)
    if not contradicted:
        try:
            return _calibration(session, at, dtypes[0])
        except ClockContradictionError as error:
            contradicted = error.message
    return Calibration(session.name, at, None, None, None, contradicted)


def _calibration(session: DeviceSession, at: str, dtype: str) -> Calibration:
    reasons: list[str] = []
    return Calibration(
        device=session.name,
        at=at,
        gemm_flops=_part("gemm", lambda: _gemm(session, dtype), reasons),
        copy_bytes_per_s=_part("copy", lambda: 2 * COPY_BYTES / median(copy_times(session)), reasons),
        launch_s=_part("launch", lambda: median(launch_times(session)), reasons),
        absent="; ".join(reasons),
    )


def _part(name: str, measure: Callable[[], float], reasons: list[str]) -> float | None:
    try:
        return measure()
    except HOOK_ERRORS as error:
        reasons.append(f"{name}: {first_line(error)}")
        return None


def _gemm(session: DeviceSession, dtype: str) -> float:
    size, times = product_times(session, dtype)
    return 2 * size**3 / median(times)


def product_times(session: DeviceSession, dtype: str, repeats: int = REPEATS) -> tuple[int, list[float]]:
    """Side n of a square product in ``dtype`` that takes about 30 ms, and the seconds of each repetition."""
    import torch

    multiply = getattr(torch, "_int_mm", torch.mm) if dtype == "int8" else torch.mm

    def operand(size: int) -> Any:
        return torch.ones(size, size, dtype=getattr(torch, dtype), device=session.torch_device)

    size = GEMM_SMALLEST
    with torch.no_grad():
        while True:
            block = operand(size)
            torch.mm(block, block)
            # The best of three: one stolen time slice must not end the search at a small size.
            seconds = min(timed(session, partial(multiply, block, block)) for _ in range(3))
            # Rates grow with the size, so one step from a small product falls short: go on until close.
            wanted = int(size * (GEMM_TARGET_S / seconds) ** (1 / 3)) // 64 * 64
            wanted = min(max(wanted, GEMM_SMALLEST), GEMM_LARGEST, size * 4)
            if wanted <= size * 1.25:
                break
            size = wanted
        return size, times_of(session, partial(multiply, block, block), repeats)


def copy_times(session: DeviceSession, repeats: int = REPEATS) -> list[float]:
    """Return the seconds of a copy of ``COPY_BYTES`` on the device, from each of ``repeats`` rows."""
    row, copies = row_of_copies(session, COPY_BYTES)
    return [seconds / copies for seconds in times_of(session, row, repeats)]


def row_of_copies(session: DeviceSession, size: int) -> tuple[Callable[[], None], int]:
    """Return a step that copies ``size`` bytes on the device for ``ROW_S``, and its number of copies.

    An H100 copies 64 MiB in 45 microseconds. Two synchronisations around one copy would be a third of that.
    """
    import torch

    source = torch.ones(max(1, size), dtype=torch.uint8, device=session.torch_device)
    target = torch.empty_like(source)

    def row(copies: int) -> None:
        for _ in range(copies):
            target.copy_(source)

    timed(session, partial(row, 1))
    copies = min(MOST_COPIES, 1 + int(ROW_S / timed(session, partial(row, 1))))
    return partial(row, copies), copies


def launch_times(session: DeviceSession, rows: int = ROWS) -> list[float]:
    """Seconds of one operator on one element, from each of ``rows`` rows of a hundred."""
    import torch

    element = torch.zeros(1, device=session.torch_device)

    def row() -> None:
        for _ in range(LAUNCHES):
            element.add_(1)

    with torch.no_grad():
        row()
        return [seconds / LAUNCHES for seconds in times_of(session, row, rows)]


def times_of(session: DeviceSession, step: Callable[[], object], repeats: int) -> list[float]:
    """Seconds of each repetition of ``step``, the last of which is closed.

    Raises :class:`ClockContradictionError` where the device was not waited for.
    """
    found = [timed(session, step) for _ in range(repeats - 1)]
    if not applies(session):
        return [*found, timed(session, step)]
    closer, walls = Closer(session), []  # type: tuple[Closer, list[float]]

    def block() -> tuple[float, float]:
        wall, late = closed(step, session, closer)
        walls.append(wall)
        return wall, late

    refuse_early_end(block)
    return [*found, walls[-1]]


def timed(session: DeviceSession, step: Callable[[], object]) -> float:
    """Seconds of ``step`` between two synchronisations of the device."""
    session.synchronize()
    began = time.perf_counter()
    step()
    session.synchronize()
    return time.perf_counter() - began
