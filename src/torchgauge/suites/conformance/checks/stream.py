"""Streams: making them, making them current, waiting for them."""

from __future__ import annotations

from typing import Any

import torch

from torchgauge.suites.conformance.check_context import CheckContext, check

GROUP = "stream"


def _stream(context: CheckContext) -> Any:
    """A new stream; the check ends where the device says that it has none."""
    context.not_on_host("the host runs operators in order and has no streams")
    with context.unless_refused("the device has no stream"):
        return torch.Stream(device=context.device)


@check("torch.Stream", tier="smoke")
def make(context: CheckContext) -> None:
    """A new stream belongs to the device and is another one than the current."""
    one, other = _stream(context), _stream(context)
    context.expect(one.device.type == context.type, f"a new stream belongs to {one.device}")
    context.expect(one == one, "a stream is not equal to itself")  # noqa: PLR0124
    context.facts["distinct_streams"] = one != other


@check("torch.accelerator.current_stream, set_stream")
def current(context: CheckContext) -> None:
    """A stream becomes current and the former one comes back."""
    stream = _stream(context)
    accelerator = context.accelerator
    before = accelerator.current_stream()
    accelerator.set_stream(stream)
    try:
        context.expect(accelerator.current_stream() == stream, "the stream that was set is not current")
        context.compare(lambda x: x @ x, context.numbers(8, 8))
    finally:
        accelerator.set_stream(before)
    context.expect(accelerator.current_stream() == before, "set_stream() did not restore the former stream")


@check("torch.Stream.synchronize, query")
def synchronize(context: CheckContext) -> None:
    """After waiting for a stream its work is done and it says so."""
    stream = _stream(context)
    there = context.send(context.numbers(64, 64))
    product = there @ there
    stream.wait_stream(context.accelerator.current_stream())
    stream.synchronize()
    context.expect(stream.query(), "stream.query() is false after synchronize()")
    context.same(product, context.numbers(64, 64) @ context.numbers(64, 64), rtol=1e-4, atol=1e-4)


@check("torch.Tensor.record_stream")
def record_stream(context: CheckContext) -> None:
    """A tensor can be kept until another stream has used it."""
    stream = _stream(context)
    there = context.send(context.numbers(16))
    there.record_stream(stream)
    context.same(there, context.numbers(16))
