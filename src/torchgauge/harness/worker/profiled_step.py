"""One step under PyTorch's profiler: its events on the host, each with the event around it.

Runs in the worker, on Python 3.10 and torch 2.5 and later.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from torchgauge.devices.session import DeviceSession

DEVICE_COPY = "aten::_copy_from"
OPERATOR = re.compile(r"[A-Za-z_]\w*::\w+(?:\.\w+)?")


class Span(NamedTuple):
    """One event of the profiler, in nanoseconds, as it was found.

    ``converts`` says of the device's copy hook whether it changes the dtype. ``link`` is equal in an operator
    and in the step of autograd that undoes it: the operator's thread and a number, -1 where it has none.
    ``shapes`` are those of an operator's inputs.
    """

    thread: int
    start: int
    end: int
    name: str
    converts: bool = False
    link: tuple[int, int] = (0, -1)
    shapes: str = ""


@dataclass(frozen=True, eq=False)
class Event:
    """A span with the event around it in the same thread."""

    span: Span
    around: Event | None = None

    @property
    def name(self) -> str:
        """What the profiler calls it."""
        return self.span.name

    @property
    def start(self) -> int:
        """When it began, in nanoseconds."""
        return self.span.start

    @property
    def end(self) -> int:
        """When it ended, in nanoseconds."""
        return self.span.end

    def inside(self) -> Iterator[Event]:
        """The events around this one, the innermost first."""
        outer = self.around
        while outer is not None:
            yield outer
            outer = outer.around


def profiled(step: Callable[[], Any], session: DeviceSession) -> tuple[list[Event], float]:
    """Run ``step`` once under the profiler; its events, and the seconds that it took."""
    # Not torch.profiler.profile: its start imports the whole compiler, which takes a second.
    from torch.autograd.profiler import profile

    session.synchronize()
    with profile(record_shapes=True, **_of_all_threads()) as profiler:
        began = time.perf_counter()
        step()
        session.synchronize()
        wall_s = time.perf_counter() - began
    # Not function_events: making those takes as long as many a step.
    events = nested(
        Span(
            each.start_thread_id(),
            each.start_ns(),
            each.start_ns() + each.duration_ns(),
            each.name(),
            each.name() == DEVICE_COPY and len(set(each.dtypes()[:2])) > 1,
            (each.fwd_thread_id() or each.start_thread_id(), each.sequence_nr()),
            repr(each.shapes()),
        )
        for each in profiler.kineto_results.events()
    )
    return events, wall_s


def _of_all_threads() -> dict[str, Any]:
    """What makes the profiler see the threads that a model starts, too; a torch before 2.7 does not."""
    try:
        from torch._C._profiler import _ExperimentalConfig

        return {"experimental_config": _ExperimentalConfig(profile_all_threads=True)}
    except (ImportError, TypeError):
        return {}


def nested(found: Iterable[Span]) -> list[Event]:
    """The found events, thread by thread in the order of their start, each with the one around it."""
    events: list[Event] = []
    inside: list[Event] = []
    running: int | None = None
    for span in sorted(found, key=lambda each: (each.thread, each.start, -each.end)):
        if span.thread != running:
            inside, running = [], span.thread
        while inside and inside[-1].end < span.end:
            inside.pop()
        inside.append(Event(span, inside[-1] if inside else None))
        events.append(inside[-1])
    return events
