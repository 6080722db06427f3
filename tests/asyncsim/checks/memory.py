"""The allocator counts what there is."""

from __future__ import annotations

import gc

import pytest
import torch

from torchgauge_asyncsim import device_module as asyncsim

MEBIBYTE = 1 << 20


def check_counters_follow_the_tensors() -> None:
    """Allocated, peak and reserved bytes, by the module and by torch.accelerator, and on one device only."""
    gc.collect()
    other = asyncsim.memory_allocated(1)
    before = asyncsim.memory_allocated()
    torch.accelerator.reset_peak_memory_stats()
    held = torch.empty(8 * MEBIBYTE, dtype=torch.uint8, device="asyncsim")
    assert asyncsim.memory_allocated() == before + 8 * MEBIBYTE
    del held
    assert asyncsim.memory_allocated() == before
    assert asyncsim.max_memory_allocated() == before + 8 * MEBIBYTE
    assert torch.accelerator.max_memory_allocated() == before + 8 * MEBIBYTE
    assert asyncsim.memory_reserved() >= 8 * MEBIBYTE
    asyncsim.reset_peak_memory_stats()
    assert asyncsim.max_memory_allocated() == before
    asyncsim.empty_cache()
    assert asyncsim.memory_reserved() == asyncsim.memory_allocated()
    assert asyncsim.memory_allocated(1) == other


def check_a_block_that_another_stream_uses_is_kept_from_reuse() -> None:
    """After record_stream a freed block waits for the other stream."""
    asyncsim.plan_kernel("aten::mm", 0.5)
    try:
        side = torch.Stream("asyncsim")
        block = torch.ones(512, 512, device="asyncsim")
        asyncsim.synchronize()
        place = block.data_ptr()
        with side:
            torch.mm(block, block)
        block.record_stream(side)
        del block
        other = torch.empty(512, 512, device="asyncsim")
        assert other.data_ptr() != place
    finally:
        asyncsim.forget_plans()
        asyncsim.synchronize()


def check_full_memory_is_an_out_of_memory_error() -> None:
    """PyTorch's own error, which a harness need not guess from words; afterwards the device works."""
    free, total = torch.accelerator.get_memory_info()
    assert 0 < free <= total
    with pytest.raises(torch.OutOfMemoryError, match="asyncsim out of memory"):
        torch.empty(total + 1, dtype=torch.uint8, device="asyncsim")
    assert torch.ones(2, device="asyncsim").sum().item() == 2.0
    assert asyncsim.memory_stats()["num_ooms"] == 1
