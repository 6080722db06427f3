"""How much samples resemble the one before: known series, and known factors."""

from __future__ import annotations

import math
import random

import pytest

from torchgauge.autocorrelation import resemblance, widening


def series(count: int, alike: float = 0.0, seed: int = 0) -> list[float]:
    """``count`` step times; ``alike`` is the correlation of each with the one before."""
    dice, value, found = random.Random(seed), 0.0, []
    for _ in range(count):
        value = alike * value + dice.gauss(0.0, 0.1 * math.sqrt(1 - alike**2))
        found.append(0.05 * math.exp(value))
    return found


def test_resemblance_is_that_of_neighbours():
    """Independent samples have none, a drift has all of it, alternation is negative, equal ones have none."""
    found = [resemblance(series(30, seed=seed)) for seed in range(60)]
    assert abs(sum(found) / len(found)) < 0.06
    assert resemblance([float(n) for n in range(30)]) > 0.85
    assert resemblance([1.0, 2.0] * 15) < -0.8
    assert resemblance([1.0] * 30) == 0.0
    strong = [resemblance(series(200, 0.6, seed)) for seed in range(30)]
    assert 0.5 < sum(strong) / len(strong) < 0.65


@pytest.mark.parametrize("few", [(), (1.0,), (1.0, 2.0)])
def test_less_than_three_samples_resemble_nothing(few):
    """Two samples have one neighbour each, which says nothing."""
    assert resemblance(few) == 0.0


def test_widening_is_that_of_an_autoregressive_mean():
    """Three times the variance at a correlation of one half; never less than independent samples'."""
    assert widening(0.5) == pytest.approx(math.sqrt(3.0))
    assert widening(-0.5) == widening(0.0) == 1.0
    assert widening(0.99) == widening(0.9) < 4.4
