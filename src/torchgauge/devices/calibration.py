"""The parts of a full calibration: what ``torchgauge doctor`` measures, beyond the three numbers of each run.

Worker side. Each part is a function of a session, a dtype and a number of samples; it returns measurements,
raises :class:`PartAbsentError` where the device has not what it asks for and whatever the device raises
otherwise. The matrix product in float32, the copy on the device and the row of launches are measured as in
:mod:`torchgauge.devices.calibrate`, so that both make one history.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from functools import partial
from itertools import pairwise
from typing import Any

from torchgauge.counted import counted
from torchgauge.devices.calibrate import (
    COPY_BYTES,
    LAUNCHES,
    copy_times,
    launch_times,
    product_times,
    timed,
    times_of,
)
from torchgauge.devices.clock_check import Span, contradiction, launched, refuse_wrong_events
from torchgauge.devices.hooks import HOOK_ERRORS, first_line
from torchgauge.devices.session import DeviceSession, EventTimer
from torchgauge.errors import ClockContradictionError
from torchgauge.records import Measurement

SYNCHRONISED = "perf_counter between two synchronisations"
EVENT_BLOCK_S = 0.02
WARM_S = 0.05
"""Seconds of copies before the measured ones: an H100 copies page-locked memory slower for the first 8 ms."""
LONGEST_ROW = 4096
"""Operators tried between two events until they show a time; a device that shows none has no clock."""


class PartAbsentError(Exception):
    """The device has not what a part of the calibration asks for; the message is the reason."""


class WrongPartError(Exception):
    """The device answers wrongly: a product that is no product."""


def answer(session: DeviceSession, dtype: str, samples: int) -> tuple[Measurement, ...]:
    """Whether the device computes and can be waited for: the product of two blocks of ones is known."""
    import torch

    del samples
    block = torch.ones(8, 8, dtype=getattr(torch, dtype), device=session.torch_device)
    session.synchronize()
    found = torch.mm(block, block)
    session.synchronize()
    values = set(found.cpu().flatten().tolist())
    if values != {8.0}:
        raise WrongPartError(f"ones(8, 8) @ ones(8, 8) contains {sorted(values)[:4]} instead of 8")
    return ()


def product(session: DeviceSession, dtype: str, samples: int) -> tuple[Measurement, ...]:
    """``gemm_flops``: 2 n^3 / s of a square product, n such that it takes about 30 ms (256 to 8192).

    A dtype other than the session's own calibration dtypes may be missing.
    """
    import torch

    if dtype not in session.calibration_dtypes():
        try:
            block = torch.ones(8, 8, dtype=getattr(torch, dtype), device=session.torch_device)
            torch.mm(block, block)
            session.synchronize()
        except HOOK_ERRORS as error:
            if session.is_oom(error) or session.is_lost(error):
                raise
            raise PartAbsentError(f"matrix multiplication in {dtype} failed: {first_line(error)}") from error
    size, times = product_times(session, dtype, samples)
    rates = [2 * size**3 / seconds for seconds in times]
    return (Measurement("gemm_flops", "FLOP/s", tuple(rates), provenance=f"n = {size}; {SYNCHRONISED}"),)


def copy_on_device(session: DeviceSession, dtype: str, samples: int) -> tuple[Measurement, ...]:
    """``copy_bytes_per_s``: a 64 MiB copy on the device, each byte counted once read and once written."""
    del dtype
    rates = [2 * COPY_BYTES / seconds for seconds in copy_times(session, samples)]
    return (Measurement("copy_bytes_per_s", "B/s", tuple(rates), provenance=f"64 MiB; {SYNCHRONISED}"),)


def transfer(
    session: DeviceSession, samples: int, *, to_device: bool, pinned: bool
) -> tuple[Measurement, ...]:
    """``transfer_bytes_per_s``: 64 MiB between host and device, each byte counted once."""
    import torch

    if session.torch_device.type == torch.device("cpu").type:
        raise PartAbsentError("host and device share one memory")
    host = torch.ones(COPY_BYTES, dtype=torch.uint8)
    if pinned:
        host = _pinned(host, session)
    there = torch.empty(COPY_BYTES, dtype=torch.uint8, device=session.torch_device)
    source, target = (host, there) if to_device else (there, host)
    copy = partial(target.copy_, source, non_blocking=pinned)
    warm = time.perf_counter() + WARM_S
    while time.perf_counter() < warm:
        timed(session, copy)
    rates = [COPY_BYTES / seconds for seconds in times_of(session, copy, samples)]
    kind = "page-locked" if pinned else "pageable"
    return (
        Measurement(
            "transfer_bytes_per_s",
            "B/s",
            tuple(rates),
            provenance=f"64 MiB of {kind} host memory; {SYNCHRONISED}",
        ),
    )


def launch(session: DeviceSession, dtype: str, samples: int) -> tuple[Measurement, ...]:
    """``launch_s`` per operator of a row; of one alone ``launch_return_s`` and ``launch_complete_s``."""
    del dtype
    rows = launch_times(session, samples)
    returned, completed = _completions(session, 3 * samples)
    return (
        Measurement("launch_s", "s", tuple(rows), provenance=f"row of {LAUNCHES}; {SYNCHRONISED}"),
        _timings("launch_return_s", returned),
        _timings("launch_complete_s", completed),
    )


def events(session: DeviceSession, dtype: str, samples: int) -> tuple[Measurement, ...]:
    """``event_resolution_s``, the smallest time that two events show, and ``event_agreement``.

    The latter is event time divided by the host's wall time of one block of about 20 ms. Raises
    :class:`ClockContradictionError` where the two clocks contradict each other, or events themselves: a time
    is negative, or a block inside another takes longer than it.
    """
    import torch

    timer = session.event_timer()
    if found := contradiction(session):
        raise ClockContradictionError(found)
    if timer is None:
        said = [note.partition(": ")[2] for note in session.notes if note.startswith("events:")]
        raise PartAbsentError(said[0] if said else "the device has no timing events")
    element = torch.zeros(1, dtype=getattr(torch, dtype), device=session.torch_device)
    add = partial(element.add_, 1)
    smallest = [_smallest_step(session, add) for _ in range(samples)]
    spans = [_agreement(session, add, min(smallest)) for _ in range(max(3, samples // 3))]
    refuse_wrong_events(spans)
    ratios = [span.shown / span.most for span in spans]
    return (
        Measurement("event_resolution_s", "s", tuple(smallest), provenance="pairs of device events"),
        Measurement("event_agreement", "ratio", tuple(ratios), provenance="device events and perf_counter"),
    )


def host_clock(session: DeviceSession, dtype: str, samples: int) -> tuple[Measurement, ...]:
    """``clock_resolution_s``: the smallest step between two readings of the host's clock that differ."""
    del session, dtype
    steps = []
    for _ in range(samples):
        readings = [time.perf_counter() for _ in range(1000)]
        later = [b - a for a, b in pairwise(readings) if b > a]
        if later:
            steps.append(min(later))
    if not steps:
        raise WrongPartError("1000 successive readings of perf_counter are equal")
    return (Measurement("clock_resolution_s", "s", tuple(steps), provenance="successive perf_counter"),)


Part = Callable[[DeviceSession, str, int], "tuple[Measurement, ...]"]


def _transfer(to_device: bool, pinned: bool) -> Part:
    def part(session: DeviceSession, dtype: str, samples: int) -> tuple[Measurement, ...]:
        del dtype
        return transfer(session, samples, to_device=to_device, pinned=pinned)

    return part


PARTS: dict[str, Part] = {
    "answer": answer,
    "clock": host_clock,
    "gemm": product,
    "copy": copy_on_device,
    "to_device.pageable": _transfer(to_device=True, pinned=False),
    "to_device.pinned": _transfer(to_device=True, pinned=True),
    "to_host.pageable": _transfer(to_device=False, pinned=False),
    "to_host.pinned": _transfer(to_device=False, pinned=True),
    "launch": launch,
    "events": events,
}
"""The parts by name."""


def _pinned(host: Any, session: DeviceSession) -> Any:
    try:
        found = host.pin_memory()
    except HOOK_ERRORS as error:
        raise PartAbsentError(f"no page-locked memory: {first_line(error)}") from error
    if not found.is_pinned():
        raise PartAbsentError(f"pin_memory() returned memory that is not page-locked for {session.name}")
    return found


def _completions(session: DeviceSession, samples: int) -> tuple[list[float], list[float]]:
    """Seconds from the call of one small operator on an idle device to its return, and to its end."""
    import torch

    element = torch.zeros(1, device=session.torch_device)
    returned, completed = [], []
    with torch.no_grad():
        element.add_(1)
        for _ in range(samples):
            session.synchronize()
            began = time.perf_counter()
            element.add_(1)
            back = time.perf_counter()
            session.synchronize()
            completed.append(time.perf_counter() - began)
            returned.append(back - began)
    return returned, completed


def _smallest_step(session: DeviceSession, add: Callable[[], object]) -> float:
    """The first time above zero that two events show, of none, one, two, four, ... operators."""
    count = 0
    while count <= LONGEST_ROW:
        timer = _timer(session)
        timer.start()
        for _ in range(count):
            add()
        timer.stop()
        seconds = timer.elapsed_s()
        if seconds < 0:
            raise ClockContradictionError(
                f"events around {counted(count, 'operator')} are {seconds:.3g} s apart"
            )
        if seconds > 0:
            return seconds
        count = max(1, 2 * count)
    raise ClockContradictionError(f"events around {LONGEST_ROW} operators measured 0 s")


def _agreement(session: DeviceSession, add: Callable[[], object], resolution: float) -> Span:
    """Event time and wall time of one block, with a block inside it that must not take longer."""
    outer, inner = _timer(session), _timer(session)
    session.synchronize()
    began = time.perf_counter()
    outer.start()
    add()
    inner.start()
    while time.perf_counter() - began < EVENT_BLOCK_S:
        _row(add)
    inner.stop()
    add()
    submitting = time.perf_counter() - began
    outer.stop()
    session.synchronize()
    wall = time.perf_counter() - began
    within, whole = inner.elapsed_s(), outer.elapsed_s()
    if within < 0 or within > whole + resolution:
        shown = f"events measured {within:.6f} s inside a block that took {whole:.6f} s"
        raise ClockContradictionError(f"{shown}: not monotonic")
    return launched(whole, submitting, wall)


def _row(add: Callable[[], object], number: int = 20) -> None:
    for _ in range(number):
        add()


def _timer(session: DeviceSession) -> EventTimer:
    timer = session.event_timer()
    if timer is None:
        raise PartAbsentError("the device's events stopped working")
    return timer


def _timings(metric: str, seconds: Iterable[float]) -> Measurement:
    return Measurement(metric, "s", tuple(seconds), provenance="perf_counter on an idle device")
