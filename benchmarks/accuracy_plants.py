"""Wrong results, planted in one tensor of a right one: what a broken compiler or device gives back.

Every plant maps ``(eager, fp64 or None)`` to the tensors that are compared; None where it does not apply.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Planted:
    """What was planted and how large, and the pair to judge; ``reference`` is eager's unless it is named."""

    kind: str
    size: float
    reference: torch.Tensor
    result: torch.Tensor


def plants(eager: torch.Tensor, fp64: torch.Tensor | None, name: str) -> Iterator[Planted]:
    """Every wrong result that can be made of ``eager``, a floating-point tensor; random from ``name``."""
    generator = torch.Generator().manual_seed(zlib.crc32(name.encode()))
    wide = eager.double()
    rms = float(wide.square().mean().sqrt())

    def noise() -> torch.Tensor:
        return torch.randn(eager.shape, generator=generator, dtype=torch.float64)

    def made(kind: str, size: float, value: torch.Tensor) -> Planted:
        return Planted(kind, size, eager, value.to(eager.dtype))

    if fp64 is not None:
        error = float((fp64 - wide).square().mean().sqrt())
        for times in (0.5, 1.5, 2.5, 4.0, 9.0, 30.0):
            yield made("noise, times eager's error", times, fp64 + noise() * error * times)
    for size in (1e-5, 1e-4, 1e-3, 1e-2, 1e-1):
        yield made("noise, share of the RMS", size, wide + noise() * rms * size)
    for size in (1e-4, 1e-3, 1e-2, 1e-1, 1.0):
        yield made("scaled by 1 + x", size, wide * (1 + size))
    for size in (1e-3, 1e-1, 1.0):
        yield made("shifted, share of the RMS", size, wide + rms * size)
    for size in (1e-3, 1e-1, 1.0, 100.0):
        yield made("one element off, share of the largest", size, _one(wide, size))
    yield made("zeros", 0.0, torch.zeros_like(wide))
    yield made("negated", 0.0, -wide)
    if eager.dtype == torch.float32:
        yield made("rounded to bfloat16", 0.0, eager.bfloat16())
        yield made("rounded to float16", 0.0, eager.half())
    if eager.ndim and eager.shape[0] > 1:
        yield made("rows rolled by one", 0.0, eager.roll(1, 0))
        yield made("first row alone, broadcast", 0.0, eager[:1])
    yield Planted("float64 instead", 0.0, eager, wide.to(torch.float64))
    yield from _nonfinite(eager)


def _one(wide: torch.Tensor, size: float) -> torch.Tensor:
    flat = wide.flatten().clone()
    flat[flat.numel() // 2] += size * (float(wide.abs().max()) or 1.0)
    return flat.view(wide.shape)


def _nonfinite(eager: torch.Tensor) -> Iterator[Planted]:
    for name, value in (("NaN", float("nan")), ("infinity", float("inf"))):
        bad = _with(eager, value)
        yield Planted(f"one {name} in the result", 0.0, eager, bad)
        yield Planted(f"one {name} in eager", 0.0, bad, eager)
        yield Planted(f"one {name} in both", 0.0, bad, bad.clone())
        yield Planted(f"one {name} in eager, zeros in the result", 0.0, bad, torch.zeros_like(eager))


def _with(tensor: torch.Tensor, value: float) -> torch.Tensor:
    flat = tensor.flatten().clone()
    flat[flat.numel() // 2] = value
    return flat.view(tensor.shape)
