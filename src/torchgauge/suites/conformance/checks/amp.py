"""Automatic mixed precision: which dtypes, which operators are lowered, which are not, scaled gradients."""

from __future__ import annotations

import contextlib
import warnings

import torch

from torchgauge.suites.check import NotOnThisDeviceError
from torchgauge.suites.conformance.check_context import CheckContext, check

GROUP = "amp"


def _lower(context: CheckContext) -> torch.dtype:
    names = context.session.autocast_dtypes()
    if not names:
        for each in ("bfloat16", "float16"):  # offered and wrong is an error, not offered is none
            with contextlib.suppress(NotOnThisDeviceError):
                _product(context, each)
        context.unsupported(f"autocast supports no dtype on {context.type}")
    return getattr(torch, names[0])


def _product(context: CheckContext, name: str) -> torch.Tensor:
    """A product under autocast to ``name``; the check ends where PyTorch or the device refuses that dtype."""
    dtype, host = getattr(torch, name), context.numbers(8, 8)
    one = context.send(host)
    with warnings.catch_warnings(), context.unless_refused(f"autocast to {name}"):
        warnings.simplefilter("ignore")  # of the refusal, which is asked for below
        with torch.autocast(context.type, dtype=dtype):
            accepted = torch.is_autocast_enabled(context.type)
            found = one @ one
    if not accepted:
        context.unsupported(f"the device reports that autocast to {name} does not work")
    context.expect(found.dtype is dtype, f"a matmul under autocast to {name} returns {found.dtype}")
    return found


@check("torch.amp.is_autocast_available", tier="smoke")
def available(context: CheckContext) -> None:
    """Autocast knows the device type, and at least one dtype works."""
    context.expect(
        torch.amp.is_autocast_available(context.type), f"autocast does not support {context.type!r}"
    )
    context.facts["autocast_dtypes"] = ", ".join(context.session.autocast_dtypes())
    _lower(context)


def _in_dtype(context: CheckContext, name: str) -> None:
    found, host = _product(context, name), context.numbers(8, 8)
    context.same(found.float(), host @ host, f"a matmul under autocast to {name}", rtol=0.05, atol=0.1)


@check("torch.autocast(dtype=torch.bfloat16)", tier="smoke")
def bfloat16(context: CheckContext) -> None:
    """A product of matrices under autocast to bfloat16, within its precision."""
    _in_dtype(context, "bfloat16")


@check("torch.autocast(dtype=torch.float16)", tier="smoke")
def float16(context: CheckContext) -> None:
    """A product of matrices under autocast to float16, within its precision."""
    _in_dtype(context, "float16")


@check("autocast's list of lower precision")
def lowered(context: CheckContext) -> None:
    """Products, linear layers and convolutions run in the lower dtype."""
    dtype = _lower(context)
    x, image = context.send(context.numbers(4, 4)), context.send(context.numbers(1, 2, 5, 5))
    linear, convolution = context.send(torch.nn.Linear(4, 3)), context.send(torch.nn.Conv2d(2, 3, 3))
    with torch.autocast(context.type, dtype=dtype):
        found = {"mm": x.mm(x), "linear": linear(x), "bmm": torch.bmm(x[None], x[None])}
        found["conv2d"] = convolution(image)
    wrong = [f"{name} in {each.dtype}" for name, each in found.items() if each.dtype is not dtype]
    context.expect(not wrong, f"not lowered to {dtype}: {', '.join(wrong)}")


@check("autocast's list of float32")
def kept(context: CheckContext) -> None:
    """Losses that need the range stay in float32."""
    dtype = _lower(context)
    x = context.send(context.numbers(4, 4))
    target = context.send(torch.tensor([0, 1, 2, 3]))
    with torch.autocast(context.type, dtype=dtype):
        loss = torch.nn.functional.cross_entropy(x @ x, target)
        error = torch.nn.functional.mse_loss(x @ x, x)
    context.expect(loss.dtype is torch.float32, f"cross_entropy under autocast returns {loss.dtype}")
    context.expect(error.dtype is torch.float32, f"mse_loss under autocast returns {error.dtype}")


@check("torch.amp.GradScaler")
def scaler(context: CheckContext) -> None:
    """A scaled loss steps the optimizer, and an infinite gradient skips the step."""
    weight = torch.nn.Parameter(context.send(context.numbers(3)))
    optimizer = torch.optim.SGD([weight], lr=0.1)
    scale = torch.amp.GradScaler(context.type, init_scale=8.0)
    scale.scale((weight * 2).sum()).backward()
    scale.step(optimizer)
    scale.update()
    context.same(weight, context.numbers(3) - 0.2)
    weight.grad = torch.full_like(weight, float("inf"))
    scale.scale(torch.zeros(1, device=context.device))
    scale.step(optimizer)
    scale.update()
    context.same(weight, context.numbers(3) - 0.2, "after an infinite gradient")
    context.expect(scale.get_scale() < 8.0, f"an infinite gradient left the scale at {scale.get_scale()}")


@check("torch.autocast(enabled=False), custom_fwd")
def nested(context: CheckContext) -> None:
    """Autocast is switched off inside, and gradients have the dtype of their parameters."""
    dtype = _lower(context)
    x = context.send(context.numbers(4, 4, grad=True))
    with torch.autocast(context.type, dtype=dtype):
        with torch.autocast(context.type, enabled=False):
            inner = x @ x
        outer = x @ x
    context.expect(inner.dtype is torch.float32, f"a matmul with enabled=False returns {inner.dtype}")
    outer.float().sum().backward()
    context.expect(x.grad is not None and x.grad.dtype is torch.float32, "the gradient is not in float32")
