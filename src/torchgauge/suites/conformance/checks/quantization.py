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


@check("torch.float4_e2m1fn_x2")
def float4(context: CheckContext) -> None:
    """Pairs of float4 keep their bits on the way there and back, and are unpacked there as on the host."""
    kind = context.need(torch, "float4_e2m1fn_x2")
    pairs = torch.arange(256, dtype=torch.uint8).reshape(16, 16)
    there = context.send(pairs).view(kind)
    context.expect(there.dtype is kind, f"the view has dtype {there.dtype}")
    context.same(there.view(torch.uint8), pairs)
    values = torch.tensor([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0])  # e2m1, without the sign

    def unpacked(packed: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
        halves = torch.stack((packed & 15, packed >> 4), -1).to(torch.int64)
        return torch.where(halves > 7, -table[halves & 7], table[halves & 7])

    context.compare(unpacked, pairs, values)


@check("weight-only int4")
def int4(context: CheckContext) -> None:
    """Weights in int4, two in a byte and with a scale per row, unpacked on the fly."""

    def linear(x: torch.Tensor, packed: torch.Tensor, s: torch.Tensor) -> torch.Tensor:
        low, high = (packed & 15).to(torch.int8), (packed >> 4).to(torch.int8)
        w = torch.stack((low, high), -1).reshape(packed.shape[0], -1) - 8
        return (x @ w.to(x.dtype).t()) * s

    packed = (context.numbers(8, 8).abs() * 1000).to(torch.int64).remainder(256).to(torch.uint8)
    context.compare(linear, context.numbers(4, 16), packed, torch.full((8,), 0.02), rtol=1e-4, atol=1e-4)
