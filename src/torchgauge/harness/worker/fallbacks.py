"""Which operators of one step ran on the host through a fallback: read from one profiled step, after timing.

Why evidence and not registration: a backend may register one kernel for every operator that it lacks, and
what that kernel does is its own affair. Three things are told apart:

* PyTorch's own fallback copies its arguments with ``aten::_to_cpu`` (aten/src/ATen/native/CPUFallback.cpp;
  most vendors' fallbacks call it). An operator with that event inside *ran on the host*.
* An operator that has no kernel of its own on the device, and inside which tensors moved between devices,
  *ran on the host*: below it are the backend's fallback and the layers above every kernel, and those layers
  copy within the device only (autograd keeps a clone of what is overwritten, autocast converts). A move is
  the device's copy hook (``aten::_copy_from``, aten/src/ATen/native/Copy.cpp) from and to one dtype inside
  ``aten::_to_copy``, or ``aten::_copy_from_and_resize``, with which fallbacks write back.
* An operator that has a kernel of its own which copies to the host, computes there and copies back *ran on
  the host* as well (``host_kernels.py``).
* An operator that has no kernel of its own and shows no move: *how it was served is not known*. It may be
  computed on the device, or on the host where the two share memory. It is counted apart and accuses nobody.

A fallback that copies by means which the profiler does not see is therefore not found.

Runs in the worker, on Python 3.10 and torch 2.5 and later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from torchgauge.counted import counted
from torchgauge.devices.session import DeviceSession
from torchgauge.harness.worker.host_kernels import host_kernels
from torchgauge.harness.worker.profiled_step import DEVICE_COPY, OPERATOR, Event, profiled
from torchgauge.harness.worker.verdicts import first_line
from torchgauge.records import Scalar
from torchgauge.suites.ops.census_static import FALLBACK, NATIVE, dispatch_key, has_fallback, kind_of
from torchgauge.suites.suite import HOST

FALLBACK_COPY = "aten::_to_cpu"
WRITE_BACK = "aten::_copy_from_and_resize"
CONVERSION = "aten::_to_copy"
UNKNOWN = "fallback_unknown"
"""The fact that says why nothing is known."""
SWITCHED_OFF = "switched off"
NAMES = 10
"""Names that a row holds at most."""
UNNAMED = "an operator without a name"


@dataclass(frozen=True)
class Fallbacks:
    """What one profiled step shows.

    ``names`` are the operators that ran on the host, the one with the most time first; ``share`` is the part
    of the step's wall time, 0 to 1, that was spent in them, copies and waiting for the device included.
    ``unproven`` are operators without a kernel of their own and without a sign of a copy. ``own`` are those
    of ``names`` that fell back by a kernel of the device's own.
    """

    names: tuple[str, ...] = ()
    calls: int = 0
    share: float = 0.0
    unproven: tuple[str, ...] = ()
    own: tuple[str, ...] = ()

    @property
    def facts(self) -> dict[str, Scalar]:
        """What a row says."""
        found: dict[str, Scalar] = {
            "fallback_ops": len(self.names),
            "fallback_calls": self.calls,
            "fallback_share": round(self.share, 4),
        }
        if self.names:
            found["fallback_names"] = ", ".join(self.names[:NAMES])
        if self.own:
            found["host_kernels"] = ", ".join(self.own[:NAMES])
        if self.unproven:
            found["fallback_unproven"] = len(self.unproven)
            found["fallback_unproven_names"] = ", ".join(self.unproven[:NAMES])
        return found

    @property
    def text(self) -> str:
        """What the result is degraded by; empty where nothing ran on the host."""
        if not self.names:
            return ""
        number = counted(len(self.names), "operator")
        more = ", ..." if len(self.names) > NAMES else ""
        share = f"{self.share:.0%}" if self.share >= 0.01 else "under 1%"
        text = f"{number} ({share} of the step) ran on the host: {', '.join(self.names[:NAMES])}{more}"
        by = f"; kernels of the device that copy to the host and back: {', '.join(self.own[:NAMES])}"
        return text + (by if self.own else "")


def possible(session: DeviceSession) -> bool:
    """Whether the device is a torch device that an operator could fall back from."""
    device = session.torch_device
    return device is not None and device.type != HOST


def look(step: Callable[[], Any], session: DeviceSession) -> Fallbacks | str:
    """Run ``step`` once under the profiler; the reason where that failed, never an exception."""
    try:
        without_kernel = _without_kernel(session.torch_device.type)
        events, wall_s = profiled(step, session)
        return read(events, wall_s, without_kernel) if events else "the profiler recorded nothing"
    except Exception as error:  # noqa: BLE001  what cannot be looked at is a fact of the row, not a status
        return first_line(error)


def read(events: Sequence[Event], wall_s: float, without_kernel: Callable[[str], bool]) -> Fallbacks:
    """The fallbacks among the ``events`` of a step that took ``wall_s`` seconds.

    ``without_kernel`` says of an operator's name whether the device serves it by its backend's fallback only.
    """
    proven: dict[Event, str] = {}
    unproven: set[str] = set()
    for event in events:
        if event.name == FALLBACK_COPY:
            operator = event.around if event.around and OPERATOR.fullmatch(event.around.name) else None
            proven[operator or event] = operator.name if operator else UNNAMED
        elif _moves(event):
            served = next((each for each in event.inside() if without_kernel(each.name)), None)
            if served is not None:
                proven[served] = served.name
        elif without_kernel(event.name) and not any(without_kernel(each.name) for each in event.inside()):
            unproven.add(event.name)
    own = host_kernels(events, _moves, proven)
    proven.update(own)
    times: dict[str, int] = {}
    for event, name in proven.items():
        times[name] = times.get(name, 0) + event.end - event.start
    covered_s = _union((event.start, event.end) for event in proven) * 1e-9
    return Fallbacks(
        names=tuple(sorted(times, key=lambda name: (-times[name], name))),
        calls=len(proven),
        share=min(1.0, covered_s / wall_s) if wall_s > 0 else 0.0,
        unproven=tuple(sorted(unproven - times.keys())),
        own=tuple(sorted(set(own.values()))),
    )


def _moves(event: Event) -> bool:
    """Whether a tensor goes from one device to another: no clone, and no conversion on the spot."""
    if event.name == WRITE_BACK:
        return True
    if event.name != DEVICE_COPY or event.span.converts:
        return False
    return any(each.name == CONVERSION for each in event.inside())


def _union(spans: Iterable[tuple[int, int]]) -> int:
    """How much time the spans cover together: those of several threads or within one another count once."""
    covered = reached = 0
    for start, end in sorted(spans):
        covered += max(0, end - max(start, reached))
        reached = max(reached, end)
    return covered


def _without_kernel(device_type: str) -> Callable[[str], bool]:
    """Whether an operator, named without its overload, is served by the backend's fallback only.

    The profiler of older versions says no overload, so an operator with a kernel for any of them is native.
    """
    import torch

    key = dispatch_key(device_type)
    if not has_fallback(key):
        return lambda name: False
    overloads: dict[str, list[str]] = {}
    for full in torch._C._dispatch_get_all_op_names():
        overloads.setdefault(full.partition(".")[0], []).append(full)
    known: dict[str, bool] = {}

    def without(name: str) -> bool:
        if name not in known:
            kinds = {kind_of(full, key, fallback=True) for full in overloads.get(name, ())}
            known[name] = FALLBACK in kinds and NATIVE not in kinds
        return known[name]

    return without
