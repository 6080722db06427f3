"""Quantization and low precision: the operators that libraries of quantized models call."""

from __future__ import annotations

import torch

from torchgauge.suites.conformance.check_context import CheckContext, check

GROUP = "quantization"


@check("torch.fake_quantize_per_tensor_affine")
def fake_quantize(context: CheckContext) -> None:
    """Simulated quantization for training, per tensor and per channel."""
    context.compare(lambda x: torch.fake_quantize_per_tensor_affine(x, 0.1, 3, 0, 255), context.numbers(4, 5))
    context.compare(
        lambda x, s, z: torch.fake_quantize_per_channel_affine(x, s, z, 0, -128, 127),
        context.numbers(4, 5),
        torch.full((4,), 0.05),
        torch.zeros(4, dtype=torch.int32),
    )


@check("torch.quantize_per_tensor")
def quantized_tensor(context: CheckContext) -> None:
    """A quantized tensor is made and made dense again."""
    with context.unless_refused("the device has no quantized tensors"):
        found = torch.quantize_per_tensor(context.send(context.numbers(6)), 0.1, 3, torch.quint8).dequantize()
    context.same(found, torch.quantize_per_tensor(context.numbers(6), 0.1, 3, torch.quint8).dequantize())


@check("torch._int_mm")
def integer_product(context: CheckContext) -> None:
    """A product of int8 matrices with int32 sums is exact."""
    one = (context.numbers(32, 32) * 40).to(torch.int8)
    other = (context.numbers(32, 32, seed=1) * 40).to(torch.int8)
    exact = one.to(torch.int32) @ other.to(torch.int32)
    found = context.need(torch, "_int_mm")(context.send(one), context.send(other))
    context.same(found, exact)


@check("weight-only int8")
def weight_only(context: CheckContext) -> None:
    """Weights in int8 with a scale per row, unpacked on the fly, as weight-only quantization does."""

    def linear(x: torch.Tensor, w: torch.Tensor, s: torch.Tensor) -> torch.Tensor:
        return (x @ w.to(x.dtype).t()) * s

    weight = (context.numbers(8, 16) * 40).to(torch.int8)
    context.compare(linear, context.numbers(4, 16), weight, torch.full((8,), 0.02), rtol=1e-4, atol=1e-4)


@check("torch.float8_e4m3fn, float8_e5m2")
def float8(context: CheckContext) -> None:
    """Numbers are rounded to float8 and back as on the host."""
    for dtype in (torch.float8_e4m3fn, torch.float8_e5m2):
        context.compare(lambda x, d=dtype: x.to(d).to(torch.float32), context.numbers(32))
