"""Events: recording, waiting, measuring time."""

from __future__ import annotations

from typing import Any

import torch

from torchgauge.suites.conformance.check_context import CheckContext, check

GROUP = "event"


def _recorded(context: CheckContext, *, timing: bool = False) -> Any:
    """An event recorded on the current stream; the check ends where the device has none."""
    context.not_on_host("the host runs operators in order and has no events")
    with context.unless_refused("the device cannot record an event"):
        event = torch.Event(device=context.device, enable_timing=timing)
        event.record()
    return event


def _wait(context: CheckContext, event: Any) -> None:
    with context.unless_refused("the device cannot wait for an event"):
        event.synchronize()


@check("torch.Event.record", tier="smoke")
def record(context: CheckContext) -> None:
    """An event is recorded on the current stream."""
    context.expect(_recorded(context) is not None, "record() returned no event")


@check("torch.Event.synchronize, query")
def synchronize(context: CheckContext) -> None:
    """After waiting for an event, it says that it has happened."""
    there = context.send(context.numbers(64, 64))
    product = there @ there
    event = _recorded(context)
    _wait(context, event)
    context.expect(event.query(), "event.query() is false after event.synchronize()")
    context.same(product, context.numbers(64, 64) @ context.numbers(64, 64), rtol=1e-4, atol=1e-4)


@check("torch.Event.elapsed_time")
def elapsed_time(context: CheckContext) -> None:
    """The time between two events is finite, not negative and grows with the work between them."""
    start = _recorded(context, timing=True)
    there = context.send(context.numbers(64, 64))
    for _ in range(10):
        there = (there @ there).clamp(-1, 1)
    end = _recorded(context, timing=True)
    _wait(context, end)
    with context.unless_refused("events cannot measure time"):
        found = start.elapsed_time(end)
    context.facts["milliseconds"] = float(found)
    context.expect(0.0 <= found < 60_000.0, f"elapsed_time() gave {found} ms for ten small matmuls")


@check("torch.Stream.wait_event")
def stream_waits(context: CheckContext) -> None:
    """A stream waits for an event."""
    event = _recorded(context)
    with context.unless_refused("the device has no stream"):
        stream = torch.Stream(device=context.device)
    stream.wait_event(event)
    stream.synchronize()
    context.expect(stream.query(), "stream.query() is false after wait_event() and synchronize()")


@check("torch.<device>.Event.record, synchronize, query")
def own(context: CheckContext) -> None:
    """The device module's own event, where it has one, says that it has happened after it was waited for."""
    context.not_on_host("the host runs operators in order and has no events")
    made = getattr(context.module, "Event", None)
    if made is None:
        context.unsupported(f"torch.{context.type} has no Event; torch.Event has its own checks")
    with context.unless_refused("the device's own event cannot be created, recorded and waited for"):
        event = made()
        there = context.send(context.numbers(64, 64))
        product = there @ there
        event.record()
        event.synchronize()
    context.same(product, context.numbers(64, 64) @ context.numbers(64, 64), rtol=1e-4, atol=1e-4)
    found = event.query()
    context.expect(found is True, f"torch.{context.type}.Event.query() is {found!r} after synchronize()")
