"""The test over launches: what it spends, what history does, and what it promises."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from torchgauge.results.comparing.sequential import (
    Levels,
    Moderated,
    detectable,
    live_change,
    looks,
    moderate,
    needed,
    spent_p,
)

TRIALS = 4000


def trials(effect, spread=0.01, launches=12, seed=0):
    """Normal log ratios of launches, trials x launches."""
    return np.random.default_rng(seed).normal(effect, spread, (TRIALS, launches))


def ever(flag, logs, levels, *prior):
    """Share of trials in which the rule says ``flag`` at any look."""
    held = [
        getattr(live_change(moderate(logs[:, :look], *prior), levels), flag) for look in looks(logs.shape[1])
    ]
    return float(np.any(held, axis=0).mean())


def test_looks_end_with_the_last_launch():
    """Whatever the limit is, the last launch is looked at; below three there is nothing to look at."""
    assert looks(12) == (3, 4, 5, 6, 8, 10, 12)
    assert looks(7) == (3, 4, 5, 6, 7)
    assert looks(16) == (3, 4, 5, 6, 8, 10, 12, 15, 16)
    assert looks(2) == ()


def test_the_plain_test_is_students():
    """Without history, estimate and p-value are scipy's."""
    logs = np.array([0.01, 0.03, 0.02, 0.05])
    found = moderate(logs)
    expected = stats.ttest_1samp(logs, 0.0)
    assert float(found.p_value()) == pytest.approx(expected.pvalue)
    low, high = found.interval(0.05)
    assert (float(low), float(high)) == pytest.approx(tuple(expected.confidence_interval(0.9)))


def test_history_adds_its_degrees_of_freedom():
    """A spread below that of history counts as history's, with the degrees of freedom of both."""
    found = moderate(np.array([0.00, 0.02, 0.01]), 0.02, 10.0)
    assert float(found.df) == 12.0
    assert float(found.spread) == pytest.approx(0.02)


def test_the_present_spread_widens_what_history_says():
    """On a machine that is worse than its history the launches speak, and history is worth less."""
    logs = np.array([-0.02, 0.03, 0.01, -0.01])
    found = moderate(logs, 0.01, 20.0)
    assert float(found.spread) == pytest.approx(logs.std(ddof=1))
    assert float(found.df) == pytest.approx(3 + 20 / (logs.var(ddof=1) / 0.01**2))


def test_p_values_are_those_of_smyths_moderated_t():
    """The pooled variance on all degrees of freedom, to the letter."""
    logs = np.array([0.00, 0.02, 0.01])
    pooled = (10 * 0.02**2 + 2 * logs.var(ddof=1)) / 12
    expected = 2 * stats.t.sf(0.01 / math.sqrt(pooled / 3), 12)
    assert float(moderate(logs, 0.02, 10.0).p_value()) == pytest.approx(expected)


@pytest.mark.parametrize("prior", [(), (0.01, 20.0)], ids=["no history", "history"])
def test_looking_often_keeps_the_error(prior):
    """Harm is claimed of unchanged code in 1 % at most, and harmlessness of a change in 5 %.

    The limits are three standard errors of the simulation above what is promised.
    """
    levels = Levels(0.03, looks(12))
    small = Levels(1e-9, looks(12))  # without the demand on the size of the estimate
    assert ever("more", trials(0.0), small, *prior) < 0.01 + 3 * math.sqrt(0.01 / TRIALS)
    assert ever("less", trials(0.0), small, *prior) < 0.01 + 3 * math.sqrt(0.01 / TRIALS)
    assert ever("same", trials(levels.margin), levels, *prior) < 0.05 + 3 * math.sqrt(0.05 / TRIALS)


@pytest.mark.parametrize(("times", "limit"), [(1.25, 0.01), (1.5, 0.02), (3.0, 0.04), (5.0, 0.04)])
def test_a_history_that_was_too_calm_costs_little(times, limit):
    """Wrong harm when launches spread ``times`` what history says; pooled variances make up to 20 %."""
    levels = Levels(1e-9, looks(12))
    assert ever("more", trials(0.0, 0.01 * times), levels, 0.01, 20.0) < limit + 3 * math.sqrt(limit / TRIALS)


def test_real_changes_are_found():
    """Five standard deviations of a launch are found nearly always, with history mostly by three launches."""
    levels = Levels(0.03, looks(12))
    assert ever("more", trials(0.05), levels) > 0.99
    assert ever("less", trials(-0.05), levels) > 0.99
    assert live_change(moderate(trials(0.05)[:, :3], 0.01, 20.0), levels).more.mean() > 0.95
    assert ever("same", trials(0.0), levels) > 0.99


def test_a_sure_but_small_change_is_no_regression():
    """Evidence without size is not enough: 1 % is below half the tolerance of 3 %."""
    levels = Levels(0.03, looks(12))
    tiny = moderate(np.array([0.0100, 0.0101, 0.0099, 0.0100, 0.0101]))
    assert not live_change(tiny, levels).more
    assert live_change(tiny, levels).same


def test_p_values_pay_for_every_look():
    """One look's p-value times the looks, and never above 1."""
    found = moderate(np.array([0.01, 0.03, 0.02]))
    assert float(spent_p(found, Levels(0.03, looks(12)))) == pytest.approx(7 * float(found.p_value()))
    assert float(spent_p(moderate(np.array([-0.01, 0.01, 0.0])), Levels(0.03, looks(12)))) == 1.0


def test_the_detectable_change_is_found_in_four_of_five():
    """The promise of ``detectable``, checked by trials of that very spread."""
    levels = Levels(0.03, looks(12))
    change = detectable(Moderated(12, np.array(0.0), np.array(0.015), np.array(11.0)), levels)
    logs = trials(math.log1p(change), 0.015)
    assert 0.72 < live_change(moderate(logs), levels).more.mean() < 0.85


def test_needed_launches_decide_it():
    """What needs few launches says so, and what a thousand would not decide has no number."""
    levels = Levels(0.03, looks(12))
    assert needed(moderate(np.array([0.05, 0.08, 0.02])), levels) in range(4, 30)
    assert needed(moderate(np.array([0.001, 0.02, -0.02])), levels) in range(4, 30)
    assert needed(moderate(np.array([1.0, -1.0, 0.1])), levels) is None


def test_equal_launches_have_no_spread_and_no_doubt():
    """A simulated device without noise gives certainty, not a division by zero."""
    levels = Levels(0.03, looks(12))
    same, slower = moderate(np.zeros(3)), moderate(np.full(3, 0.1))
    assert float(same.p_value()) == 1.0
    assert float(slower.p_value()) < 1e-20
    assert live_change(same, levels).same
    assert live_change(slower, levels).more


@pytest.mark.parametrize("logs", [[0.1], [0.1, math.nan, 0.2], [0.1, math.inf]])
def test_too_little_and_nonsense_is_refused(logs):
    """One launch has no spread, and NaN is no estimate."""
    with pytest.raises(ValueError, match="launch"):
        moderate(np.array(logs))
