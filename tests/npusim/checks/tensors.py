"""Tensors, storages, operators and random numbers on the simulated device."""

from __future__ import annotations

import copy
import gc
import io
import pickle
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


def check_factories() -> None:
    """Factory functions make the tensors that the CPU makes."""
    for make in (
        lambda d: torch.ones(2, 3, device=d),
        lambda d: torch.full((2,), 7, device=d),
        lambda d: torch.arange(5, device=d),
        lambda d: torch.eye(3, device=d),
        lambda d: torch.tril_indices(3, 3, device=d),
        lambda d: torch.tensor([[1, 2], [3, 4]], device=d),
        lambda d: torch.zeros(2, 3, 4, 4, device=d).to(memory_format=torch.channels_last),
    ):
        host, device = make("cpu"), make(DEVICE)
        assert device.device.type == "npusim"
        assert device.dtype == host.dtype
        assert device.stride() == host.stride()
        assert torch.equal(device.cpu(), host)


def check_default_device() -> None:
    """The device works as the default device and as a context."""
    with DEVICE:
        assert (torch.ones(2) + torch.randn(2)).device.type == "npusim"


def check_views_share_memory() -> None:
    """A write through a view is seen through its base, and pointers agree."""
    base = torch.zeros(4, 4, device=DEVICE)
    row, column, window = base[1], base.t()[2], base.unfold(0, 2, 1)
    row.fill_(1)
    column.add_(5)
    assert row.data_ptr() == base.data_ptr() + 4 * base.element_size()
    assert window.untyped_storage().data_ptr() == base.untyped_storage().data_ptr()
    assert base[1, 2].item() == 6
    assert window[0, 2, 1].item() == 6


def check_storage_outlives_tensor() -> None:
    """Memory stays alive as long as a view needs it, without its base."""
    view = torch.arange(1000, device=DEVICE)[500:]
    gc.collect()
    noise = [torch.zeros(1000, device=DEVICE, dtype=torch.int64) for _ in range(20)]
    assert view[0].item() == 500
    del noise


def check_storage_methods() -> None:
    """Storages of the device are made, cloned, copied, moved and saved without a crash."""
    tensor = torch.arange(6, device=DEVICE, dtype=torch.uint8)
    storage = tensor.untyped_storage()
    assert torch.UntypedStorage(16, device=DEVICE).nbytes() == 16
    assert storage.clone().device == storage.device
    assert storage.clone().data_ptr() != storage.data_ptr()
    assert storage.cpu().tolist() == [0, 1, 2, 3, 4, 5]
    assert storage.cpu().npusim().tolist() == [0, 1, 2, 3, 4, 5]
    assert storage.is_npusim
    assert copy.deepcopy(storage).tolist() == storage.tolist()
    assert pickle.loads(pickle.dumps(tensor)).tolist() == tensor.tolist()
    assert storage.fill_(7).tolist() == [7] * 6
    assert tensor.tolist() == [7] * 6
    raises(RuntimeError, "resizePrivateUse1Bytes", lambda: storage.resize_(1000))


def check_deepcopy() -> None:
    """Deep copies of tensors, modules and optimizers are independent of their originals."""
    module = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3)).to(DEVICE)
    twin = copy.deepcopy(module)
    with torch.no_grad():
        module[0].weight.zero_()
    assert twin[0].weight.abs().sum().item() > 0
    shared = torch.ones(4, device=DEVICE)
    first, second = copy.deepcopy([shared, shared[1:]])
    first.zero_()
    assert second.sum().item() == 0


def check_save_and_load() -> None:
    """A module's and an optimizer's state survive torch.save, to the device and to the CPU."""
    module = nn.Linear(3, 2).to(DEVICE)
    optimizer = torch.optim.AdamW(module.parameters())
    module(torch.ones(1, 3, device=DEVICE)).sum().backward()
    optimizer.step()
    file = io.BytesIO()
    torch.save({"module": module.state_dict(), "optimizer": optimizer.state_dict()}, file)
    for place in (None, "cpu", "npusim"):
        file.seek(0)
        loaded = torch.load(file, map_location=place, weights_only=True)
        weight = loaded["module"]["weight"]
        assert weight.device.type == (place or "npusim")
        assert torch.equal(weight.cpu(), module.weight.detach().cpu())
        optimizer.load_state_dict(loaded["optimizer"])


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


def check_resize() -> None:
    """`resize_` keeps the bytes that were there and follows the memory format."""
    tensor = torch.arange(4.0, device=DEVICE)
    tensor.resize_(2, 3)
    assert tensor.view(-1)[:4].tolist() == [0, 1, 2, 3]
    tensor.resize_(1, 2, 3, 3, memory_format=torch.channels_last)
    assert tensor.is_contiguous(memory_format=torch.channels_last)


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


def check_foreach_and_optimizers() -> None:
    """Every optimizer path gives the CPU's parameters."""
    for options in ({"foreach": True}, {"foreach": False}, {"fused": True}):
        weights = []
        for place in ("cpu", DEVICE):
            torch.manual_seed(0)
            module = nn.Linear(4, 4).to(place)
            optimizer = torch.optim.AdamW(module.parameters(), lr=0.1, **options)
            for _ in range(3):
                optimizer.zero_grad()
                module(torch.linspace(0, 1, 8, device=place).view(2, 4)).square().sum().backward()
                optimizer.step()
            nn.utils.clip_grad_norm_(module.parameters(), 1.0)
            weights.append(module.weight.detach().cpu())
        assert torch.equal(*weights), options


def check_custom_operator() -> None:
    """A torch.library operator with a CPU kernel runs on the device."""

    @torch.library.custom_op("npusim_check::double", mutates_args=(), device_types="cpu")
    def double(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    assert double(torch.ones(2, device=DEVICE)).sum().item() == 4


def check_gradient_and_autograd_thread() -> None:
    """First and second derivatives are right, although autograd runs them on its own thread."""
    point = torch.randn(3, dtype=torch.float64, device=DEVICE, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: (x * x.exp()).sum(), point)
    assert torch.autograd.gradgradcheck(lambda x: (x * x.exp()).sum(), point)


def check_func_transforms() -> None:
    """Transforms of torch.func work on device tensors."""
    batch = torch.randn(4, 3, device=DEVICE)
    assert torch.equal(torch.vmap(lambda row: row.sin().sum())(batch).cpu(), batch.cpu().sin().sum(1))
    _, tangent = torch.func.jvp(torch.sin, (batch,), (torch.ones_like(batch),))
    assert torch.allclose(tangent, batch.cos())


def check_random_numbers_are_separate() -> None:
    """Seeded random numbers repeat, and drawing them never moves the CPU's generator."""
    torch.manual_seed(3)
    cpu_state = torch.get_rng_state()
    module = nn.Dropout(0.5)
    ones = torch.ones(64, device=DEVICE)
    draws = []
    for _ in range(2):
        torch.npusim.manual_seed(5)
        draws.append(
            [
                module(ones),
                torch.randn(4, device=DEVICE),
                torch.rand_like(ones),
                torch.randperm(9, device=DEVICE),
            ]
        )
    assert all(torch.equal(a, b) for a, b in zip(*draws, strict=True))
    assert not torch.equal(module(ones), module(ones))
    assert torch.equal(torch.get_rng_state(), cpu_state)


def check_generator_state() -> None:
    """The generator's state can be saved and restored, and torch.manual_seed reaches the device."""
    state = torch.npusim.get_rng_state()
    first = torch.rand(3, device=DEVICE)
    torch.npusim.set_rng_state(state)
    assert torch.equal(torch.rand(3, device=DEVICE), first)
    with torch.random.fork_rng(device_type="npusim"):
        torch.rand(3, device=DEVICE)
    torch.manual_seed(11)
    assert torch.npusim.initial_seed() == 11


def check_autocast() -> None:
    """Autocast lowers matrix products, widens softmax and losses, and leaves the rest alone."""
    assert torch.npusim.get_amp_supported_dtype() == [torch.bfloat16, torch.float16]
    left = torch.randn(4, 4, device=DEVICE)
    for dtype in (torch.bfloat16, torch.float16):
        with torch.autocast("npusim", dtype=dtype):
            product = left @ left
            assert product.dtype == dtype
            assert product.softmax(-1).dtype == torch.float32
            assert (product + product).dtype == dtype
            assert nn.functional.conv2d(left.view(1, 1, 4, 4), left.view(1, 1, 4, 4)).dtype == dtype
            with torch.autocast("npusim", enabled=False):
                assert (left @ left).dtype == torch.float32
    assert (left @ left).dtype == torch.float32


def check_bf16_training_step() -> None:
    """A bfloat16 autocast forward gives float32 gradients on float32 weights."""
    module = nn.Linear(4, 4).to(DEVICE)
    with torch.autocast("npusim", dtype=torch.bfloat16):
        loss = nn.functional.mse_loss(
            module(torch.randn(2, 4, device=DEVICE)), torch.zeros(2, 4, device=DEVICE)
        )
    assert loss.dtype == torch.float32
    loss.backward()
    assert module.weight.grad.dtype == torch.float32


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
