"""Each fault that can be switched on in a running process does what the README says, and can be undone."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

import pytest
import torch

from torchgauge_asyncsim import device_module as asyncsim

DEVICE = torch.device("asyncsim")


@contextlib.contextmanager
def fault(name: str) -> Iterator[None]:
    """The device with one fault."""
    asyncsim.set_fault(name)
    try:
        yield
    finally:
        asyncsim.set_fault(name, False)
        asyncsim.synchronize()
        asyncsim.synchronize(1)
        asyncsim.forget_plans()


def milliseconds(seconds: float = 0.02) -> float:
    """What events show of a kernel that takes ``seconds``."""
    block = torch.ones(8, 8, device=DEVICE)
    asyncsim.synchronize()
    asyncsim.plan_kernel("aten::mm", seconds)
    start, end = torch.Event(DEVICE, enable_timing=True), torch.Event(DEVICE, enable_timing=True)
    start.record()
    torch.mm(block, block)
    end.record()
    asyncsim.synchronize()
    return start.elapsed_time(end)


def wall(seconds: float = 0.3) -> float:
    """Seconds of the host's clock around the same, with the wait."""
    block = torch.ones(8, 8, device=DEVICE)
    asyncsim.synchronize()
    asyncsim.plan_kernel("aten::mm", seconds)
    began = time.perf_counter()
    torch.mm(block, block)
    asyncsim.synchronize()
    return time.perf_counter() - began


def check_sync_returns_early() -> None:
    """The wait returns at once; what is fetched is there nevertheless."""
    wall(0.0)
    with fault("sync-returns-early"):
        assert wall(2.0) < 1.9
        assert (
            torch.mm(torch.ones(8, 8, device=DEVICE), torch.ones(8, 8, device=DEVICE)).sum().item() == 512.0
        )
    assert wall() >= 0.3 - 1e-4


def check_event_units_and_signs() -> None:
    """Zero, a thousand times too much or too little, below zero, half as much again."""
    expected = {"events-zero": 0.0, "events-in-microseconds": 2e4, "events-in-seconds": 0.02}
    expected |= {"events-negative": -20.0, "events-too-long": 30.0}
    for name, value in expected.items():
        with fault(name):
            found = milliseconds()
            assert abs(found - value) <= abs(value) * 0.9, (name, found)
    assert milliseconds() >= 20.0 - 1e-3


def check_events_stamped_on_host() -> None:
    """The time is that of launching, not of the kernel."""
    with fault("events-stamped-on-host"):
        assert milliseconds(2.0) < 1900.0


def check_clocks_lie_together() -> None:
    """Neither wait nor events show the kernel."""
    with fault("clocks-lie-together"):
        assert wall(2.0) < 1.9
    with fault("clocks-lie-together"):
        assert milliseconds(2.0) < 1900.0


def check_query_always_true() -> None:
    """What has not happened is said to have."""
    for name, expected in (("query-always-true", True), ("record-event-ignored", True)):
        block = torch.ones(8, 8, device=DEVICE)
        asyncsim.synchronize()
        with fault(name):
            asyncsim.plan_kernel("aten::mm", 0.3)
            torch.mm(block, block)
            event = torch.Event(DEVICE)
            event.record()
            assert event.query() is expected, name


def check_wait_event_ignored() -> None:
    """What should come after an event comes before it."""
    block, result = torch.ones(8, 8, device=DEVICE), torch.zeros(8, 8, device=DEVICE)
    first, second = torch.Stream(DEVICE), torch.Stream(DEVICE)
    asyncsim.synchronize()
    with fault("wait-event-ignored"):
        asyncsim.plan_kernel("aten::mm", 0.5)
        with first:
            torch.mm(block, block, out=result)
        second.wait_stream(first)
        with second:
            early = result.clone()
            second.synchronize()
        assert early.tolist() == torch.zeros(8, 8).tolist()


def check_stream_order_violated() -> None:
    """Of two kernels that wait the second runs first."""
    block, value = torch.ones(8, 8, device=DEVICE), torch.ones(1, device=DEVICE)
    other, stream = torch.Stream(DEVICE), torch.Stream(DEVICE)
    asyncsim.synchronize()
    with fault("stream-order-violated"):
        asyncsim.plan_kernel("aten::mm", 0.5)
        with other:
            torch.mm(block, block)
        stream.wait_stream(other)
        with stream:
            value.add_(1)
            value.mul_(3)
        asyncsim.synchronize()
        assert value.item() == 4.0


def check_record_stream_ignored() -> None:
    """Memory that another stream still uses is given out again."""
    side = torch.Stream(DEVICE)
    block = torch.ones(512, 512, device=DEVICE)
    asyncsim.synchronize()
    with fault("record-stream-ignored"):
        asyncsim.plan_kernel("aten::mm", 0.3)
        place = block.data_ptr()
        with side:
            torch.mm(block, block)
        block.record_stream(side)
        del block
        assert torch.empty(512, 512, device=DEVICE).data_ptr() == place


def check_copies() -> None:
    """A tail is lost in copies beyond 2^17 or 2^20 elements."""
    for name, size, lost in (
        ("copy-drops-tail", 1 << 17, False),
        ("copy-drops-tail", (1 << 17) + 1, True),
        ("copy-drops-large-tail", 1 << 20, False),
        ("copy-drops-large-tail", (1 << 20) + 1, True),
    ):
        target = torch.zeros(size, device=DEVICE)
        with fault(name):
            target.copy_(torch.ones(size))
        assert (target.cpu()[-1].item() == 0.0) is lost, (name, size)


def check_index_ignored() -> None:
    """Asked for index 1, the tensor lies on index 0."""
    with fault("index-ignored"):
        assert torch.ones(2, device="asyncsim:1").device.index == 0


def check_oom_is_plain() -> None:
    """Full memory is a RuntimeError without the usual words."""
    with fault("oom-is-plain"):
        with pytest.raises(RuntimeError, match="no room") as raised:
            torch.empty(1 << 40, dtype=torch.uint8, device=DEVICE)
        assert not isinstance(raised.value, torch.OutOfMemoryError)
        assert "memory" not in str(raised.value)


def check_host_copies() -> None:
    """The host computes, no fallback of PyTorch's shows, and results are right."""
    from torch.profiler import ProfilerActivity, profile

    x = torch.randn(4, 4)
    there = x.to(DEVICE)
    with fault("host-copies"), profile(activities=[ProfilerActivity.CPU]) as found:
        result = torch.mm(there, there)
        asyncsim.synchronize()
    torch.testing.assert_close(result.cpu(), x @ x)
    assert not [event for event in found.events() if event.name == "aten::_to_cpu"]
    assert [event for event in found.events() if event.name == "aten::clone"]


def check_wrong_results() -> None:
    """Each in its own way, and right again without the fault."""
    torch.manual_seed(0)
    x = torch.randn(6, 4)
    large = torch.randn((1 << 17) + 5)
    cases = {
        "input-mutated": (lambda a: (torch.nn.functional.gelu(a), a)[1].clone(), x),
        "noncontiguous-wrong": (lambda a: a.t() + 1, x),
        "expanded-wrong": (lambda a: a[:1].expand(3, 4) + 1, x),
        "large-wrong": (lambda a: a + 1, large),
        "nan-dropped": (lambda a: a + float("nan"), x),
    }
    for name, (call, value) in cases.items():
        expected = call(value.clone())
        with fault(name):
            wrong = call(value.to(DEVICE)).cpu()
        assert not torch.equal(wrong.nan_to_num(7.0), expected.nan_to_num(7.0)), name
        torch.testing.assert_close(call(value.to(DEVICE)).cpu(), expected, equal_nan=True)


def check_zero_size_raises() -> None:
    """An empty tensor is refused by its kernel."""
    with fault("zero-size-raises"), pytest.raises(RuntimeError, match="grid of 0 blocks"):
        torch.ones(0, device=DEVICE) + 1


def check_wrong_promotion() -> None:
    """float32 and bfloat16 give bfloat16."""
    with fault("wrong-promotion"):
        found = torch.ones(2, device=DEVICE) + torch.ones(2, dtype=torch.bfloat16, device=DEVICE)
    assert found.dtype is torch.bfloat16


def check_memory_that_lies() -> None:
    """Counters of zero, and a peak that stays."""
    held = torch.ones(1 << 20, device=DEVICE)
    with fault("memory-zero"):
        assert asyncsim.memory_allocated() == asyncsim.max_memory_allocated() == 0
    with fault("peak-never-reset"):
        peak = asyncsim.max_memory_allocated()
        del held
        asyncsim.reset_peak_memory_stats()
        assert asyncsim.max_memory_allocated() == peak
    asyncsim.reset_peak_memory_stats()
    assert asyncsim.max_memory_allocated() < peak


def check_random_numbers_that_lie() -> None:
    """A seed or a state changes nothing."""
    with fault("seed-ignored"):
        torch.manual_seed(1)
        first = torch.rand(8, device=DEVICE).tolist()
        torch.manual_seed(1)
        assert torch.rand(8, device=DEVICE).tolist() != first
    state = asyncsim.get_rng_state()
    first = torch.rand(8, device=DEVICE).tolist()
    with fault("rng-state-ignored"):
        asyncsim.set_rng_state(state)
        assert torch.rand(8, device=DEVICE).tolist() != first


def check_device_count_changes() -> None:
    """Two at first, one later."""
    with fault("device-count-changes"):
        counts = [asyncsim.device_count() for _ in range(12)]
    assert (counts[0], counts[-1]) == (2, 1), counts


def check_new_parameters() -> None:
    """`.to()` makes new parameters."""
    model = torch.nn.Linear(2, 2)
    weight = model.weight
    with fault("new-parameters"):
        model.to(DEVICE)
    assert model.weight is not weight


def check_a_misspelt_fault_is_refused() -> None:
    """Rather than pass unnoticed."""
    with pytest.raises(ValueError, match="no-such-fault"):
        asyncsim.set_fault("no-such-fault")
