"""What a torch device really answers: every hook is tried once, and the outcome of the trial is kept.

Why apart from the session: the probe's child loads this file by its path in interpreters that have no
torchgauge, so that what the probe reports is what a session will find. Standard library and torch only.
Each trial goes through ``torch.accelerator``, then ``torch.<type>``, then says why the hook is absent.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

HOOK_ERRORS = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    ImportError,
    LookupError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
)
"""What a missing or half-made hook raises in practice; a keyboard interrupt is not among them."""

TRIAL_BYTES = 1 << 20
UNITS = ((1e3, "microseconds"), (1e6, "nanoseconds"), (1e-3, "seconds"))
"""How many times the host's time events show that count these."""
COARSEST_S = 0.02
"""Seconds of work for which events must show a time."""
TELEMETRY = (
    ("utilization", "device.utilization_percent", 1.0),
    ("temperature", "device.temperature_celsius", 1.0),
    ("power_draw", "device.power_watts", 1e-3),
    ("clock_rate", "device.clock_hz", 1e6),
)
"""Function of the device module, key, factor to the base unit (source: the documentation of torch.cuda)."""


ASSERTION = re.compile(r"^.*?INTERNAL ASSERT FAILED at .*?, please report a bug to PyTorch\.\s*")
"""What torch puts before the message of a failed internal check."""


@dataclass(frozen=True)
class Hook:
    """The outcome of a trial: what to call (None where absent), where it was found, what failed before.

    ``impossible`` is what a clock of it showed that cannot be, where there is nothing to call.
    """

    call: Any
    source: str
    problem: str = ""
    impossible: str = ""


def first_line(error: BaseException) -> str:
    """The first line of an exception's message, short enough for a table, or the exception's type."""
    if isinstance(error, AttributeError) and error.name:
        return f"there is no {error.name}"
    lines = str(error).strip().splitlines()
    text = ASSERTION.sub("INTERNAL ASSERT: ", lines[0].strip()) if lines else ""
    if not text:
        return type(error).__name__
    text = text if len(text) <= 160 else text[:157] + "..."
    return text if isinstance(error, (RuntimeError, LookupError)) else f"{type(error).__name__}: {text}"


def current_accelerator() -> str | None:
    """The type of the accelerator this torch was built or extended for; touches no device."""
    import torch

    for name in ("_accelerator_getAccelerator", "_get_accelerator"):
        getter = getattr(torch._C, name, None)
        if getter is not None:
            try:
                found = getter()
            except RuntimeError:  # torch 2.6 raises where no accelerator is there
                return None
            return None if found is None or found.type == "cpu" else str(found.type)
    return None


def device_module(torch_type: str) -> Any:
    """``torch.<type>``, or None where no module is registered for the type."""
    import torch

    try:
        return torch.get_device_module(torch_type)
    except HOOK_ERRORS:
        return None


def device_count(torch_type: str) -> int:
    """How many devices of the type are visible; 0 where that cannot be told."""
    module = device_module(torch_type)
    found = _first_that_works(
        [
            (f"torch.{torch_type}.device_count", lambda: int(module.device_count())),
            ("torch.accelerator.device_count", lambda: int(_accelerator(torch_type).device_count())),
        ]
    )
    return max(0, int(found.call or 0))  # torch 2.6 counts -1 MTIA devices where it has none


def select(torch_type: str, index: int) -> Hook:
    """Make ``index`` the current device, so that streams and events belong to it."""
    module = device_module(torch_type)
    return _first_that_works(
        [
            ("torch.accelerator.set_device_index", lambda: _set_index(_accelerator(torch_type), index)),
            (f"torch.{torch_type}.set_device", lambda: module.set_device(index) or True),
        ]
    )


def synchronize(torch_type: str, index: int) -> Hook:
    """A call that waits for the device; the last resort copies one element to the host."""
    module = device_module(torch_type)
    # On a device that nothing has touched yet torch returns early, and a broken hook looks whole.
    touched = _first_that_works([("tensor", lambda: _tried(_copy_to_host(torch_type, index)))])
    if touched.call is None:
        return touched
    return _first_that_works(
        [
            ("torch.accelerator.synchronize", lambda: _tried(_accelerator(torch_type).synchronize, index)),
            (f"torch.{torch_type}.synchronize", lambda: _tried(module.synchronize, index)),
            (f"torch.{torch_type}.synchronize()", lambda: _tried(module.synchronize)),
            ("copy of one element to the host", lambda: _tried(_copy_to_host(torch_type, index))),
        ]
    )


def event_pair(torch_type: str, index: int, wait: Callable[[], object]) -> Hook:
    """A factory of two timing events that were seen to measure work plausibly."""
    import torch

    module = device_module(torch_type)
    device = torch.device(torch_type, index)

    def generic() -> tuple[Any, Any]:
        return torch.Event(device, enable_timing=True), torch.Event(device, enable_timing=True)

    def own() -> tuple[Any, Any]:
        return module.Event(enable_timing=True), module.Event(enable_timing=True)

    return _first_that_works(
        [
            ("torch.Event", lambda: _tried_events(generic, device, wait)),
            (f"torch.{torch_type}.Event", lambda: _tried_events(own, device, wait)),
        ]
    )


def peak_memory(torch_type: str, index: int, wait: Callable[[], object]) -> Hook:
    """Return functions (reset, read, in use) of a peak counter that has counted a trial allocation.

    The last one returns the bytes that are allocated now, or None if the module does not count them.
    """
    module = device_module(torch_type)

    def trial(owner: Callable[[], Any]) -> tuple[Callable[[], object], Callable[[], int], Callable[[], Any]]:
        found = owner()
        reset = partial(found.reset_peak_memory_stats, index)
        read = partial(found.max_memory_allocated, index)
        now = partial(getattr(found, "memory_allocated", lambda _: None), index)
        return *_tried_counter(reset, read, torch_type, index, wait), now

    return _first_that_works(
        [
            ("torch.accelerator.max_memory_allocated", lambda: trial(lambda: _accelerator(torch_type))),
            (f"torch.{torch_type}.max_memory_allocated", lambda: trial(lambda: module)),
        ]
    )


def free_and_total_memory(torch_type: str, index: int) -> Hook:
    """``call`` is the pair (free bytes, total bytes)."""
    module = device_module(torch_type)
    return _first_that_works(
        [
            (
                "torch.accelerator.get_memory_info",
                lambda: _pair(_accelerator(torch_type).get_memory_info(index)),
            ),
            (f"torch.{torch_type}.mem_get_info", lambda: _pair(module.mem_get_info(index))),
            (f"torch.{torch_type}.recommended_max_memory", lambda: _recommended(module)),
        ]
    )


def model_name(torch_type: str, index: int) -> Hook:
    """``call`` is the name of the hardware as its own module gives it."""
    module = device_module(torch_type)
    return _first_that_works(
        [
            (f"torch.{torch_type}.get_device_name", lambda: str(module.get_device_name(index))),
            (
                f"torch.{torch_type}.get_device_properties",
                lambda: str(module.get_device_properties(index).name),
            ),
            (f"torch.backends.{torch_type}.get_name", lambda: _backend_name(torch_type)),
        ]
    )


def telemetry(torch_type: str, index: int) -> tuple[dict[str, float], str]:
    """Readings by key, in base units, and why the others are missing."""
    module = device_module(torch_type)
    readings: dict[str, float] = {}
    problems = []
    for name, key, factor in TELEMETRY:
        try:
            value = float(getattr(module, name)(index)) * factor
        except HOOK_ERRORS as error:
            problems.append(f"{name}: {first_line(error)}")
        else:
            if math.isfinite(value):
                readings[key] = value
    return readings, "; ".join(problems)


def throttled_for(torch_type: str, index: int) -> str:
    """What ``torch.DEVICE.throttle_reasons(index)`` says, a line at most; "" where there is no such hook."""
    try:
        return str(device_module(torch_type).throttle_reasons(index)).strip()[:200]
    except HOOK_ERRORS:
        return ""


def distributed_backend(torch_type: str) -> tuple[str | None, str]:
    """The name of the default collectives backend, or None and the reason."""
    import torch.distributed as dist

    if not dist.is_available():
        return None, "this torch is built without torch.distributed"
    getter = getattr(dist, "get_default_backend_for_device", None)
    try:
        if getter is not None:
            return str(getter(torch_type)), ""
        return str(dist.Backend.default_device_backend_map[torch_type]), ""
    except HOOK_ERRORS as error:
        return None, first_line(error)


def profiler_activity(torch_type: str) -> tuple[str | None, str]:
    """The activity of ``torch.profiler`` that records the device, or None and the reason."""
    try:
        from torch.profiler import supported_activities

        names = sorted(activity.name for activity in supported_activities())
    except HOOK_ERRORS as error:
        return None, first_line(error)
    found = next((name for name in names if name.lower() == torch_type), None)
    return found, "" if found else f"torch.profiler records only {', '.join(names)} here"


def likely_unit(shown: float, took: float) -> str:
    """What events seem to count that show ``shown`` for what ``took`` so long; "" where nobody can say."""
    for ratio, unit in UNITS:
        if 0.7 * ratio <= shown / took <= 1.1 * ratio:
            return f": elapsed_time seems to return {unit} instead of milliseconds"
    return ""


class ImpossibleTimeError(RuntimeError):
    """Events that answer, with a time that cannot be."""


def _first_that_works(candidates: list[tuple[str, Callable[[], Any]]]) -> Hook:
    problems, impossible = [], ""
    for source, attempt in candidates:
        try:
            value = attempt()
        except HOOK_ERRORS as error:
            impossible = impossible or (str(error) if isinstance(error, ImpossibleTimeError) else "")
            problems.append(f"{source}: {first_line(error)}")
        else:
            return Hook(value, source, "; ".join(problems))
    return Hook(None, "", "; ".join(problems), impossible)


def _accelerator(torch_type: str) -> Any:
    import torch

    if current_accelerator() != torch_type:
        raise LookupError(f"{torch_type!r} is not the current accelerator")
    found = getattr(torch, "accelerator", None)
    if found is None:
        raise LookupError(f"torch {torch.__version__} has no torch.accelerator, which came with 2.6")
    return found


def _set_index(accelerator: Any, index: int) -> bool:
    set_index = getattr(accelerator, "set_device_index", None) or accelerator.set_device_idx
    set_index(index)
    return True


def _tried(function: Callable[..., object], *args: object) -> Callable[[], object]:
    call = partial(function, *args) if args else function
    call()
    return call


def _copy_to_host(torch_type: str, index: int) -> Callable[[], object]:
    import torch

    element = torch.zeros(1, device=torch.device(torch_type, index))

    def wait() -> object:
        return element.add_(0).cpu()

    return wait


def _tried_events(
    make: Callable[[], tuple[Any, Any]], device: Any, wait: Callable[[], object]
) -> Callable[[], tuple[Any, Any]]:
    import torch

    start, stop = make()
    block = torch.ones(64, 64, device=device)
    wait()
    began = time.perf_counter()
    start.record()
    seconds = wall_s = 0.0
    while seconds == 0.0 and wall_s < COARSEST_S:  # a clock of coarse steps shows nothing of little work
        for _ in range(8):
            block = block @ block * 0.01
        stop.record()
        stop.synchronize()
        wall_s = time.perf_counter() - began
        seconds = start.elapsed_time(stop) / 1e3
    if not (math.isfinite(seconds) and 0 < seconds <= wall_s * 1.1 + 1e-3):
        raise ImpossibleTimeError(
            f"events gave {seconds} s for work that took {wall_s:.6f} s of wall time"
            + likely_unit(seconds, wall_s)
        )
    return make


def _tried_counter(
    reset: Callable[[], object],
    read: Callable[[], int],
    torch_type: str,
    index: int,
    wait: Callable[[], object],
) -> tuple[Callable[[], object], Callable[[], int]]:
    import torch

    reset()
    block = torch.empty(TRIAL_BYTES, dtype=torch.uint8, device=torch.device(torch_type, index))
    wait()
    seen = int(read())
    del block
    if seen < TRIAL_BYTES:
        raise RuntimeError(f"counter shows {seen} B after an allocation of {TRIAL_BYTES} B")
    return reset, read


def _pair(values: Any) -> tuple[int, int]:
    free, total = values
    return int(free), int(total)


def _recommended(module: Any) -> tuple[int, int]:
    """Free and total bytes where only a recommended maximum is known (Metal shares the host's memory)."""
    total = int(module.recommended_max_memory())
    return total - int(module.driver_allocated_memory()), total


def _backend_name(torch_type: str) -> str:
    import torch

    return str(getattr(torch.backends, torch_type).get_name())
