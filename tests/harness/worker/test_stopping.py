"""The worker's stopping rule is the order-statistic interval of the median, without numpy."""

from __future__ import annotations

import math

import pytest
from scipy.stats import binom

from torchgauge.harness.worker.stopping import interval_rank, log_ratio_half_width, relative_half_width


@pytest.mark.parametrize("confidence", [0.8, 0.9, 0.95, 0.99])
def test_the_rank_is_the_binomial_one(confidence) -> None:
    """Up to a thousand samples the rank is the largest whose two tails hold at most the rest."""
    tail = (1.0 - confidence) / 2.0
    for n in [*range(60), 99, 100, 101, 256, 999, 1000]:
        exact = max((k for k in range(n // 2 + 1) if binom.cdf(k - 1, n, 0.5) <= tail), default=0)
        assert interval_rank(n, confidence) == exact, n


def test_the_rank_of_many_samples_is_near_the_binomial_one() -> None:
    """Beyond a thousand samples the normal approximation is at most one rank away."""
    for n in (1001, 2000, 5000):
        exact = int(binom.ppf(0.025, n, 0.5))
        assert abs(interval_rank(n, 0.95) - exact) <= 1


def test_few_samples_have_no_interval() -> None:
    """Five samples cannot bound a median with 95 % confidence; six can."""
    assert relative_half_width([1.0] * 5, 0.95) == math.inf
    assert relative_half_width([1.0] * 6, 0.95) == 0.0
    assert relative_half_width([], 0.95) == math.inf
    assert log_ratio_half_width([1.0] * 5, [1.0] * 5, 0.95) == math.inf


def test_the_width_is_relative_to_the_median() -> None:
    """With ten samples the interval reaches from the second to the ninth."""
    samples = [float(n) for n in (10, 1, 9, 2, 8, 3, 7, 4, 6, 5)]
    assert relative_half_width(samples, 0.95) == pytest.approx((9 - 2) / 2 / 5.5)
    assert relative_half_width([100 * s for s in samples], 0.95) == pytest.approx((9 - 2) / 2 / 5.5)


def test_a_ratio_is_paired() -> None:
    """Two series that wander together have an exact ratio, and a zero among them has none."""
    base = [1.0, 5.0, 2.0, 9.0, 3.0, 4.0, 8.0]
    assert log_ratio_half_width(base, [2 * each for each in base], 0.95) == pytest.approx(0.0, abs=1e-12)
    assert log_ratio_half_width(base, list(reversed(base)), 0.95) > 0.5
    assert log_ratio_half_width(base, [0.0, *base[1:]], 0.95) == math.inf
