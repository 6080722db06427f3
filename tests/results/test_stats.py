"""Statistics: exact where they can be, and honest about the rest."""

from __future__ import annotations

import math
import random

import pytest
from scipy.stats import binom

from torchgauge.records import Better, Measurement, Metric, Summary
from torchgauge.results.stats import (
    Estimate,
    common_set,
    geometric_mean,
    median_interval,
    paired_ratio,
    summarise,
)

LATENCY = Metric("latency", "s", Better.LOWER, "wall time of one step")


@pytest.mark.parametrize("confidence", [0.9, 0.95, 0.99])
@pytest.mark.parametrize("n", [8, 9, 20, 57, 500, 2000])
def test_the_interval_is_the_tightest_exact_one(n, confidence):
    """The order statistics cover the median with the asked confidence, and the next pair would not."""
    found = median_interval([float(i) for i in range(1, n + 1)], confidence)
    rank = int(found.low)
    assert found.method == "order-statistic"
    assert (found.estimate, found.high) == ((n + 1) / 2, n + 1 - rank)
    assert 1 - 2 * binom.cdf(rank - 1, n, 0.5) >= confidence - 1e-9
    assert 1 - 2 * binom.cdf(rank, n, 0.5) < confidence


def test_the_interval_covers_the_median_as_often_as_it_says():
    """In a skewed distribution with a known median, nineteen intervals of twenty hold it."""
    chance = random.Random(7)
    held = 0
    for _ in range(1000):
        found = median_interval([chance.expovariate(1.0) for _ in range(15)])
        held += found.low <= math.log(2) <= found.high
    assert held >= 940


def autoregressive(chance: random.Random, n: int, correlation: float) -> list[float]:
    """``n`` normal samples around zero, each of which resembles the one before."""
    value, found = chance.gauss(0.0, 1.0), []
    for _ in range(n):
        found.append(value)
        value = correlation * value + math.sqrt(1 - correlation**2) * chance.gauss(0.0, 1.0)
    return found


def holds(found: Estimate | Summary, truth: float) -> bool:
    """Whether the interval of ``found`` holds ``truth``."""
    return found.low <= truth <= found.high


@pytest.mark.parametrize("n", [16, 30, 120])
def test_samples_that_resemble_the_one_before_have_a_wider_interval(n):
    """Taken for independent they hold the median in less than 88 % of cases; widened, in more than 93 %."""
    chance = random.Random(3)
    drawn = [autoregressive(chance, n, 0.6) for _ in range(600)]
    plain = sum(holds(median_interval(samples), 0.0) for samples in drawn)
    wide = sum(holds(summarise(Measurement("latency", "s", tuple(s)), LATENCY), 0.0) for s in drawn)
    assert plain / 600 < 0.88
    assert wide / 600 > 0.93


def test_an_interval_holds_both_speeds_of_a_machine():
    """An eighth of the samples in a row at another speed: the true median may lie there as well."""
    chance = random.Random(1)
    samples = [1.0 + chance.gauss(0.0, 0.01) + (0.1 if 50 <= n < 70 else 0.0) for n in range(120)]
    found = summarise(Measurement("latency", "s", tuple(samples)), LATENCY)
    assert found.method == "order-statistic-moods"
    assert found.low < 1.0
    assert found.high > 1.08
    mixed = chance.sample(samples, len(samples))
    assert summarise(Measurement("latency", "s", tuple(mixed)), LATENCY).high < 1.02


def test_a_widened_interval_says_so_and_never_leaves_the_samples():
    """A factor that changes no rank changes no word; a great one reaches from the least to the greatest."""
    samples = [float(i) for i in range(30)]
    assert median_interval(samples, wider=1.0) == median_interval(samples)
    assert median_interval(samples, wider=1.01).method == "order-statistic"
    wide = median_interval(samples, wider=100.0)
    assert (wide.low, wide.high, wide.method) == (0.0, 29.0, "order-statistic-correlated")
    assert median_interval(samples[:5], wider=100.0) == median_interval(samples[:5])


@pytest.mark.parametrize(("confidence", "least"), [(0.9, 5), (0.95, 6), (0.99, 8)])
def test_fewer_samples_than_can_hold_the_median_have_no_interval(confidence, least):
    """The range of five covers 93.75 %, so it is no interval of 95 %; six have one."""
    few = median_interval([3.0, 1.0, 2.0, 5.0, 4.0, 6.0, 7.0][: least - 1], confidence)
    assert (few.low, few.high, few.method, few.n) == (None, None, "too-few", least - 1)
    assert few.estimate is not None
    enough = median_interval(range(least), confidence)
    assert (enough.low, enough.high, enough.method) == (0.0, least - 1, "order-statistic")


def test_one_sample_has_no_interval_and_equal_samples_an_empty_one():
    """A single sample is shown without an interval; six that never vary are certain."""
    single = median_interval([0.5])
    assert (single.estimate, single.low, single.high, single.method) == (0.5, None, None, "too-few")
    for n in (6, 30):
        same = median_interval([3] * n)
        assert (same.low, same.estimate, same.high) == (3.0, 3.0, 3.0)


def test_what_is_absent_stays_absent():
    """No number becomes a zero; the reason is carried along."""
    summary = summarise(Measurement("latency", "s", absent="device lost"), LATENCY, 0.9)
    assert (summary.n, summary.median, summary.low, summary.absent) == (0, None, None, "device lost")
    assert (summary.method, summary.confidence, summary.better) == ("absent", 0.9, Better.LOWER)


def test_a_paired_ratio_ignores_what_both_sides_share():
    """Drift that hits both samples of a pair cancels: the narrow interval holds as often as said."""
    chance = random.Random(3)
    held = 0
    for _ in range(1000):
        drift = [1 + chance.random() for _ in range(40)]
        found = paired_ratio(drift, [1.1 * value * math.exp(chance.gauss(0, 0.001)) for value in drift])
        held += found.low <= 1.1 <= found.high
        assert found.high - found.low < 0.005
    assert held >= 940


def test_a_ratio_is_other_over_base():
    """Half the time is a ratio of one half."""
    inverse = paired_ratio([2.0] * 6, [1.0] * 6)
    assert (inverse.low, inverse.estimate, inverse.high, inverse.n) == (0.5, 0.5, 0.5, 6)


@pytest.mark.parametrize(
    ("base", "other", "problem"),
    [([1.0], [1.0, 2.0], "equal in number"), ([0.0], [1.0], "positive"), ([], [], "at least one sample")],
)
def test_samples_that_give_no_ratio_are_refused(base, other, problem):
    """Unequal lengths, a zero or nothing at all is an error, never an infinity."""
    with pytest.raises(ValueError, match=problem):
        paired_ratio(base, other)


def test_a_geometric_mean_uses_the_common_set_and_names_who_dropped_out():
    """A model that one side lacks changes neither mean and is listed."""
    ratio = {"a": 2.0, "b": 0.5, "c": None, "d": None}
    found = geometric_mean(ratio)
    assert (found.estimate, found.n, found.dropped) == (pytest.approx(1.0), 2, ("c", "d"))
    assert found.low < 1 < found.high
    assert geometric_mean(ratio) == found
    assert common_set(ratio, {"a": 1.0, "d": 1.0}) == {"a"}
    narrowed = geometric_mean(ratio, within={"a"})
    assert (narrowed.n, narrowed.low, narrowed.method, narrowed.dropped) == (
        1,
        None,
        "too-few",
        ("b", "c", "d"),
    )


def test_a_geometric_mean_of_nothing_is_absent_and_of_a_zero_refused():
    """An empty common set has no mean; a zero is a mistake by name."""
    nothing = geometric_mean({"a": None})
    assert (nothing.estimate, nothing.n, nothing.dropped) == (None, 0, ("a",))
    with pytest.raises(ValueError, match=r"a: .*positive"):
        geometric_mean({"a": 0.0})


@pytest.mark.parametrize("confidence", [0.0, 1.0, 0.9999])
def test_a_confidence_that_no_method_gives_is_refused(confidence):
    """Certainty is not for sale."""
    with pytest.raises(ValueError, match="outside"):
        median_interval([1.0, 2.0], confidence)


def test_a_non_finite_sample_is_refused():
    """A NaN must not sort itself into a median."""
    with pytest.raises(ValueError, match="non-finite"):
        median_interval([1.0, float("nan")])
