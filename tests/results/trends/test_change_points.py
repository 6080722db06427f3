"""Steps in real-looking noise are found, and nothing else is said of a series."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from torchgauge.results.trends.change_points import DetectorSettings, Watch, change_points


def noisy(count: int, level: float = 1.0, spread: float = 0.01, seed: int = 0) -> list[float]:
    """``count`` nights about ``level`` with relative normal noise."""
    rng = random.Random(seed)
    return [level * math.exp(rng.gauss(0.0, spread)) for _ in range(count)]


def stepped(size: float, seed: int = 0, spread: float = 0.01) -> list[float]:
    """Forty nights, then fifteen that are ``size`` higher."""
    return noisy(40, 1.0, spread, seed) + noisy(15, 1.0 + size, spread, seed + 1)


@pytest.mark.parametrize("size", [0.05, -0.05, 0.20])
def test_a_step_is_found_with_its_place_size_and_direction(size):
    """A step of five times the noise is one change point, where it is, as large as it is."""
    found = change_points(stepped(size)).points
    assert len(found) == 1
    assert abs(found[0].index - 40) <= 1
    assert found[0].first <= 40 <= found[0].last
    assert found[0].size == pytest.approx(size, abs=0.012)
    assert found[0].noticed <= 44
    assert found[0].after / found[0].before - 1 == pytest.approx(found[0].size)
    assert found[0].score >= DetectorSettings().threshold


def test_the_unit_does_not_matter():
    """A series in nanoseconds has the same changes as one in seconds."""
    values = stepped(0.05)
    small = change_points([1e-9 * value for value in values]).points
    found = change_points(values).points
    assert [(p.index, p.noticed) for p in small] == [(p.index, p.noticed) for p in found]


@pytest.mark.parametrize("seed", range(8))
def test_one_spike_at_the_end_never_alarms(seed):
    """However high the last night is, it is no change; nor is it one when the next nights are as before."""
    values = noisy(50, seed=seed)
    for height in (1.5, 3.0, 100.0, 0.01):
        for later in ([], [values[3]], [values[3], values[4]]):
            found = change_points([*values, height, *later]).points
            assert all(point.noticed < 50 for point in found)  # may be empty: no point is no alarm


@pytest.mark.parametrize("seed", range(4))
def test_a_lone_spike_is_no_evidence_however_high(seed):
    """A spike moves the score by next to nothing, and by the same whether it is 3 or 10,000 times as high."""
    quiet = watched([math.log(value) for value in noisy(50, seed=seed)])
    scores = [watched([*quiet.values, math.log(height)]).best().score for height in (1.2, 3.0, 1e4)]
    assert max(scores) <= quiet.best().score + 0.5
    assert scores[1] == pytest.approx(scores[2], abs=0.01)


def test_a_spike_that_stays_is_a_change():
    """The same spike, followed by nights like it, is reported: the rule above is no blindness."""
    found = change_points([*noisy(50), *noisy(4, 1.5, seed=9)]).points
    assert [point.index for point in found] == [50]


def watched(values: list[float]) -> Watch:
    """A watch that has seen ``values`` (logarithms) and said nothing."""
    watch = Watch(DetectorSettings(threshold=math.inf))
    for value in values:
        assert watch.night(value) is None
    return watch


def test_quiet_series_say_nothing():
    """Normal noise without a change raises few alarms: two in a hundred nights at most."""
    alarms = sum(len(change_points(noisy(100, seed=seed)).points) for seed in range(10))
    assert alarms <= 20


def test_a_constant_series_has_no_change_and_no_noise():
    """Equal values divide by nothing, and a step in them is still a step."""
    found = change_points([2.0] * 40)
    assert (found.points, found.noise, found.ready) == ((), 0.0, True)
    assert [point.index for point in change_points([2.0] * 40 + [2.2] * 3).points] == [40]


@pytest.mark.parametrize(
    ("values", "nights", "missing", "unusable"),
    [
        ([], 0, 0, 0),
        ([1.0], 1, 0, 0),
        ([None] * 30, 0, 30, 0),
        ([0.0, -1.0, float("inf"), float("nan"), None, 1.0], 1, 1, 4),
    ],
)
def test_a_series_without_numbers_says_so(values, nights, missing, unusable):
    """One point, none, only gaps, and values that are no positive number: counted, and no change."""
    found = change_points(values)
    assert (found.points, found.ready) == ((), False)
    assert (found.nights, found.missing, found.unusable) == (nights, missing, unusable)
    assert found.noise is None


def test_positions_count_missing_nights():
    """A gap before a step moves the position and nothing else."""
    values: list[float | None] = list(stepped(0.10))
    values[10:10] = [None] * 5
    values[3] = -1.0
    found = change_points(values)
    assert (found.missing, found.unusable) == (5, 1)
    assert abs(found.points[0].index - 45) <= 1


def test_a_known_change_resets_the_baseline():
    """A change that is known is reported as it is given, and what comes after is judged against it."""
    values = noisy(40) + noisy(20, 1.1, seed=5)
    values += noisy(10, 1.2, seed=6)
    known = change_points(values, known=[41]).points
    assert known[0].index in (40, 41)
    assert abs(known[1].index - 60) <= 1
    assert known[1].before == pytest.approx(1.1, rel=0.02)
    assert len(known) == 2


def test_two_changes_and_the_way_back_are_told_apart():
    """Each level begins a new baseline."""
    values = noisy(40) + noisy(20, 1.1, seed=1) + noisy(20, 1.0, seed=2)
    found = change_points(values).points
    assert len(found) == 2
    assert abs(found[0].index - 40) <= 1
    assert abs(found[1].index - 60) <= 1
    assert found[0].size > 0 > found[1].size


def test_waves_make_the_detector_slower_to_believe():
    """A series whose noise comes in waves shows its autocorrelation and alarms far less than once a wave."""
    rng = random.Random(3)
    values = [math.exp(0.03 * math.sin(night / 6.0) + rng.gauss(0, 0.004)) for night in range(150)]
    found = change_points(values)
    assert found.autocorrelation is not None
    assert found.autocorrelation > 0.7
    assert sum(point.noticed >= 75 for point in found.points) <= 4


def correlated(count: int, seed: int) -> list[float]:
    """``count`` logarithms of noise of 2 % in which each night keeps 0.8 of the one before."""
    rng = random.Random(seed)
    values = [rng.gauss(0.0, 0.02)]
    while len(values) < count:
        values.append(0.8 * values[-1] + 0.6 * rng.gauss(0.0, 0.02))
    return values


class Forgetful(Watch):
    """A watch that knows how its nights are distributed, and not which came after which."""

    def residuals(self) -> np.ndarray:
        """The noise of the past in another order."""
        return np.random.default_rng(0).permutation(super().residuals())


def test_nights_that_resemble_each_other_are_not_counted_twice():
    """A wave shows far less of a step where the past had waves than to a detector that did not see them."""
    own = forgetful = 0.0
    for seed in range(10):
        values = correlated(80, seed)
        own += watched(values).best().score
        forgetful += Forgetful(values=values).best().score
    assert own < 0.7 * forgetful


def test_a_suspicion_is_noise_until_it_is_confirmed_or_lasts():
    """A short level counts as noise; one that is known, or as long as ``reach``, does not."""
    logs = [math.log(value) for value in [*noisy(40), *noisy(12, 1.1, seed=1), *noisy(40, seed=2)]]
    watch = watched(logs)
    watch.restart(40)
    watch.restart(52)
    assert float(np.abs(watch.residuals()).max()) > 0.08
    watch.restart(52, known=True)
    assert float(np.abs(watch.residuals()).max()) < 0.04
    lasting = watched([*logs[:40], *(value + 0.1 for value in logs[:40])])
    lasting.restart(40)
    assert float(np.abs(lasting.residuals()).max()) < 0.04


def test_a_change_that_is_too_small_to_matter_is_not_reported():
    """A certain step below ``smallest`` is left alone."""
    values = noisy(40, spread=0.0005) + noisy(15, 1.005, 0.0005, seed=1)
    assert not change_points(values).points
    assert change_points(values, DetectorSettings(smallest=0.002)).points
