"""Errors: what must not work fails with the error that PyTorch's users know, and the device lives on."""

from __future__ import annotations

import torch

from torchgauge.counted import counted
from torchgauge.suites.conformance.check_context import CheckContext, brief, check
from torchgauge.suites.suite import HOST

GROUP = "errors"


def _alive(context: CheckContext) -> None:
    """The device computes after an error."""
    context.compare(lambda x: x + 1, context.numbers(3))


@check("RuntimeError: tensors on two devices", tier="smoke")
def two_devices(context: CheckContext) -> None:
    """An operator refuses tensors of the device mixed with tensors of the host."""
    context.not_on_host("there is no second device")
    there = context.send(context.numbers(3))
    error = context.raises(RuntimeError, lambda: there + context.numbers(3), "adding a host tensor")
    context.expect("device" in str(error), f"the error does not mention devices: {error}")
    _alive(context)


@check("RuntimeError: no such device", tier="smoke")
def no_such_index(context: CheckContext) -> None:
    """A tensor on an index beyond the last device is refused."""
    context.not_on_host("the host's index is ignored")
    count = int(context.need(context.module, "device_count")())
    wrong = torch.device(context.type, min(count + 7, 127))
    try:
        made = torch.empty(2, device=wrong)
    except (RuntimeError, AssertionError):
        _alive(context)
        return
    raise AssertionError(
        f"{wrong} gave a tensor on {made.device}: the index is ignored, there is {counted(count, 'device')}"
    )


@check("IndexError", tier="smoke")
def index_out_of_range(context: CheckContext) -> None:
    """A number beyond a dimension is an IndexError."""
    there = context.send(context.numbers(3))
    context.raises(IndexError, lambda: there[5], "index 5 of 3")
    _alive(context)


@check("RuntimeError: shapes", tier="smoke")
def wrong_shapes(context: CheckContext) -> None:
    """Shapes that do not fit are refused before anything is computed."""
    one, other = context.send(context.numbers(2, 3)), context.send(context.numbers(4, 5))
    for call, what in ((lambda: one @ other, "(2, 3) @ (4, 5)"), (lambda: one + other, "(2, 3) + (4, 5)")):
        context.raises(RuntimeError, call, what)
    _alive(context)


@check("torch.OutOfMemoryError")
def out_of_memory(context: CheckContext) -> None:
    """An impossible allocation is torch.OutOfMemoryError, as programs catch it, and the device lives on."""
    try:
        torch.empty(1 << 55, dtype=torch.uint8, device=context.device)
    except (RuntimeError, MemoryError) as error:
        recognised = context.session.is_oom(error)
        typed = context.on_host or isinstance(error, torch.OutOfMemoryError)
        context.facts["oom_type"] = type(error).__name__
        said = brief(error)
    else:
        raise AssertionError("32 PiB were allocated")
    _alive(context)
    context.expect(recognised, f"{context.facts['oom_type']} is not classified as out of memory: {said}")
    context.expect(
        typed,
        f"out of memory raises {context.facts['oom_type']} instead of torch.OutOfMemoryError: {said}",
    )


_FORKED = """
import os, signal, sys, time, torch
x = torch.ones(4, device=sys.argv[1])
(x + x).cpu()
sys.stdout.flush()
pid = os.fork()
if not pid:
    status = 4
    try:
        status = 0 if (x + x).cpu().tolist() == [2.0] * 4 else 3
    except Exception:
        pass
    os._exit(status)
end = time.monotonic() + 10
ended = 0
while not ended and time.monotonic() < end:
    ended, status = os.waitpid(pid, os.WNOHANG)
    time.sleep(0.01)
if not ended:
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
print("hangs" if not ended else os.waitstatus_to_exitcode(status), (x + x).cpu().tolist() == [2.0] * 4)
"""


@check("os.fork with a tensor on the device", tier="full")
def shared_over_fork(context: CheckContext) -> None:
    """A forked child that uses its parent's tensor gets right numbers or an error; the parent lives on."""
    context.not_on_host("a fork copies the host's memory")
    said, parent = context.child(_FORKED).split()[-2:]
    context.facts["forked"] = {"0": "right", "4": "refused"}.get(said, said)
    wrong = {
        "3": "gets wrong values without an error",
        "hangs": "hangs",
    }.get(said, f"ends with {said}")
    context.expect(said in ("0", "4"), f"a forked child that uses a tensor of its parent {wrong}")
    context.expect(parent == "True", "after a fork the parent's tensor has other values")


@check("RuntimeError: version counter")
def modified_in_place(context: CheckContext) -> None:
    """A tensor that backward needs and that was changed in place is an error, not a wrong gradient."""
    there = context.send(context.numbers(3, grad=True))
    kept = there * 2
    square = kept * kept
    kept.add_(1)
    error = context.raises(RuntimeError, lambda: square.sum().backward(), "backward over a changed tensor")
    context.expect("modified" in str(error), f"the error message does not name the cause: {error}")


@check("NotImplementedError: no kernel")
def missing_kernel(context: CheckContext) -> None:
    """An operator without a kernel for the device raises, and says which operator it is."""
    context.not_on_host("its kernels are the reference")
    library = torch.library.Library("torchgauge_probe", "FRAGMENT")
    if not hasattr(torch.ops.torchgauge_probe, "only_host"):
        library.define("only_host(Tensor x) -> Tensor")
        library.impl("only_host", lambda x: x + 1, HOST.upper())
    there = context.send(context.numbers(3))
    try:
        found = torch.ops.torchgauge_probe.only_host(there)
    except (NotImplementedError, RuntimeError) as error:
        context.expect("only_host" in str(error), f"the error does not name the operator: {error}")
        return
    context.facts["fallback"] = "an operator without a kernel ran on another device"
    context.same(found, context.numbers(3) + 1, "the fallback's answer")
