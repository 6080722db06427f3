"""Events: recording, waiting, measuring time."""

from __future__ import annotations

from typing import Any

import torch

from torchgauge.suites.conformance.bench import Bench, check

GROUP = "event"


def _recorded(bench: Bench, *, timing: bool = False) -> Any:
    """An event recorded on the current stream; the check ends where the device has none."""
    bench.not_on_host("the host runs operators in order and has no events")
    with bench.unless_refused("the device records no event"):
        event = torch.Event(device=bench.device, enable_timing=timing)
        event.record()
    return event


def _wait(bench: Bench, event: Any) -> None:
    with bench.unless_refused("an event cannot be waited for"):
        event.synchronize()


@check("torch.Event.record", tier="smoke")
def record(bench: Bench) -> None:
    """An event is recorded on the current stream."""
    bench.expect(_recorded(bench) is not None, "there is no event")


@check("torch.Event.synchronize, query")
def synchronize(bench: Bench) -> None:
    """After waiting for an event, it says that it has happened."""
    there = bench.send(bench.numbers(64, 64))
    product = there @ there
    event = _recorded(bench)
    _wait(bench, event)
    bench.expect(event.query(), "an event that was waited for says that it has not happened")
    bench.same(product, bench.numbers(64, 64) @ bench.numbers(64, 64), rtol=1e-4, atol=1e-4)


@check("torch.Event.elapsed_time")
def elapsed_time(bench: Bench) -> None:
    """The time between two events is finite, not negative and grows with the work between them."""
    start = _recorded(bench, timing=True)
    there = bench.send(bench.numbers(64, 64))
    for _ in range(10):
        there = (there @ there).clamp(-1, 1)
    end = _recorded(bench, timing=True)
    _wait(bench, end)
    with bench.unless_refused("events take no time"):
        found = start.elapsed_time(end)
    bench.facts["milliseconds"] = float(found)
    bench.expect(0.0 <= found < 60_000.0, f"ten small products took {found} ms by events")


@check("torch.Stream.wait_event")
def stream_waits(bench: Bench) -> None:
    """A stream waits for an event."""
    event = _recorded(bench)
    with bench.unless_refused("the device gives no stream"):
        stream = torch.Stream(device=bench.device)
    stream.wait_event(event)
    stream.synchronize()
    bench.expect(stream.query(), "a stream that waited for an event and was waited for says that it is busy")
