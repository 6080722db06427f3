"""Operators: dispatch of the kinds of calls that programs make."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional
from torch.profiler import ProfilerActivity, profile

from torchgauge.suites.conformance.check_context import CheckContext, check
from torchgauge.suites.suite import HOST

GROUP = "operators"


@check("torch.add, sum, matmul, ...", tier="smoke")
def basics(context: CheckContext) -> None:
    """Pointwise operators, reductions and products of matrices answer as the host does."""
    for function in (
        torch.add,
        torch.sub,
        torch.mul,
        torch.div,
        torch.maximum,
        torch.matmul,
        torch.atan2,
        torch.hypot,
        lambda x, y: (x > y).sum(),
        lambda x, y: torch.cat((x, y), 1),
        lambda x, y: torch.stack((x, y)).mean((0, 2)),
        lambda x, y: torch.einsum("ij,kj->ik", x, y),
        lambda x, y: x.softmax(-1) + y.log_softmax(0),
        lambda x, y: functional.gelu(x) * torch.sigmoid(y) + functional.silu(x),
        lambda x, y: x.std(1) + y.var(0),
        lambda x, y: x.cumsum(0) + y.flip(1),
    ):
        context.compare(function, context.numbers(6, 6), context.numbers(6, 6, seed=1))


@check("torch.sort, topk, unique, nonzero")
def data_dependent(context: CheckContext) -> None:
    """Operators whose result has a size that depends on the numbers."""
    host = torch.tensor([3.0, 1.0, 2.0, 1.0, 0.0])
    for function in (
        lambda x: torch.sort(x, stable=True),
        lambda x: torch.topk(x, 2).values,
        torch.unique,
        torch.nonzero,
        lambda x: torch.bincount(x.to(torch.int64)),
        lambda x: x.argmax(),
    ):
        expected, found = function(host), function(context.send(host))
        for one, other in zip(
            found if isinstance(found, tuple) else (found,),
            expected if isinstance(expected, tuple) else (expected,),
            strict=True,
        ):
            context.same(one, other)


@check("torch.linalg")
def linear_algebra(context: CheckContext) -> None:
    """Solving, factorising and inverting; what is not unique is multiplied back."""
    host = context.numbers(5, 5) + 5 * torch.eye(5)
    context.compare(torch.linalg.solve, host, context.numbers(5, 2, seed=1), rtol=1e-4, atol=1e-4)
    context.compare(torch.linalg.det, host, rtol=1e-4, atol=1e-4)
    there = context.send(host)
    q, r = torch.linalg.qr(there)
    context.same(q @ r, host, "QR multiplied back", rtol=1e-4, atol=1e-4)
    u, s, v = torch.linalg.svd(there)
    context.same(u @ torch.diag(s) @ v, host, "SVD multiplied back", rtol=1e-4, atol=1e-4)


@check("in-place and out= variants", tier="smoke")
def in_place_and_out(context: CheckContext) -> None:
    """In-place operators write into their tensor, out= into the given one, which is resized where empty."""
    there = context.send(context.numbers(4))
    address = there.data_ptr()
    there.add_(1).mul_(2).clamp_(min=0)
    context.same(there, (context.numbers(4) + 1).mul(2).clamp(min=0))
    context.expect(there.data_ptr() == address, "an in-place operator changed data_ptr()")
    given = torch.empty(4, device=context.device)
    torch.exp(there, out=given)
    context.same(given, torch.exp((context.numbers(4) + 1).mul(2).clamp(min=0)))
    hollow = torch.empty(0, device=context.device)
    torch.mul(there, 2, out=hollow)
    context.same(hollow, there * 2)


@check("torch._foreach_add_")
def foreach(context: CheckContext) -> None:
    """Operators on lists of tensors."""
    host = [context.numbers(3, seed=number) for number in range(3)]
    there = [context.send(each) for each in host]
    add, multiply = context.need(torch, "_foreach_add_"), context.need(torch, "_foreach_mul_")
    for lists in (host, there):
        add(lists, 1.0)
        multiply(lists, lists)
    for one, other in zip(there, host, strict=True):
        context.same(one, other)


@check("wrapped numbers", tier="smoke")
def scalars(context: CheckContext) -> None:
    """Python numbers and host tensors of no dimension mix with tensors of the device."""
    there = context.send(context.numbers(3))
    context.same(there + torch.tensor(2.0), context.numbers(3) + 2)
    context.same(2 - there, 2 - context.numbers(3))
    context.same(there * 2**0.5, context.numbers(3) * 2**0.5)
    found = (torch.ones(2, dtype=torch.int32, device=context.device) * 1.5).dtype
    context.expect(found is torch.float32, f"int32 times a Python float has dtype {found}")


@check("type promotion and broadcasting")
def promotion(context: CheckContext) -> None:
    """Dtypes and shapes of mixed operands are those of the host."""
    pairs = ((torch.int32, torch.float16), (torch.bfloat16, torch.float32), (torch.uint8, torch.int64))
    for one, other in pairs:
        context.compare(torch.add, torch.ones(3, 1).to(one), torch.ones(1, 4).to(other))


@check("torch.library.custom_op")
def custom_operator(context: CheckContext) -> None:
    """An operator that a user registers runs on the device."""
    name = f"torchgauge_check::twice_{uuid.uuid4().hex}"

    def twice(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    operator = torch.library.custom_op(name, twice, mutates_args=())
    context.compare(operator, context.numbers(3))


@check("torch.Tensor (complex, conjugate views)")
def complex_numbers(context: CheckContext) -> None:
    """Conjugate and negative views are resolved on the device."""
    host = torch.complex(context.numbers(4), context.numbers(4, seed=1))
    context.compare(lambda x: x.conj() * x, host)
    context.compare(lambda x: x.conj().clone().imag, host)
    context.compare(lambda x: torch.view_as_real(x.conj().resolve_conj()), host)
    context.same(context.send(host.conj()), host.conj())


def _fallbacks(context: CheckContext, run: Callable[[], Any]) -> list[str]:
    """Operators that called PyTorch's fallback to the host during ``run``, once for each call."""
    with profile(activities=[getattr(ProfilerActivity, HOST.upper())]) as found:
        run()
    # The fallback copies its arguments with this operator (aten/src/ATen/native/CPUFallback.cpp).
    copies = [event for event in found.events() if event.name == "aten::_to_cpu"]
    context.facts["fallbacks"] = len(copies)
    return [getattr(event.cpu_parent, "name", "an unnamed operator") for event in copies]


@check("at::native::cpu_fallback")
def fallback(context: CheckContext) -> None:
    """A step of training runs without operators that go through PyTorch's fallback to the host."""
    context.not_on_host("the host is the target of fallbacks")
    module = context.send(torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.GELU(), torch.nn.LayerNorm(8)))
    x = context.send(context.numbers(4, 8))
    copies = _fallbacks(context, lambda: module(x).softmax(-1).square().mean().backward())
    context.expect(not copies, f"fell back to the host: {', '.join(sorted(set(copies)))}")


@check("at::native::cpu_fallback (families of operators)")
def fallback_families(context: CheckContext) -> None:
    """Operators beyond a small step of training run without PyTorch's fallback to the host."""
    context.not_on_host("the host is the target of fallbacks")
    images, table = context.send(context.numbers(2, 3, 8, 8)), context.send(context.numbers(6, 6))
    places = context.send(torch.tensor([2, 0, 1]))
    families = (
        lambda: functional.conv2d(images, images[:, :, :3, :3].contiguous()),
        lambda: functional.batch_norm(functional.max_pool2d(images, 2), None, None, training=True),
        lambda: functional.adaptive_avg_pool2d(functional.interpolate(images, scale_factor=2), 2),
        lambda: functional.scaled_dot_product_attention(images, images, images),
        lambda: functional.cross_entropy(table[:3], places),
        lambda: functional.embedding(places, table),
        lambda: (table.sort(), table.topk(2), table.argmax(), torch.unique(places)),
        lambda: (table[places], table.index_select(0, places), table.gather(0, places.expand(6, 3).t())),
        lambda: (table.index_add(0, places, table[:3]), table.masked_fill(table > 0, 0.0), table.nonzero()),
        lambda: (table.cumsum(0), table.std(), table.amax(0), table.prod(0), table.norm(), table.any()),
        lambda: (torch.where(table > 0, table, table.abs()), table.clamp(0, 1).round().to(torch.int64)),
        lambda: (table.exp(), table.abs().log(), table.sin(), table.tanh(), table.sigmoid(), table.erf()),
        lambda: (torch.cat((table, table)), table.flip(0), table.roll(1), table.tril(), table.repeat(2, 2)),
        lambda: torch.bmm(table[None], table[None]).baddbmm(table[None], table[None]),
        lambda: (torch.arange(5, device=context.device), torch.rand(5, device=context.device)),
        lambda: torch.linalg.solve(table + 9 * torch.eye(6, device=context.device), table),
        lambda: torch.fft.irfft(torch.fft.rfft(table)),
    )
    absent = 0

    def run() -> None:
        nonlocal absent
        for family in families:
            try:
                family()
            except RuntimeError as error:  # what is missing or breaks is for other checks to say
                if context.session.is_lost(error):
                    raise
                absent += 1

    copies = _fallbacks(context, run)
    context.facts["families"] = len(families) - absent
    context.expect(not copies, f"fell back to the host: {', '.join(sorted(set(copies)))}")


@check("torch.fft")
def fourier(context: CheckContext) -> None:
    """A transform and its inverse."""
    context.compare(lambda x: torch.fft.irfft(torch.fft.rfft(x), n=16), context.numbers(16))
    context.compare(torch.fft.rfft, context.numbers(2, 16), rtol=1e-4, atol=1e-4)
