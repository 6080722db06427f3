"""Tensors: factories, dtypes, copies, views, layouts and what people print."""

from __future__ import annotations

import copy as copying
from collections.abc import Callable
from typing import Any

import torch

from torchgauge.counted import counted
from torchgauge.suites.conformance.check_context import CheckContext, brief, check
from torchgauge.suites.suite import HOST

GROUP = "tensor"
DTYPES = (
    torch.float32,
    torch.float64,
    torch.float16,
    torch.bfloat16,
    torch.int8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.uint8,
    torch.bool,
    torch.complex64,
    torch.complex128,
)


@check("torch.empty, full, arange, eye, ...", tier="smoke")
def factories(context: CheckContext) -> None:
    """Factories make on the device what they make on the host."""
    makers: tuple[Callable[[Any], Any], ...] = (
        lambda where: torch.zeros(3, 2, device=where),
        lambda where: torch.full((3,), 2.5, device=where),
        lambda where: torch.arange(1, 9, 2, device=where),
        lambda where: torch.linspace(0, 1, 5, device=where),
        lambda where: torch.eye(3, device=where),
        lambda where: torch.tensor([[1, 2], [3, 4]], device=where),
        lambda where: torch.ones_like(torch.empty(2, 3, device=where)),
        lambda where: torch.zeros(2, device=where).new_full((2, 2), 7.0),
        lambda where: torch.empty_strided((2, 3), (1, 2), device=where).fill_(3.0),
        lambda where: torch.tril_indices(3, 3, device=where),
    )
    for make in makers:
        context.same(make(context.device), make(HOST))


@check("torch.dtype", tier="smoke")
def dtypes(context: CheckContext) -> None:
    """Every dtype of the device goes there, is added and comes back; the row says which ones do not."""
    refused, wrong = [], []
    for dtype in DTYPES:
        host = torch.arange(6).to(dtype)
        label = str(dtype).rpartition(".")[2]
        try:
            there = context.send(host)
            same = torch.equal(
                (there | there if dtype is torch.bool else there + there).to(host.device),
                host | host if dtype is torch.bool else host + host,
            )
        except (RuntimeError, TypeError) as error:
            refused.append(label)
            context.facts[f"dtype_{label}"] = brief(error)
            continue
        context.facts[f"dtype_{label}"] = "works" if same else "wrong"
        if not same:
            wrong.append(label)
    context.expect(not wrong, f"x + x is wrong in {', '.join(wrong)}")
    needed = {"float32", "int64", "bool"} & set(refused)
    context.expect(not needed, f"the device refuses basic dtypes: {', '.join(sorted(needed))}")
    if refused:
        context.unsupported(
            f"the device refuses {', '.join(refused)}: {context.facts['dtype_' + refused[0]]}"
        )


@check("torch.Tensor.to, copy_", tier="smoke")
def copy(context: CheckContext) -> None:
    """Host to device, device to host and within the device, also with a dtype and from a strided view."""
    host = context.numbers(5, 7)
    there = context.send(host)
    context.same(there, host)
    context.same(there.clone(), host)
    context.same(context.send(host.t()), host.t())
    context.same(there.t().contiguous(), host.t().contiguous())
    context.same(there.to(torch.float64), host.to(torch.float64))
    target = torch.zeros(5, 7, dtype=torch.float16)
    target.copy_(there)
    context.expect(torch.equal(target, host.to(torch.float16)), "copy_() to float16 on the host is wrong")
    back = torch.empty(7, 5, device=context.device)
    back.t().copy_(host)
    context.same(back.t(), host, "a copy into a transposed view")
    context.expect(there.to(context.device) is there, ".to() copied a tensor that was already on the device")


LARGE = ((1 << 17) + 3, (1 << 20) + 5)
"""Elements of large copies: what is beyond one launch of most kernels, with a last block that is not full."""


@check("torch.Tensor.to, copy_ (large)", tier="smoke")
def copy_large(context: CheckContext) -> None:
    """Copies of more than 2^17 and 2^20 elements are whole, host to device, back and within the device.

    Each way is looked at by itself: what is on the device is read in small pieces.
    """
    for elements in LARGE:
        host = torch.arange(elements, dtype=torch.float32)
        target = torch.full((elements,), -1.0, device=context.device)
        _whole(context, target.copy_(host), "host to device")
        _whole(context, host.to(context.device), "host to device")
        there = torch.arange(elements, dtype=torch.float32, device=context.device)
        _whole(context, torch.full_like(there, -1.0).copy_(there), "device to device")
        _whole(context, there.clone(), "device to device")
        _whole(context, torch.full((elements,), -1.0).copy_(there), "device to host")
        _whole(context, there.to(HOST), "device to host")


def _whole(context: CheckContext, found: torch.Tensor, way: str) -> None:
    """Raise where ``found`` does not count from 0, and say from where on; it is read piece by piece."""
    for begin in range(0, found.numel(), PIECE):
        piece = found[begin : begin + PIECE].to(HOST)
        wrong = piece != torch.arange(begin, begin + piece.numel(), dtype=torch.float32)
        context.expect(
            not wrong.any(),
            f"a copy of {counted(found.numel(), 'element')}, {way}, is incomplete: element "
            f"{begin + int(wrong.to(torch.uint8).argmax())} differs from the source",
        )


PIECE = 1 << 16
"""Elements of a copy that even a device takes that drops the tail of a large one."""


@check("torch.Tensor.to(non_blocking=True)")
def non_blocking(context: CheckContext) -> None:
    """Copies that need not be waited for have arrived after synchronising."""
    host = context.numbers(256, 256)
    there = host.to(context.device, non_blocking=True)
    context.session.synchronize()
    context.same(there, host)
    back = there.to(host.device, non_blocking=True)
    context.session.synchronize()
    context.expect(torch.equal(back, host), "the tensor copied back differs after synchronize()")


@check("torch.Tensor.view, as_strided, ...", tier="smoke")
def views(context: CheckContext) -> None:
    """Views share memory with their base: what is written through one is seen through the other."""
    ways: tuple[Callable[[Any], Any], ...] = (
        lambda x: x.view(12),
        lambda x: x.t(),
        lambda x: x[1:, ::2],
        lambda x: x.as_strided((2, 2), (4, 1), 1),
        lambda x: x.unfold(1, 2, 2),
        lambda x: x.diagonal(),
        lambda x: x.expand(2, 3, 4)[0],
        lambda x: torch.split(x, 2)[1],
    )
    for view in ways:
        host = context.numbers(3, 4)
        there = context.send(host)
        view(host).mul_(3)
        view(there).mul_(3)
        context.same(there, host)
        context.expect(
            there.view(-1)[0:1].data_ptr() == there.data_ptr(),
            "a view starts at another address than its base",
        )


@check("torch.channels_last")
def channels_last(context: CheckContext) -> None:
    """The layout survives a copy and operators, and the numbers with it."""
    host = context.numbers(2, 3, 4, 5).to(memory_format=torch.channels_last)
    there = context.send(host)
    context.expect(there.is_contiguous(memory_format=torch.channels_last), "the copy lost channels_last")
    context.expect((there + 1).stride() == (host + 1).stride(), "x + 1 has different strides on the host")
    context.same(there.contiguous(), host.contiguous())


@check("torch.Tensor.__repr__, item, tolist", tier="smoke")
def printing(context: CheckContext) -> None:
    """A tensor can be printed, and read as numbers."""
    host = context.numbers(3)
    there = context.send(host)
    context.expect(there.tolist() == host.tolist(), f"tolist gave {there.tolist()}")
    context.expect(there[1].item() == host[1].item(), f"item gave {there[1].item()}")
    context.expect(bool(there[0] == there[0]), "an element is not equal to itself")
    context.expect(context.on_host or context.type in repr(there), f"repr lacks the device: {there!r}")


@check("copy.deepcopy")
def deepcopy(context: CheckContext) -> None:
    """A deep copy of a tensor and of a module is equal and independent."""
    there = context.send(context.numbers(4))
    twin = copying.deepcopy(there)
    twin.add_(1)
    context.same(twin, context.numbers(4) + 1)
    context.same(there, context.numbers(4))
    module = context.send(torch.nn.Linear(3, 2))
    context.same(copying.deepcopy(module).weight, module.weight)


@check("torch.Tensor.resize_, set_")
def resize(context: CheckContext) -> None:
    """A tensor grows, shrinks and takes another one's storage."""
    there = context.send(context.numbers(4))
    there.resize_(2)
    context.same(there, context.numbers(4)[:2])
    there.resize_(3, 3).fill_(2.0)
    context.same(there, torch.full((3, 3), 2.0))
    other = context.send(context.numbers(6))
    there.set_(other)
    there.add_(1)
    context.same(other, context.numbers(6) + 1)


@check("torch.Tensor.index_put_, masked_select, gather", tier="smoke")
def indexing(context: CheckContext) -> None:
    """Reading and writing by index, mask and list."""
    rows = torch.tensor([2, 0, 2])
    mask = context.numbers(4, 5) > 0
    for function in (
        lambda x, r, m: x[r],
        lambda x, r, m: x[m],
        lambda x, r, m: x[r, 1:3],
        lambda x, r, m: x.gather(0, r.view(1, 3)),
        lambda x, r, m: x.index_select(0, r),
        lambda x, r, m: x.clone().index_add_(0, r, torch.ones_like(x[r])),
        lambda x, r, m: x.clone().masked_fill_(m, 0.5),
        lambda x, r, m: torch.where(m, x, -x),
    ):
        context.compare(function, context.numbers(4, 5), rows, mask)


@check("torch.Tensor with no elements")
def empty(context: CheckContext) -> None:
    """Tensors of no elements and of no dimension go through copies and operators."""
    for shape in ((0,), (3, 0), (0, 4)):
        context.same(context.send(torch.empty(shape)) + 1, torch.empty(shape))
    context.same(context.send(torch.empty(3, 0)).sum(1), torch.zeros(3))
    context.same(context.send(torch.tensor(2.0)) * 2, torch.tensor(4.0))
