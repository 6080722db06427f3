"""Streams: making them, making them current, waiting for them."""

from __future__ import annotations

from typing import Any

import torch

from torchgauge.suites.conformance.bench import Bench, check

GROUP = "stream"


def _stream(bench: Bench) -> Any:
    """A new stream; the check ends where the device says that it has none."""
    bench.not_on_host("the host runs operators in order and has no streams")
    with bench.unless_refused("the device gives no stream"):
        return torch.Stream(device=bench.device)


@check("torch.Stream", tier="smoke")
def make(bench: Bench) -> None:
    """A new stream belongs to the device and is another one than the current."""
    one, other = _stream(bench), _stream(bench)
    bench.expect(one.device.type == bench.type, f"a new stream belongs to {one.device}")
    bench.expect(one == one, "a stream is not equal to itself")  # noqa: PLR0124
    bench.facts["distinct_streams"] = one != other


@check("torch.accelerator.current_stream, set_stream")
def current(bench: Bench) -> None:
    """A stream becomes current and the former one comes back."""
    stream = _stream(bench)
    accelerator = bench.accelerator
    before = accelerator.current_stream()
    accelerator.set_stream(stream)
    try:
        bench.expect(accelerator.current_stream() == stream, "the stream that was set is not current")
        bench.compare(lambda x: x @ x, bench.numbers(8, 8))
    finally:
        accelerator.set_stream(before)
    bench.expect(accelerator.current_stream() == before, "the former stream did not come back")


@check("torch.Stream.synchronize, query")
def synchronize(bench: Bench) -> None:
    """After waiting for a stream its work is done and it says so."""
    stream = _stream(bench)
    there = bench.send(bench.numbers(64, 64))
    product = there @ there
    stream.wait_stream(bench.accelerator.current_stream())
    stream.synchronize()
    bench.expect(stream.query(), "a stream that was waited for says that it is busy")
    bench.same(product, bench.numbers(64, 64) @ bench.numbers(64, 64), rtol=1e-4, atol=1e-4)


@check("torch.Tensor.record_stream")
def record_stream(bench: Bench) -> None:
    """A tensor can be kept until another stream has used it."""
    stream = _stream(bench)
    there = bench.send(bench.numbers(16))
    there.record_stream(stream)
    bench.same(there, bench.numbers(16))
