"""How much samples resemble the one before: known series, and known factors."""

from __future__ import annotations

import math
import random

import pytest

from torchgauge.autocorrelation import effective_sample_size, interval_inflation, lag_1_autocorrelation


def series(count: int, alike: float = 0.0, seed: int = 0) -> list[float]:
    """``count`` step times; ``alike`` is the correlation of each with the one before."""
    dice, value, found = random.Random(seed), 0.0, []
    for _ in range(count):
        value = alike * value + dice.gauss(0.0, 0.1 * math.sqrt(1 - alike**2))
        found.append(0.05 * math.exp(value))
    return found


def test_autocorrelation_is_that_of_neighbours():
    """Independent samples have none, a drift has all of it, alternation is negative, equal ones have none."""
    found = [lag_1_autocorrelation(series(30, seed=seed)) for seed in range(60)]
    assert abs(sum(found) / len(found)) < 0.06
    assert lag_1_autocorrelation([float(n) for n in range(30)]) > 0.85
    assert lag_1_autocorrelation([1.0, 2.0] * 15) < -0.8
    assert lag_1_autocorrelation([1.0] * 30) == 0.0
    strong = [lag_1_autocorrelation(series(200, 0.6, seed)) for seed in range(30)]
    assert 0.5 < sum(strong) / len(strong) < 0.65


@pytest.mark.parametrize("count", [0, 1, 2, 5])
def test_fewer_than_six_samples_resemble_nothing(count):
    """They have no interval that it could widen."""
    few = [float(number) for number in range(count)]
    assert lag_1_autocorrelation(few) == 0.0
    assert interval_inflation(few) == 1.0


@pytest.mark.parametrize(("alike", "factor"), [(0.0, 1.0), (0.3, 1.36), (0.6, 2.0), (0.9, 4.36)])
def test_inflation_is_that_of_an_autoregressive_process(alike, factor):
    """sqrt((1 + r) / (1 - r)) in the mean, within a tenth; what is independent is hardly widened."""
    found = [interval_inflation(series(400, alike, seed)) for seed in range(40)]
    assert factor * 0.9 < sum(found) / len(found) < factor * 1.1
    assert min(found) >= 1.0


def test_what_lasts_widens_although_neighbours_differ():
    """Two speeds of 50 steps each, far less apart than steps scatter: neighbours say 1.4 at most."""
    dice = random.Random(5)
    samples = [1.0 + 0.06 * (n // 50 % 2) + dice.gauss(0.0, 0.05) for n in range(400)]
    neighbours = lag_1_autocorrelation(samples)
    assert math.sqrt((1 + neighbours) / (1 - neighbours)) < 1.6
    assert interval_inflation(samples) > 2.4


def test_a_drift_has_few_effective_samples():
    """Alternation is never worth more than its number."""
    assert effective_sample_size([float(n) for n in range(30)]) < 2
    assert effective_sample_size([1.0, 2.0] * 15) == 30
    assert effective_sample_size([1.0] * 12) == 12
