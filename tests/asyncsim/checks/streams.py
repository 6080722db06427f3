"""Streams run later, events tell the stream's time, and kernels take what was planned."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
import torch

from torchgauge_asyncsim import device_module as asyncsim

DEVICE = torch.device("asyncsim")
LATE_S = 30.0
"""How late a busy machine may end what the device ends in time."""


def planned(seconds: float, name: str = "aten::mm") -> torch.Tensor:
    """A matrix whose product takes so long, on a device that has nothing to do."""
    asyncsim.forget_plans()
    block = torch.ones(8, 8, device=DEVICE)
    torch.mm(block, block)
    asyncsim.synchronize()
    asyncsim.plan_kernel(name, seconds)
    return block


def timed(call: Callable[[], object]) -> float:
    """Seconds of the host's clock."""
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def pair() -> tuple[torch.Event, torch.Event]:
    """Two events that take times."""
    return torch.Event(DEVICE, enable_timing=True), torch.Event(DEVICE, enable_timing=True)


def check_a_launch_returns_before_its_kernel_ends() -> None:
    """Launching returns at once, the end comes when it was planned, and nobody is told before."""
    block = planned(2.0)
    launched = timed(lambda: torch.mm(block, block))
    event = torch.Event(DEVICE)
    event.record()
    assert not event.query()
    assert not torch.accelerator.current_stream().query()
    waited = launched + timed(asyncsim.synchronize)
    assert launched < 1.9, launched
    assert 2.0 - 1e-4 <= waited < LATE_S, waited
    assert event.query()
    assert torch.accelerator.current_stream().query()


def check_what_is_read_without_waiting_is_old() -> None:
    """A kernel's result is not there before its time: a copy that does not wait brings what was there."""
    block = planned(2.0)
    target = torch.zeros(8, 8, device=DEVICE)
    host = torch.zeros(8, 8)
    asyncsim.set_fault("copy-returns-early")
    try:
        torch.mm(block, block, out=target)
        host.copy_(target)
        early = host.tolist()
    finally:
        asyncsim.set_fault("copy-returns-early", False)
    asyncsim.synchronize()
    assert early == torch.zeros(8, 8).tolist()
    assert target.tolist() == torch.full((8, 8), 8.0).tolist()


def check_events_show_what_was_planned() -> None:
    """Twenty kernels take twenty times as long by events, to a microsecond, whatever the machine does."""
    for seconds in (0.00005, 0.001, 0.01):
        block = planned(seconds)
        start, end = pair()
        asyncsim.plan_kernel("aten::fill_", 0.05)  # the stream is busy until all twenty are submitted
        block.fill_(1.0)
        start.record()
        for _ in range(20):
            torch.mm(block, block)
        end.record()
        end.synchronize()
        elapsed = start.elapsed_time(end) / 1e3
        assert abs(elapsed - 20 * seconds) < 1e-6 or elapsed > 0.05, (seconds, elapsed)
        assert elapsed >= 20 * seconds - 1e-6


def check_events_refuse_before_they_happened() -> None:
    """The time of an event that has not happened is refused, not invented."""
    block = planned(2.0)
    start, end = pair()
    start.record()
    torch.mm(block, block)
    end.record()
    with pytest.raises(RuntimeError, match="must be completed"):
        start.elapsed_time(end)
    end.synchronize()
    assert start.elapsed_time(end) >= 1999.0


def check_two_streams_run_beside_each_other() -> None:
    """Kernels on two streams end together, kernels on one after each other."""
    block = planned(0.5)
    first, second = torch.Stream(DEVICE), torch.Stream(DEVICE)

    def beside() -> None:
        for stream in (first, second):
            with stream:
                torch.mm(block, block)
        asyncsim.synchronize()

    def behind() -> None:
        with first:
            torch.mm(block, block)
            torch.mm(block, block)
        asyncsim.synchronize()

    times = [timed(beside) for _ in range(3)]
    assert 0.5 - 1e-4 <= min(times) < 0.95, times
    assert timed(behind) >= 1.0 - 1e-4


def check_a_stream_waits_for_anothers_event() -> None:
    """What comes after a wait begins when the event has happened."""
    block = planned(0.3)
    first, second = torch.Stream(DEVICE), torch.Stream(DEVICE)
    event = torch.Event(DEVICE)
    began = time.perf_counter()
    with first:
        torch.mm(block, block)
        event.record()
    with second:
        second.wait_event(event)
        product = torch.mm(block, block)
        second.synchronize()
    assert time.perf_counter() - began >= 0.6 - 1e-4
    assert product.tolist() == torch.full((8, 8), 8.0).tolist()


def check_the_other_device_has_streams_of_its_own() -> None:
    """Waiting for one device does not wait for the other, and copies between them are in order."""
    block = planned(2.0)
    there = torch.ones(8, 8, device="asyncsim:1")
    asyncsim.synchronize(1)
    torch.mm(block, block)
    assert timed(lambda: asyncsim.synchronize(1)) < 1.9
    product = torch.mm(block, block).to("asyncsim:1")
    assert product.device == torch.device("asyncsim:1")
    assert (product + there).tolist() == torch.full((8, 8), 9.0).tolist()


def check_copies_to_the_host_wait_and_those_to_pinned_memory_do_not() -> None:
    """A copy into pageable memory is there when it returns; into page-locked memory it comes later."""
    block = planned(2.0)
    began = time.perf_counter()
    torch.mm(block, block)
    block.cpu()
    assert time.perf_counter() - began >= 2.0 - 1e-4
    pinned = torch.zeros(8, 8).pin_memory()
    assert pinned.is_pinned()
    product = torch.mm(block, block)
    launched = timed(lambda: pinned.copy_(product, non_blocking=True))
    assert launched < 1.9, launched
    asyncsim.synchronize()
    assert pinned.tolist() == torch.full((8, 8), 8.0).tolist()


def check_memory_goes_round_in_stream_order() -> None:
    """A tensor that is freed while its kernel waits does not spoil what takes its place."""
    block = planned(0.2)
    products = [torch.mm(block * number, block) for number in range(10)]
    assert [each[0, 0].item() for each in products] == [8.0 * number for number in range(10)]


def check_a_failed_kernel_is_told_when_the_host_waits() -> None:
    """As on real devices: the launch returns, and the next wait says what went wrong, once."""
    asyncsim.forget_plans()
    table = torch.ones(4, device=DEVICE)
    table.gather(0, torch.tensor([7], device=DEVICE))
    with pytest.raises(RuntimeError, match="out of bounds"):
        asyncsim.synchronize()
    asyncsim.synchronize()


def check_a_planned_launch_occupies_the_host() -> None:
    """A hundred launches of a millisecond take a tenth of a second of the host."""
    block = planned(0.0)
    asyncsim.plan_launch(0.001)
    try:
        assert 0.1 <= timed(lambda: [torch.mm(block, block) for _ in range(100)]) < LATE_S
    finally:
        asyncsim.plan_launch(0.0)


def check_plans_can_be_taken_back_and_bad_ones_are_refused() -> None:
    """A plan ends with None; a time below zero is refused."""
    block = planned(2.0)
    asyncsim.plan_kernel("aten::mm", None)
    torch.mm(block, block)
    assert timed(asyncsim.synchronize) < 1.9
    with pytest.raises(RuntimeError, match="cannot take"):
        asyncsim.plan_kernel("aten::mm", -1.0)
