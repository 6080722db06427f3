"""Floating-point operations of one step, counted by operator."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

from torchgauge.harness.worker.case_measurements import single
from torchgauge.records import Measurement, absent


class _Untracked(nullcontext[None]):
    """Counts all operations as those of one module."""

    parents = frozenset({"Global"})


def count_flops(step: Callable[[], Any]) -> Measurement:
    """Operations of one step by PyTorch's ``FlopCounterMode``; absent with the reason where it cannot."""
    from torch.utils.flop_counter import FlopCounterMode

    counter = FlopCounterMode(display=False)
    # its tracker of modules refuses autograd.grad, in a device's backward thread by ending the process
    counter.mod_tracker = _Untracked()
    try:
        with counter:
            step()
    except Exception as error:  # noqa: BLE001  the counter is a convenience and must not end the case
        if "higher_order" in str(error):  # the exception leaves dynamo tracing inside of flex_attention
            import torch._dynamo

            torch._dynamo.reset()
        return absent("flops", f"the counter raised {type(error).__name__}: {str(error)[:200]}")
    total = counter.get_total_flops()
    if total <= 0:
        return absent("flops", "the counter covers none of this model's operators")
    return single("flops", float(total), "torch.utils.flop_counter")
