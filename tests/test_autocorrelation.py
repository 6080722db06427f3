"""How much samples resemble the one before: known series, and known factors."""

from __future__ import annotations

import math
import random

import pytest

from torchgauge.autocorrelation import independent, resemblance, widening


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


@pytest.mark.parametrize("count", [0, 1, 2, 5])
def test_fewer_than_six_samples_resemble_nothing(count):
    """They have no interval that it could widen."""
    few = [float(number) for number in range(count)]
    assert resemblance(few) == 0.0
    assert widening(few) == 1.0


@pytest.mark.parametrize(("alike", "factor"), [(0.0, 1.0), (0.3, 1.36), (0.6, 2.0), (0.9, 4.36)])
def test_widening_is_that_of_an_autoregressive_process(alike, factor):
    """sqrt((1 + r) / (1 - r)) in the mean, within a tenth; what is independent is hardly widened."""
    found = [widening(series(400, alike, seed)) for seed in range(40)]
    assert factor * 0.9 < sum(found) / len(found) < factor * 1.1
    assert min(found) >= 1.0


def test_what_lasts_widens_although_neighbours_differ():
    """Two speeds of 50 steps each, far less apart than steps scatter: neighbours say 1.4 at most."""
    dice = random.Random(5)
    samples = [1.0 + 0.06 * (n // 50 % 2) + dice.gauss(0.0, 0.05) for n in range(400)]
    neighbours = resemblance(samples)
    assert math.sqrt((1 + neighbours) / (1 - neighbours)) < 1.6
    assert widening(samples) > 2.4


def test_a_drift_is_worth_few_samples():
    """Alternation is never worth more than its number."""
    assert independent([float(n) for n in range(30)]) < 2
    assert independent([1.0, 2.0] * 15) == 30
    assert independent([1.0] * 12) == 12
