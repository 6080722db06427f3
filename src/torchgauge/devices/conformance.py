"""The promises of a device session, checked on a live one: for vendors' tests as well as ours.

Worker side: call :func:`check_session` in a process that may use the device. The descriptor's promises are in
:mod:`torchgauge.devices.descriptor_conformance`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

from torchgauge.devices.checking import Violations, violations_of
from torchgauge.devices.session import Absent, DeviceSession, MemoryReading
from torchgauge.records import Configuration

PROBE_BYTES = 1 << 20
AUTOCAST_DTYPES = {"bfloat16", "float16", "float8_e4m3fn", "float8_e5m2"}
NO_SUCH_BACKEND = Configuration(name="no-such-backend", backend="no_such_backend_of_torchgauge")


def check_session(session: DeviceSession) -> list[str]:
    """Sentences that say which promises ``session`` breaks; empty for a sound session."""
    return violations_of(CHECKS, session)


def _identity(session: DeviceSession) -> Violations:
    if not (isinstance(session.name, str) and session.name):
        yield "name is not a string, or is empty"
    if not (isinstance(session.index, int) and session.index >= 0):
        yield f"index {session.index!r} is not a whole number from 0"


def _torch_device(session: DeviceSession) -> Violations:
    if session.torch_device is None:
        return
    import torch

    host = torch.arange(6.0)
    back = (host.to(session.torch_device) * 2).cpu()
    if not torch.equal(back, host * 2):
        yield f"6 numbers, copied to the device, doubled and copied back, are {back.tolist()}"


def _synchronize(session: DeviceSession) -> Violations:
    session.synchronize()
    if session.torch_device is not None:
        import torch

        torch.ones(8, device=session.torch_device).add_(1)
    session.synchronize()
    yield from ()  # it raises, or all is well


def _events(session: DeviceSession) -> Violations:
    timer = session.event_timer()
    if timer is None:
        if not session.notes:
            yield "returned None without a note that gives the reason"
        return
    for _ in range(2):
        timer.start()
        _work(session)
        timer.stop()
        seconds = timer.elapsed_s()
        if not (math.isfinite(seconds) and seconds >= 0):
            yield f"elapsed_s gave {seconds!r}"
    if session.event_timer() is timer:
        yield "two calls returned the same timer"


def _peak_memory(session: DeviceSession) -> Violations:
    session.reset_peak_memory()
    held = _allocate(session)
    reading: object = session.peak_memory()
    del held
    if isinstance(reading, Absent):
        if not reading.reason or "\n" in reading.reason:
            yield f"returned Absent with a reason that is not a single line: {reading.reason!r}"
        if not session.notes:
            yield "returned Absent without a note that gives the reason"
    elif isinstance(reading, MemoryReading):
        if not reading.provenance:
            yield "no provenance"
        if reading.bytes <= 0:
            yield f"returned {reading.bytes} B: a device without a working counter must return Absent"
        elif session.torch_device is not None and reading.bytes < PROBE_BYTES:
            yield f"returned {reading.bytes} B while {PROBE_BYTES} B were allocated"
    else:
        yield f"gave {reading!r}"


def _seed(session: DeviceSession) -> Violations:
    draws = []
    for seed in (7, 7, 8):
        session.seed(seed)
        draws.append(_draw(session))
    if draws[0] != draws[1]:
        yield "the same seed gave different random numbers"
    if draws[0] == draws[2]:
        yield "different seeds gave the same random numbers"
    state = session.rng_state()
    first = _draw(session)
    session.set_rng_state(state)
    if _draw(session) != first:
        yield "random numbers differ after the generator state was restored"


def _out_of_memory(session: DeviceSession) -> Violations:
    if not session.is_oom(MemoryError()):
        yield "MemoryError is not recognised"
    for error in (ValueError("out of memory"), RuntimeError("expected memory format channels_last")):
        if session.is_oom(error):
            yield f"{error!r} must not be classified as out of memory"
    if session.torch_device is not None:
        import torch

        if not session.is_oom(torch.OutOfMemoryError("full")):
            yield "torch.OutOfMemoryError is not recognised"


def _lost_device(session: DeviceSession) -> Violations:
    harmless = (
        ValueError("device lost"),
        RuntimeError("CUDA error: device-side assert triggered"),
        RuntimeError("CUDA out of memory"),
    )
    for error in harmless:
        if session.is_lost(error):
            yield f"{error!r} must not be classified as a lost device"
    if session.torch_device is not None and not session.is_lost(RuntimeError("device lost")):
        yield "RuntimeError('device lost') is not classified as a lost device"


def _autocast(session: DeviceSession) -> Violations:
    dtypes: object = session.autocast_dtypes()
    if not isinstance(dtypes, tuple) or set(dtypes) - AUTOCAST_DTYPES:
        yield f"{dtypes!r} is not a tuple of low-precision dtype names"
        return
    for name in dtypes:
        import torch

        block = torch.ones(8, 8, device=session.torch_device)
        with torch.autocast(session.torch_device.type, dtype=getattr(torch, name)):
            found = (block @ block).dtype
        if found is not getattr(torch, name):
            yield f"a matrix multiplication under autocast to {name} returned {found}"


def _configurations(session: DeviceSession) -> Violations:
    refusal = session.unsupported(Configuration(name="eager", backend="eager"))
    if refusal is not None:
        yield f"eager is refused: {refusal}"
    if not session.unsupported(NO_SUCH_BACKEND):
        yield "a backend that does not exist is not refused"


def _fingerprint(session: DeviceSession) -> Violations:
    first, second = session.fingerprint(), session.fingerprint()
    if not first:
        yield "says nothing"
    if first != second:
        changed = sorted(key for key in first.keys() | second.keys() if first.get(key) != second.get(key))
        yield f"two calls differ in: {', '.join(changed)}"
    yield from _not_scalars(first)


def _telemetry(session: DeviceSession) -> Violations:
    yield from _not_scalars(session.telemetry())


def _names(session: DeviceSession) -> Violations:
    if not _strings(session.calibration_dtypes()):
        yield "calibration_dtypes is not a tuple of strings"
    backend: object = session.distributed_backend
    if not isinstance(backend, (str, type(None))):
        yield f"distributed_backend is {backend!r}"
    activity: object = session.profiler_activity
    if not isinstance(activity, (str, type(None))):
        yield f"profiler_activity is {activity!r}"
    notes = session.notes
    if not _strings(notes) or not all(note and "\n" not in note for note in notes):
        yield f"notes {notes!r} are not a tuple of single lines"
    if len(set(notes)) != len(notes):
        yield "a note is listed twice"


CHECKS: tuple[Callable[[DeviceSession], Violations], ...] = (
    _identity,
    _torch_device,
    _synchronize,
    _events,
    _peak_memory,
    _seed,
    _out_of_memory,
    _lost_device,
    _autocast,
    _configurations,
    _fingerprint,
    _telemetry,
    _names,
)


def _work(session: DeviceSession) -> None:
    if session.torch_device is None:
        sum(range(1000))
        return
    import torch

    block = torch.ones(64, 64, device=session.torch_device)
    torch.mm(block, block)


def _allocate(session: DeviceSession) -> Any:
    if session.torch_device is None:
        return None
    import torch

    return torch.empty(PROBE_BYTES, dtype=torch.uint8, device=session.torch_device)


def _draw(session: DeviceSession) -> list[float]:
    if session.torch_device is None:
        import random

        return [random.random() for _ in range(4)]  # noqa: S311 - no secret depends on it
    import torch

    drawn: list[float] = torch.rand(4, device=session.torch_device).cpu().tolist()
    return drawn


def _strings(values: object) -> bool:
    return isinstance(values, tuple) and all(isinstance(value, str) for value in values)


def _not_scalars(values: dict[str, Any]) -> Violations:
    for key, value in values.items():
        if not isinstance(value, (str, int, float, bool, type(None))):
            yield f"{key} is a {type(value).__name__}"
            continue
        try:
            json.dumps(value, allow_nan=False)
        except ValueError:
            yield f"{key} is {value!r}, which is not a number"
