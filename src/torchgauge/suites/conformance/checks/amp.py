"""Automatic mixed precision: which dtypes, which operators are lowered, which are not, scaled gradients."""

from __future__ import annotations

import torch

from torchgauge.suites.conformance.bench import Bench, check

GROUP = "amp"


def _lower(bench: Bench) -> torch.dtype:
    names = bench.session.autocast_dtypes()
    if not names:
        bench.unsupported(f"autocast works with no dtype on {bench.type}")
    return getattr(torch, names[0])


@check("torch.amp.is_autocast_available", tier="smoke")
def available(bench: Bench) -> None:
    """Autocast knows the device type, and at least one dtype works."""
    bench.expect(torch.amp.is_autocast_available(bench.type), f"autocast does not know {bench.type!r}")
    bench.facts["autocast_dtypes"] = ", ".join(bench.session.autocast_dtypes())
    _lower(bench)


def _in_dtype(bench: Bench, name: str) -> None:
    if name not in bench.session.autocast_dtypes():
        bench.unsupported(f"the device says that autocast to {name} does not work on it")
    dtype, host = getattr(torch, name), bench.numbers(8, 8)
    with torch.autocast(bench.type, dtype=dtype):
        found = bench.send(host) @ bench.send(host)
    bench.expect(found.dtype is dtype, f"a product under autocast to {name} is {found.dtype}")
    bench.same(found.float(), host @ host, f"a product under autocast to {name}", rtol=0.05, atol=0.1)


@check("torch.autocast(dtype=torch.bfloat16)", tier="smoke")
def bfloat16(bench: Bench) -> None:
    """A product of matrices under autocast to bfloat16, within its precision."""
    _in_dtype(bench, "bfloat16")


@check("torch.autocast(dtype=torch.float16)", tier="smoke")
def float16(bench: Bench) -> None:
    """A product of matrices under autocast to float16, within its precision."""
    _in_dtype(bench, "float16")


@check("autocast's list of lower precision")
def lowered(bench: Bench) -> None:
    """Products, linear layers and convolutions run in the lower dtype."""
    dtype = _lower(bench)
    x, image = bench.send(bench.numbers(4, 4)), bench.send(bench.numbers(1, 2, 5, 5))
    linear, convolution = bench.send(torch.nn.Linear(4, 3)), bench.send(torch.nn.Conv2d(2, 3, 3))
    with torch.autocast(bench.type, dtype=dtype):
        found = {"mm": x.mm(x), "linear": linear(x), "bmm": torch.bmm(x[None], x[None])}
        found["conv2d"] = convolution(image)
    wrong = [f"{name} in {each.dtype}" for name, each in found.items() if each.dtype is not dtype]
    bench.expect(not wrong, f"not lowered to {dtype}: {', '.join(wrong)}")


@check("autocast's list of float32")
def kept(bench: Bench) -> None:
    """Losses that need the range stay in float32."""
    dtype = _lower(bench)
    x = bench.send(bench.numbers(4, 4))
    target = bench.send(torch.tensor([0, 1, 2, 3]))
    with torch.autocast(bench.type, dtype=dtype):
        loss = torch.nn.functional.cross_entropy(x @ x, target)
        error = torch.nn.functional.mse_loss(x @ x, x)
    bench.expect(loss.dtype is torch.float32, f"cross_entropy under autocast is {loss.dtype}")
    bench.expect(error.dtype is torch.float32, f"mse_loss under autocast is {error.dtype}")


@check("torch.amp.GradScaler")
def scaler(bench: Bench) -> None:
    """A scaled loss steps the optimizer, and an infinite gradient skips the step."""
    weight = torch.nn.Parameter(bench.send(bench.numbers(3)))
    optimizer = torch.optim.SGD([weight], lr=0.1)
    scale = torch.amp.GradScaler(bench.type, init_scale=8.0)
    scale.scale((weight * 2).sum()).backward()
    scale.step(optimizer)
    scale.update()
    bench.same(weight, bench.numbers(3) - 0.2)
    weight.grad = torch.full_like(weight, float("inf"))
    scale.scale(torch.zeros(1, device=bench.device))
    scale.step(optimizer)
    scale.update()
    bench.same(weight, bench.numbers(3) - 0.2, "after an infinite gradient")
    bench.expect(scale.get_scale() < 8.0, f"the scale stayed at {scale.get_scale()}")


@check("torch.autocast(enabled=False), custom_fwd")
def nested(bench: Bench) -> None:
    """Autocast is switched off inside, and gradients have the dtype of their parameters."""
    dtype = _lower(bench)
    x = bench.send(bench.numbers(4, 4, grad=True))
    with torch.autocast(bench.type, dtype=dtype):
        with torch.autocast(bench.type, enabled=False):
            inner = x @ x
        outer = x @ x
    bench.expect(inner.dtype is torch.float32, f"inside enabled=False a product is {inner.dtype}")
    outer.float().sum().backward()
    bench.expect(x.grad is not None and x.grad.dtype is torch.float32, "the gradient is not in float32")
