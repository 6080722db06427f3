"""Numerics: error bounds, determinism, special values."""

from __future__ import annotations

import torch

from torchgauge.suites.conformance.bench import Bench, brief, check

GROUP = "numerics"


def _product_error(bench: Bench, dtype: torch.dtype) -> float:
    """The largest error of a product of two 64 x 64 matrices, in units of its bound.

    The bound is that of a sum of n rounded products, n u |A| |B| with the unit roundoff u (Higham, Accuracy
    and Stability of Numerical Algorithms, section 3.5), and one rounding of the result.
    """
    one, other = bench.numbers(64, 64, dtype=dtype), bench.numbers(64, 64, dtype=dtype, seed=1)
    exact = one.double() @ other.double()
    found = (bench.send(one) @ bench.send(other)).to(exact.device).double()
    roundoff = torch.finfo(torch.float32 if dtype is not torch.float64 else dtype).eps / 2
    bound = 64 * roundoff * (one.double().abs() @ other.double().abs())
    bound += torch.finfo(dtype).eps * exact.abs()
    return float(((found - exact).abs() / bound).max())


@check("torch.mm (float32)", tier="smoke")
def product_float32(bench: Bench) -> None:
    """A product of matrices in float32 is within its error bound."""
    ratio = _product_error(bench, torch.float32)
    bench.facts["error_over_bound"] = ratio
    if ratio > 1 and torch.get_float32_matmul_precision() != "highest":
        bench.unsupported(f"products use {torch.get_float32_matmul_precision()!r} precision by default")
    bench.expect(ratio <= 1, f"the error of a float32 product is {ratio:.1f} times its bound")


@check("torch.mm (bfloat16)", tier="smoke")
def product_bfloat16(bench: Bench) -> None:
    """A product of matrices in bfloat16 is within its error bound for float32 accumulation."""
    ratio = _product_error(bench, torch.bfloat16)
    bench.facts["error_over_bound"] = ratio
    bench.expect(ratio <= 1, f"the error of a bfloat16 product is {ratio:.1f} times its bound")


@check("torch.mm (float16)")
def product_float16(bench: Bench) -> None:
    """A product of matrices in float16 is within its error bound for float32 accumulation."""
    ratio = _product_error(bench, torch.float16)
    bench.facts["error_over_bound"] = ratio
    bench.expect(ratio <= 1, f"the error of a float16 product is {ratio:.1f} times its bound")


@check("pointwise operators in bfloat16", tier="smoke")
def pointwise_bfloat16(bench: Bench) -> None:
    """Operators on bfloat16 are the rounded float32 answers."""
    for function in (torch.add, torch.mul, torch.div):
        bench.compare(
            function, bench.numbers(64, dtype=torch.bfloat16), bench.numbers(64, dtype=torch.bfloat16, seed=1)
        )
    for unary in (torch.exp, torch.tanh, torch.sigmoid, torch.rsqrt):
        bench.compare(unary, bench.numbers(64, dtype=torch.bfloat16).abs() + 0.5, rtol=0.016, atol=1e-3)


@check("repeated operators", tier="smoke")
def repeatable(bench: Bench) -> None:
    """The same operators on the same numbers give the same bits, forward and backward."""
    torch.manual_seed(2)
    module = bench.send(torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.GELU(), torch.nn.Linear(16, 4)))
    x = bench.send(bench.numbers(8, 16))
    runs = []
    for _ in range(3):
        module.zero_grad()
        module(x).square().mean().backward()
        runs.append([each.grad.clone() for each in module.parameters()])
    different = any(not torch.equal(a, b) for again in runs[1:] for a, b in zip(again, runs[0], strict=True))
    bench.expect(not different, "three runs of one small network gave different bits")


@check("torch.use_deterministic_algorithms")
def deterministic(bench: Bench) -> None:
    """In deterministic mode sums into the same places repeat, or the operator refuses."""
    target = torch.randint(0, 4, (512,), generator=torch.Generator().manual_seed(0))
    values, places = bench.send(bench.numbers(512)), bench.send(target)
    torch.use_deterministic_algorithms(True)
    try:
        zeros = torch.zeros(4, device=bench.device)
        sums = [zeros.index_add(0, places, values) for _ in range(3)]
    except RuntimeError as error:
        bench.expect("deterministic" in str(error), f"refused for another reason: {error}")
        bench.unsupported(f"refused in deterministic mode: {brief(error)}")
    finally:
        torch.use_deterministic_algorithms(False)
    bench.expect(all(torch.equal(each, sums[0]) for each in sums), "three deterministic sums differ")


@check("inf, nan, signed zero", tier="smoke")
def special_values(bench: Bench) -> None:
    """Infinities, not-a-number and signed zeros go through copies, comparisons and reductions."""
    host = torch.tensor([float("inf"), -float("inf"), float("nan"), 0.0, -0.0, 1.0])
    bench.compare(torch.isnan, host)
    bench.compare(torch.signbit, host)
    bench.compare(lambda x: x == x, host)  # noqa: PLR0124
    bench.compare(lambda x: torch.nan_to_num(x, 1.0, 2.0, 3.0), host)
    bench.compare(lambda x: torch.max(x[3:], x[:3]), host)
    bench.compare(lambda x: x.nansum(), host[2:])
