"""Numerics: error bounds, determinism, special values."""

from __future__ import annotations

import torch

from torchgauge.suites.conformance.check_context import CheckContext, brief, check

GROUP = "numerics"


def _product_error(context: CheckContext, dtype: torch.dtype) -> float:
    """The largest error of a product of two 64 x 64 matrices, in units of its bound.

    The bound is that of a sum of n rounded products, n u |A| |B| with the unit roundoff u (Higham, Accuracy
    and Stability of Numerical Algorithms, section 3.5), and one rounding of the result.
    """
    one, other = context.numbers(64, 64, dtype=dtype), context.numbers(64, 64, dtype=dtype, seed=1)
    exact = one.double() @ other.double()
    found = (context.send(one) @ context.send(other)).to(exact.device).double()
    roundoff = torch.finfo(torch.float32 if dtype is not torch.float64 else dtype).eps / 2
    bound = 64 * roundoff * (one.double().abs() @ other.double().abs())
    bound += torch.finfo(dtype).eps * exact.abs()
    return float(((found - exact).abs() / bound).max())


@check("torch.mm (float32)", tier="smoke")
def product_float32(context: CheckContext) -> None:
    """A product of matrices in float32 is within its error bound."""
    ratio = _product_error(context, torch.float32)
    context.facts["error_over_bound"] = ratio
    if ratio > 1 and torch.get_float32_matmul_precision() != "highest":
        context.unsupported(f"matmuls use {torch.get_float32_matmul_precision()!r} precision by default")
    context.expect(ratio <= 1, f"the error of a float32 matmul is {ratio:.1f} times its bound")


@check("torch.mm (bfloat16)", tier="smoke")
def product_bfloat16(context: CheckContext) -> None:
    """A product of matrices in bfloat16 is within its error bound for float32 accumulation."""
    ratio = _product_error(context, torch.bfloat16)
    context.facts["error_over_bound"] = ratio
    context.expect(ratio <= 1, f"the error of a bfloat16 matmul is {ratio:.1f} times its bound")


@check("torch.mm (float16)")
def product_float16(context: CheckContext) -> None:
    """A product of matrices in float16 is within its error bound for float32 accumulation."""
    ratio = _product_error(context, torch.float16)
    context.facts["error_over_bound"] = ratio
    context.expect(ratio <= 1, f"the error of a float16 matmul is {ratio:.1f} times its bound")


@check("pointwise operators in bfloat16", tier="smoke")
def pointwise_bfloat16(context: CheckContext) -> None:
    """Operators on bfloat16 are the rounded float32 answers."""
    for function in (torch.add, torch.mul, torch.div):
        context.compare(
            function,
            context.numbers(64, dtype=torch.bfloat16),
            context.numbers(64, dtype=torch.bfloat16, seed=1),
        )
    for unary in (torch.exp, torch.tanh, torch.sigmoid, torch.rsqrt):
        context.compare(unary, context.numbers(64, dtype=torch.bfloat16).abs() + 0.5, rtol=0.016, atol=1e-3)


@check("repeated operators", tier="smoke")
def repeatable(context: CheckContext) -> None:
    """The same operators on the same numbers give the same bits, forward and backward."""
    torch.manual_seed(2)
    module = context.send(
        torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.GELU(), torch.nn.Linear(16, 4))
    )
    x = context.send(context.numbers(8, 16))
    runs = []
    for _ in range(3):
        module.zero_grad()
        module(x).square().mean().backward()
        runs.append([each.grad.clone() for each in module.parameters()])
    different = any(not torch.equal(a, b) for again in runs[1:] for a, b in zip(again, runs[0], strict=True))
    context.expect(not different, "three runs of one small network differ bitwise")


@check("torch.use_deterministic_algorithms")
def deterministic(context: CheckContext) -> None:
    """In deterministic mode sums into the same places repeat, or the operator refuses."""
    target = torch.randint(0, 4, (512,), generator=torch.Generator().manual_seed(0))
    values, places = context.send(context.numbers(512)), context.send(target)
    torch.use_deterministic_algorithms(True)
    try:
        zeros = torch.zeros(4, device=context.device)
        sums = [zeros.index_add(0, places, values) for _ in range(3)]
    except RuntimeError as error:
        context.expect("deterministic" in str(error), f"the error does not mention determinism: {error}")
        context.unsupported(f"refused in deterministic mode: {brief(error)}")
    finally:
        torch.use_deterministic_algorithms(False)
    context.expect(all(torch.equal(each, sums[0]) for each in sums), "three deterministic sums differ")


@check("inf, nan, signed zero", tier="smoke")
def special_values(context: CheckContext) -> None:
    """Infinities, not-a-number and signed zeros go through copies, comparisons and reductions."""
    host = torch.tensor([float("inf"), -float("inf"), float("nan"), 0.0, -0.0, 1.0])
    context.compare(torch.isnan, host)
    context.compare(torch.signbit, host)
    context.compare(lambda x: x == x, host)  # noqa: PLR0124
    context.compare(lambda x: torch.nan_to_num(x, 1.0, 2.0, 3.0), host)
    context.compare(lambda x: torch.max(x[3:], x[:3]), host)
    context.compare(lambda x: x.nansum(), host[2:])
