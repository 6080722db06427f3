"""What the cases of one run have in common in noise, and what a run without history finds by it."""

from __future__ import annotations

import numpy as np
import pytest
from ab_launches import Machine, judge_of, pair, verdict

from torchgauge.records.comparison import Verdict
from torchgauge.results.comparing.pooled_noise import FEWEST_CASES, pooled_prior


def drawn(scales, seed=0):
    """Three launches for each of ``scales``."""
    return np.random.default_rng(seed).normal(0, np.asarray(scales)[:, None], (len(scales), 3))


def test_cases_of_one_noise_make_a_strong_prior():
    """Its spread is theirs, and it is worth as much as history may be."""
    found = pooled_prior(drawn(np.full(400, 0.02)))
    assert found.spread == pytest.approx(0.02, rel=0.1)
    assert found.df >= 10


def test_cases_that_differ_much_make_a_weak_one():
    """Spreads over two orders of magnitude say little of the next case."""
    scales = 0.02 * np.exp(np.random.default_rng(1).normal(0, 1.2, 400))
    assert pooled_prior(drawn(scales)).df < 3


def test_few_cases_make_none():
    """So do cases without a spread, and launches that are too few."""
    assert pooled_prior(drawn(np.full(FEWEST_CASES - 1, 0.02))) is None
    assert pooled_prior(np.zeros((100, 3))) is None
    assert pooled_prior(np.ones((100, 2))) is None
    assert pooled_prior([]) is None


def test_a_run_of_many_cases_finds_without_history_what_three_launches_each_cannot():
    """Forty cases and one slower by 5 %: found, and confirmed by fresh launches; nobody else is."""
    pairs = [pair(f"m{index}") for index in range(40)]
    judge = judge_of(pairs, max_launches=6)
    machine = Machine(seed=5, spread=0.012, cost_s=1.0)
    machine.run(judge, pairs, lambda of, _: 1.05 if of is pairs[7] else 1.0)
    found = verdict(judge, pairs[7])
    assert found.verdict is Verdict.REGRESSION
    assert found.confirmed is True
    assert found.prior_spread == pytest.approx(0.012, rel=0.4)
    others = [verdict(judge, each) for each in pairs if each is not pairs[7]]
    assert Verdict.REGRESSION not in {each.verdict for each in others}
