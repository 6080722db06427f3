"""Tensors, storages, operators and random numbers on the simulated device."""

from __future__ import annotations

import gc
import re
import sys
import warnings
from collections.abc import Callable

import pytest
import torch
from torch import nn

DEVICE = torch.device("npusim")


def raises(kind: type[BaseException], words: str, call: Callable[[], object]) -> None:
    """Assert that a call raises with these words in its message."""
    with pytest.raises(kind, match=re.escape(words)):
        call()


def check_registered() -> None:
    """PyTorch knows the device by name, as the accelerator, with one index."""
    assert torch.accelerator.current_accelerator() == torch.device("npusim")
    assert torch.accelerator.device_count() == 1
    assert torch.npusim.is_available()
    assert torch.get_device_module("npusim") is torch.npusim
    assert torch.ones(1, device=DEVICE).is_npusim
    assert torch.ones(1).npusim().device == torch.device("npusim:0")


def check_dynamo_not_imported() -> None:
    """Importing torch with the device does not import Dynamo."""
    assert "torch._dynamo" not in sys.modules


def check_second_index_refused() -> None:
    """A tensor cannot be made on an index that does not exist."""
    raises(RuntimeError, "invalid device ordinal", lambda: torch.ones(2, device="npusim:1"))
    raises(RuntimeError, "invalid device ordinal", lambda: torch.npusim.set_device(1))


def check_storage_outlives_tensor() -> None:
    """Memory stays alive as long as a view needs it, without its base."""
    view = torch.arange(1000, device=DEVICE)[500:]
    gc.collect()
    noise = [torch.zeros(1000, device=DEVICE, dtype=torch.int64) for _ in range(20)]
    assert view[0].item() == 500
    del noise


def check_out_arguments() -> None:
    """`out=` is written in place, or resized when its size is wrong, also when the result is empty."""
    left = torch.arange(6.0, device=DEVICE).view(2, 3)
    fitting, empty, wrong = (torch.empty(n, device=DEVICE) for n in ((2, 3), (0,), (7,)))
    before = fitting.data_ptr()
    torch.add(left, left, out=fitting)
    assert fitting.data_ptr() == before
    with warnings.catch_warnings(record=True):
        warnings.simplefilter("always")
        for out in (empty, wrong):
            torch.add(left, left, out=out)
            assert torch.equal(out, fitting)
    nothing = torch.empty(0, device=DEVICE)
    torch.add(left[:0], 1, out=nothing)
    assert nothing.shape == (0, 3)


def check_type_promotion_of_numbers() -> None:
    """A Python number promotes types as it does on the CPU."""
    for dtype in (torch.int32, torch.float16, torch.bool):
        for shape in ((), (3,)):
            for number in (True, 2, 2.5):
                host = torch.ones(shape, dtype=dtype) + number
                assert (torch.ones(shape, dtype=dtype, device=DEVICE) + number).dtype == host.dtype
    ones = torch.ones(3, device=DEVICE)
    assert torch.where(ones > 0, ones, 0.0).dtype == torch.float32


def check_complex_and_negative_views() -> None:
    """Conjugate and negative views are copied without endless recursion, also where a kernel makes them."""
    host = torch.tensor([1 + 2j, 3 - 1j])
    device = host.to(DEVICE)
    assert torch.equal(device.conj().clone().cpu(), host.conj())
    assert torch.equal(device.conj().cpu(), host.conj())
    assert torch.equal(device.conj().imag.cpu(), host.conj().imag)
    target = torch.zeros(2, dtype=torch.complex64, device=DEVICE)
    target.conj().copy_(device)
    assert torch.equal(target.cpu(), host.conj())
    factors, pivots = torch.linalg.lu_factor(torch.tensor([[1 + 2j, 3], [2j, 1]]))
    solved = torch.linalg.lu_solve(factors.to(DEVICE), pivots.to(DEVICE), device.view(1, 2), left=False)
    assert torch.equal(solved.cpu(), torch.linalg.lu_solve(factors, pivots, host.view(1, 2), left=False))


def check_mixed_devices_refused() -> None:
    """Device and CPU tensors do not mix, except CPU scalars and CPU indices."""
    device, host = torch.ones(3, device=DEVICE), torch.ones(3)
    for call in (
        lambda: device + host,
        lambda: torch.cat([device, host]),
        lambda: device.unsqueeze(0) @ host.unsqueeze(1),
        lambda: nn.functional.linear(device, torch.ones(2, 3)),
        lambda: nn.Conv1d(1, 1, 1)(device.view(1, 1, 3)),
        lambda: torch.nn.functional.embedding(torch.tensor([0, 1]), torch.ones(2, 2, device=DEVICE)),
    ):
        raises(RuntimeError, "same device", call)
    assert (device + torch.tensor(2.0)).sum().item() == 9
    assert device[torch.tensor([0, 2])].shape == (2,)


def check_custom_operator() -> None:
    """A torch.library operator with a CPU kernel runs on the device."""

    @torch.library.custom_op("npusim_check::double", mutates_args=(), device_types="cpu")
    def double(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    assert double(torch.ones(2, device=DEVICE)).sum().item() == 4


def check_what_cannot_work_raises() -> None:
    """Calls that a Python device cannot serve raise what the README says, and do not crash."""
    for name in (
        "memory_allocated",
        "max_memory_allocated",
        "memory_stats",
        "get_memory_info",
        "empty_cache",
    ):
        raises(RuntimeError, "INTERNAL ASSERT", getattr(torch.accelerator, name))
    raises(RuntimeError, "INTERNAL ASSERT", torch.accelerator.reset_peak_memory_stats)
    raises(RuntimeError, "doesn't support synchronizing", torch.accelerator.synchronize)
    raises(RuntimeError, "doesn't support", torch.accelerator.get_device_capability)
    start, end = torch.Event(DEVICE, enable_timing=True), torch.Event(DEVICE, enable_timing=True)
    start.record()
    end.record()
    raises(RuntimeError, "doesn't support synchronizing events", end.synchronize)
    raises(RuntimeError, "doesn't support elapsedTime", lambda: start.elapsed_time(end))
    raises(NotImplementedError, "getNewGenerator", lambda: torch.Generator(DEVICE))
    raises(
        RuntimeError,
        "only dense CPU tensors can be pinned",
        lambda: torch.ones(1, device=DEVICE).pin_memory(),
    )
    host = torch.ones(1)
    raises(
        NotImplementedError, "getPinnedMemoryAllocator", lambda: host.npusim().to("cpu", non_blocking=True)
    )
    assert torch.npusim.synchronize() is None


def check_missing_cpu_kernel_names_the_device() -> None:
    """An operator that even the CPU lacks is reported as missing on the device."""
    lstm = nn.LSTM(2, 2).to(DEVICE)
    raises(NotImplementedError, "from the 'npusim' backend", lambda: lstm(torch.ones(1, 1, 2, device=DEVICE)))
