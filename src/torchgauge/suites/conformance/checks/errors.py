"""Errors: what must not work fails with the error that PyTorch's users know, and the device lives on."""

from __future__ import annotations

import torch

from torchgauge.suites.conformance.bench import Bench, brief, check
from torchgauge.suites.suite import HOST

GROUP = "errors"


def _alive(bench: Bench) -> None:
    """The device computes after an error."""
    bench.compare(lambda x: x + 1, bench.numbers(3))


@check("RuntimeError: tensors on two devices", tier="smoke")
def two_devices(bench: Bench) -> None:
    """An operator refuses tensors of the device mixed with tensors of the host."""
    bench.not_on_host("there is no second device")
    there = bench.send(bench.numbers(3))
    error = bench.raises(RuntimeError, lambda: there + bench.numbers(3), "adding a tensor of the host")
    bench.expect("device" in str(error), f"the error does not speak of devices: {error}")
    _alive(bench)


@check("RuntimeError: no such device", tier="smoke")
def no_such_index(bench: Bench) -> None:
    """A tensor on an index beyond the last device is refused."""
    bench.not_on_host("the host's index is ignored")
    count = int(bench.need(bench.module, "device_count")())
    wrong = torch.device(bench.type, min(count + 7, 127))
    bench.raises((RuntimeError, AssertionError), lambda: torch.empty(2, device=wrong), f"a tensor on {wrong}")
    _alive(bench)


@check("IndexError", tier="smoke")
def index_out_of_range(bench: Bench) -> None:
    """A number beyond a dimension is an IndexError."""
    there = bench.send(bench.numbers(3))
    bench.raises(IndexError, lambda: there[5], "index 5 of 3")
    _alive(bench)


@check("RuntimeError: shapes", tier="smoke")
def wrong_shapes(bench: Bench) -> None:
    """Shapes that do not fit are refused before anything is computed."""
    one, other = bench.send(bench.numbers(2, 3)), bench.send(bench.numbers(4, 5))
    for call, what in ((lambda: one @ other, "(2, 3) @ (4, 5)"), (lambda: one + other, "(2, 3) + (4, 5)")):
        bench.raises(RuntimeError, call, what)
    _alive(bench)


@check("torch.OutOfMemoryError")
def out_of_memory(bench: Bench) -> None:
    """An impossible allocation is recognised as a full memory, and the device lives on."""
    try:
        torch.empty(1 << 55, dtype=torch.uint8, device=bench.device)
    except (RuntimeError, MemoryError) as error:
        recognised = bench.session.is_oom(error)
        bench.facts["oom_type"] = type(error).__name__
        said = brief(error)
    else:
        raise AssertionError("32 PiB were allocated")
    _alive(bench)
    bench.expect(recognised, f"{bench.facts['oom_type']} is not recognised as a full memory: {said}")


@check("RuntimeError: version counter")
def modified_in_place(bench: Bench) -> None:
    """A tensor that backward needs and that was changed in place is an error, not a wrong gradient."""
    there = bench.send(bench.numbers(3, grad=True))
    kept = there * 2
    square = kept * kept
    kept.add_(1)
    error = bench.raises(RuntimeError, lambda: square.sum().backward(), "backward over a changed tensor")
    bench.expect("modified" in str(error), f"the error does not say what happened: {error}")


@check("NotImplementedError: no kernel")
def missing_kernel(bench: Bench) -> None:
    """An operator without a kernel for the device raises, and says which operator it is."""
    bench.not_on_host("its kernels are the reference")
    library = torch.library.Library("torchgauge_probe", "FRAGMENT")
    if not hasattr(torch.ops.torchgauge_probe, "only_host"):
        library.define("only_host(Tensor x) -> Tensor")
        library.impl("only_host", lambda x: x + 1, HOST.upper())
    there = bench.send(bench.numbers(3))
    try:
        found = torch.ops.torchgauge_probe.only_host(there)
    except (NotImplementedError, RuntimeError) as error:
        bench.expect("only_host" in str(error), f"the error does not name the operator: {error}")
        return
    bench.facts["fallback"] = "an operator without a kernel ran elsewhere"
    bench.same(found, bench.numbers(3) + 1, "the fallback's answer")
