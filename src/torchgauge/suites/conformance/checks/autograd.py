"""Autograd: gradients of the first and second order, hooks, functional transforms, checkpointing."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils.checkpoint import checkpoint as recompute

from torchgauge.suites.conformance.check_context import CheckContext, check

GROUP = "autograd"


class _Cube(torch.autograd.Function):  # type: ignore[misc]
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> torch.Tensor:
        (x,) = ctx.saved_tensors
        return 3 * x * x * grads[0]


def _gradient(function: Any, x: torch.Tensor) -> torch.Tensor:
    (found,) = torch.autograd.grad(function(x).sum(), x)
    return found


@check("torch.Tensor.backward", tier="smoke")
def backward(context: CheckContext) -> None:
    """Gradients of a small network are those of the host."""
    host = torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.Tanh(), torch.nn.Linear(5, 2))
    expected = _gradients(host, context.numbers(4, 6))
    there = context.send(host)
    for one, other in zip(_gradients(there, context.send(context.numbers(4, 6))), expected, strict=True):
        context.same(one, other, rtol=1e-4, atol=1e-5)


def _gradients(module: torch.nn.Module, x: torch.Tensor) -> list[torch.Tensor]:
    module.zero_grad()
    module(x).square().sum().backward()
    return [each.grad.clone() for each in module.parameters()]


@check("torch.autograd.gradcheck")
def numerical(context: CheckContext) -> None:
    """Gradients in float64 are those of finite differences."""
    x = context.send(context.numbers(3, 2, dtype=torch.float64, grad=True))
    torch.autograd.gradcheck(lambda t: (t @ t.t()).sigmoid(), (x,))


@check("torch.autograd.grad(create_graph=True)")
def double_backward(context: CheckContext) -> None:
    """The gradient of a gradient."""

    def second(x: torch.Tensor) -> torch.Tensor:
        (first,) = torch.autograd.grad((x**4).sum(), x, create_graph=True)
        (found,) = torch.autograd.grad(first.sum(), x)
        return found

    context.compare(second, context.numbers(5, grad=True))


@check("torch.autograd.Function", tier="smoke")
def custom_function(context: CheckContext) -> None:
    """A function with its own backward."""
    context.compare(lambda x: _gradient(_Cube.apply, x), context.numbers(5, grad=True))


@check("torch.Tensor.register_hook")
def hooks(context: CheckContext) -> None:
    """Hooks of tensors and of accumulated gradients see and change gradients."""
    there = context.send(context.numbers(3, grad=True))
    seen: list[torch.Tensor] = []
    there.register_hook(lambda grad: grad * 10)
    there.register_post_accumulate_grad_hook(lambda tensor: seen.append(tensor.grad))
    (there * 2).sum().backward()
    context.same(there.grad, torch.full((3,), 20.0))
    context.expect(len(seen) == 1, f"the post-accumulate-grad hook ran {len(seen)} times")


@check("torch.func.vmap, jvp, grad")
def transforms(context: CheckContext) -> None:
    """Functional transforms: batching, forward mode, gradient."""
    context.compare(torch.func.vmap(lambda row: row.softmax(0).cumsum(0)), context.numbers(3, 4))
    context.compare(torch.func.grad(lambda x: x.sin().sum()), context.numbers(4))
    context.compare(
        lambda x, t: torch.func.jvp(torch.tanh, (x,), (t,))[1], context.numbers(4), context.numbers(4, seed=1)
    )


@check("torch.utils.checkpoint")
def checkpoint(context: CheckContext) -> None:
    """Recomputed activations give the same gradients, in both forms."""

    def block(x: torch.Tensor) -> torch.Tensor:
        return (x @ x.t()).tanh()

    for reentrant in (False, True):

        def run(x: torch.Tensor, how: bool = reentrant) -> torch.Tensor:
            return recompute(block, x, use_reentrant=how)

        there = context.send(context.numbers(4, 4, grad=True))
        run(there).sum().backward()
        context.same(there.grad, _gradient(block, context.numbers(4, 4, grad=True)))


@check("torch.autograd.graph.save_on_cpu")
def saved_on_host(context: CheckContext) -> None:
    """Tensors kept for backward may wait on the host."""
    there = context.send(context.numbers(4, grad=True))
    with torch.autograd.graph.save_on_cpu():
        result = (there.exp() * there).sum()
    result.backward()
    context.same(there.grad, _gradient(lambda x: x.exp() * x, context.numbers(4, grad=True)))


@check("torch.no_grad, inference_mode", tier="smoke")
def modes(context: CheckContext) -> None:
    """Nothing is recorded where gradients are switched off."""
    there = context.send(context.numbers(3, grad=True))
    with torch.no_grad():
        context.expect(not (there * 2).requires_grad, "no_grad recorded a graph")
    with torch.inference_mode():
        context.expect((there * 2).is_inference(), "inference_mode created a normal tensor")
