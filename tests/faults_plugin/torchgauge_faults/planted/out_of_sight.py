"""Plants of which the compiler sees little: it is told to look away, or cannot look; worker side."""

from __future__ import annotations

import functools
import inspect
import random
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from torchgauge_faults.planted.bodies import WIDTH, Around, Run


class Disabled(Around):
    """A model that the compiler was told to leave alone."""

    forward = torch.compiler.disable(Around.forward)


@torch.compiler.disable  # type: ignore[untyped-decorator]
def disabled(body: Any, x: Any) -> Any:
    """The body, which the compiler was told to leave alone."""
    return body(x)


def logged(body: Any, x: Any) -> Any:
    """The body, and a note that the compiler was told to leave alone."""
    _count_rows(x)
    return body(x)


@torch.compiler.disable  # type: ignore[untyped-decorator]
def _count_rows(x: Any) -> None:
    """What a model does for its log."""
    len(x)


def skipped_file() -> Run:
    """What calls a body with code that seems to be of the standard library, which dynamo does not trace."""
    source = inspect.getsource(_with_own_calls).replace("_with_own_calls", "run")
    names = {"Any": Any, "functional": functional, "nn": nn}
    exec(compile(f"from __future__ import annotations\n{source}", random.__file__, "exec"), names)
    return names["run"]  # type: ignore[no-any-return]


def scripted() -> Run:
    """What traces a body into TorchScript when it is called first, and calls that."""
    made: dict[torch.dtype, Any] = {}

    def run(body: Any, x: Any) -> Any:
        if x.dtype not in made:
            made[x.dtype] = torch.jit.trace(body, x)
        return made[x.dtype](x)

    return run


def in_a_thread(body: Any, x: Any) -> Any:
    """The body in a thread of its own, which leaves the other cores alone as this one does."""
    return _pool().submit(_like_here, torch.is_grad_enabled(), torch.get_num_threads(), body, x).result()


@functools.cache
def _pool() -> ThreadPoolExecutor:
    """One thread, started when it is needed: a new one for each call would take longer than the body."""
    return ThreadPoolExecutor(1)


def _like_here(grad: bool, threads: int, body: Any, x: Any) -> Any:  # called by a pool
    torch.set_num_threads(threads)  # OpenMP keeps it by thread: a new one would wait for all cores
    with torch.set_grad_enabled(grad):
        return body(x)


def refused_operators() -> Around:
    """A body whose linear layers dynamo was told to leave out of its graphs."""
    torch._dynamo.disallow_in_graph(functional.linear)
    return Around(_with_own_calls)


def _with_own_calls(body: Any, x: Any) -> Any:
    for layer in body.layers:
        x = functional.linear(x, layer.weight, layer.bias) if isinstance(layer, nn.Linear) else layer(x)
    return x


def opaque() -> Run:
    """What calls an operator that is written in Python and holds the whole body: a graph of one node."""

    @torch.library.custom_op("torchgauge_planted::layers", mutates_args=())  # type: ignore[untyped-decorator]
    def layers(x: torch.Tensor, weights: list[torch.Tensor], biases: list[torch.Tensor]) -> torch.Tensor:
        for weight, bias in zip(weights, biases, strict=True):
            x = functional.gelu(functional.linear(x, weight, bias))
        return x

    layers.register_fake(lambda x, weights, biases: torch.empty_like(x))  # named as above

    def run(body: Any, x: Any) -> Any:
        linear = body.layers[::2]
        return torch.ops.torchgauge_planted.layers(x, [m.weight for m in linear], [m.bias for m in linear])

    return run


def half_in_python() -> Run:
    """What calls a small operator that is written in Python before the body."""

    @torch.library.custom_op("torchgauge_planted::half", mutates_args=())  # type: ignore[untyped-decorator]
    def half(x: torch.Tensor) -> torch.Tensor:
        return x * 0.5

    half.register_fake(torch.empty_like)
    return lambda body, x: body(torch.ops.torchgauge_planted.half(x))


def of_a_library(body: Any, x: Any) -> Any:
    """The body behind a small operator of C++ that inductor calls by its name."""
    return body(x + torch.linalg.matrix_exp(x[:1, :8, :8] / WIDTH).mean())


def one_break(body: Any, x: Any) -> Any:
    """The body with a graph break in its middle."""
    x = body.layers[:4](x)
    torch._dynamo.graph_break()
    return body.layers[4:](x)


def two_breaks(body: Any, x: Any) -> Any:
    """The body with graph breaks in its middle and at its end."""
    x = one_break(body, x)
    torch._dynamo.graph_break()
    return x


def break_in_loop(body: Any, x: Any) -> Any:
    """The body with a graph break in a loop: dynamo leaves the whole frame alone."""
    for layer in body.layers:
        torch._dynamo.graph_break()
        x = functional.linear(x, layer.weight, layer.bias) if isinstance(layer, nn.Linear) else layer(x)
    return x


def data_dependent(body: Any, x: Any) -> Any:
    """The body behind a branch that its input decides."""
    return body(x) if x.abs().sum() > 0 else body(-x)


class _Backward(torch.autograd.Function):  # type: ignore[misc]
    """The body forward as it is, and its way back in a function that dynamo must leave alone."""

    @staticmethod
    def forward(ctx: Any, x: Any, body: Any, *_: Any) -> Any:
        with torch.enable_grad():
            ctx.inside = x.detach().requires_grad_()
            ctx.body, ctx.outside = body, body(ctx.inside)
        return ctx.outside.detach()

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        wanted = (ctx.inside, *ctx.body.parameters())
        found = torch.autograd.grad(ctx.outside, wanted, gradient)
        return found[0], None, *found[1:]


@torch.compiler.disable  # type: ignore[untyped-decorator]
def own_backward(body: Any, x: Any) -> Any:
    """The body with a way back of its own."""
    return _Backward.apply(x, body, *body.parameters())
