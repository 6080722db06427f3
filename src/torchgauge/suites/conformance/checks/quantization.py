"""Quantization and low precision: the operators that libraries of quantized models call."""

from __future__ import annotations

import torch

from torchgauge.suites.conformance.bench import Bench, check

GROUP = "quantization"


@check("torch.fake_quantize_per_tensor_affine")
def fake_quantize(bench: Bench) -> None:
    """Simulated quantization for training, per tensor and per channel."""
    bench.compare(lambda x: torch.fake_quantize_per_tensor_affine(x, 0.1, 3, 0, 255), bench.numbers(4, 5))
    bench.compare(
        lambda x, s, z: torch.fake_quantize_per_channel_affine(x, s, z, 0, -128, 127),
        bench.numbers(4, 5),
        torch.full((4,), 0.05),
        torch.zeros(4, dtype=torch.int32),
    )


@check("torch.quantize_per_tensor")
def quantized_tensor(bench: Bench) -> None:
    """A quantized tensor is made and made dense again."""
    with bench.unless_refused("the device has no quantized tensors"):
        found = torch.quantize_per_tensor(bench.send(bench.numbers(6)), 0.1, 3, torch.quint8).dequantize()
    bench.same(found, torch.quantize_per_tensor(bench.numbers(6), 0.1, 3, torch.quint8).dequantize())


@check("torch._int_mm")
def integer_product(bench: Bench) -> None:
    """A product of int8 matrices with int32 sums is exact."""
    one = (bench.numbers(32, 32) * 40).to(torch.int8)
    other = (bench.numbers(32, 32, seed=1) * 40).to(torch.int8)
    exact = one.to(torch.int32) @ other.to(torch.int32)
    found = bench.need(torch, "_int_mm")(bench.send(one), bench.send(other))
    bench.same(found, exact)


@check("weight-only int8")
def weight_only(bench: Bench) -> None:
    """Weights in int8 with a scale per row, unpacked on the fly, as weight-only quantization does."""

    def linear(x: torch.Tensor, w: torch.Tensor, s: torch.Tensor) -> torch.Tensor:
        return (x @ w.to(x.dtype).t()) * s

    weight = (bench.numbers(8, 16) * 40).to(torch.int8)
    bench.compare(linear, bench.numbers(4, 16), weight, torch.full((8,), 0.02), rtol=1e-4, atol=1e-4)


@check("torch.float8_e4m3fn, float8_e5m2")
def float8(bench: Bench) -> None:
    """Numbers are rounded to float8 and back as on the host."""
    for dtype in (torch.float8_e4m3fn, torch.float8_e5m2):
        bench.compare(lambda x, d=dtype: x.to(d).to(torch.float32), bench.numbers(32))
