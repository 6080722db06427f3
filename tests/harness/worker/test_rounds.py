"""When rounds have been enough, with the samples and the clock given: no step runs and nothing waits."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from torchgauge.harness.worker.rounds import (
    ALIKE_ROUNDS,
    CEILING,
    HARD_CEILING,
    LEAST_SHARE,
    LONGEST_REST_S,
    MOST_BUDGETS,
    MOST_WAITS,
    PATIENCE_SHARE,
    VISITS,
    Rounds,
)
from torchgauge.harness.worker.series import Block, Series
from torchgauge.harness.worker.shared_budget import SharedBudget
from torchgauge.records import RunSettings

SETTINGS = RunSettings()
BUDGET = SETTINGS.measure_budget_s


def wall_times(spread: float, alike: float = 0.0, seed: int = 0, step_s: float = 0.05) -> list[float]:
    """A thousand samples around ``step_s``; ``alike`` is the correlation of each with the one before."""
    dice, value, found = random.Random(seed), 0.0, []
    for _ in range(1000):
        value = alike * value + dice.gauss(0.0, spread * math.sqrt(1 - alike**2))
        found.append(step_s * math.exp(value))
    return found


def play(
    *all_series: list[float], shared_budget: SharedBudget | None = None, settings: RunSettings = SETTINGS
):
    """Why rounds over ``all_series`` ended, the series, and the seconds that their samples took."""
    made = [Series(str(number), lambda: None) for number in range(len(all_series))]
    rounds = Rounds(
        made, settings, shared_budget or SharedBudget(), 0.0, settings.measure_budget_s * len(all_series)
    )
    now = 0.0
    for number in range(len(all_series[0])):
        for series, samples in zip(made, all_series, strict=True):
            if not series.stopped:
                series.wall.append(samples[number])
                series.rounds.append(number)
                now += samples[number]
        stopped = rounds.verdict(number + 1, now)
        if stopped:
            return stopped, made, now
    return "wall_times", made, now


def test_steady_samples_end_early() -> None:
    """Narrow and independent: the second of two looks after half of the budget ends it."""
    stopped, _, now = play(wall_times(0.002))
    assert stopped == "precision"
    assert LEAST_SHARE * BUDGET < now < 1.3 * LEAST_SHARE * BUDGET


def test_samples_that_resemble_each_other_take_thirty_rounds() -> None:
    """Where a machine drifts, few samples in a row agree with each other and not with what comes."""
    drift = [0.05 * (1.0 + 0.0001 * number) for number in range(1000)]
    stopped, (series,), _ = play(drift)
    assert stopped in {"precision", "budget"}
    assert len(series.wall) >= ALIKE_ROUNDS
    stopped, (slow,), now = play([10 * each for each in drift])
    assert (stopped, len(slow.wall)) == ("budget", ALIKE_ROUNDS)
    assert now > BUDGET


def test_very_slow_steps_end_at_the_ceiling() -> None:
    """Beyond eight budgets six rounds are enough; what is so slow that they are not had in 24 has three."""
    stopped, (series,), now = play(wall_times(0.1, step_s=CEILING * BUDGET / 5))
    assert (stopped, len(series.wall)) == ("budget", 6)
    assert now > CEILING * BUDGET
    stopped, (series,), _ = play(wall_times(0.1, step_s=HARD_CEILING * BUDGET))
    assert (stopped, len(series.wall)) == ("budget", 3)


def visits(step_s: float, rounds: int) -> list[float]:
    """When each visit to a case with steps of ``step_s`` ends, on the machine's clock, and the pause then."""
    series, now, found = Series("0", lambda: None), 0.0, []
    counted = Rounds([series], SETTINGS, SharedBudget(), 0.0, BUDGET)
    for number in range(rounds):
        now += step_s
        pause = counted.rest(number + 1, now)
        if pause:
            found += [now, pause]
            counted.rested(pause)
            now += pause
    return found


def test_short_rounds_come_in_visits_apart_from_each_other() -> None:
    """Each visit begins a second after the one before; after the last one there is no pause any more."""
    found = visits(0.02, 1000)
    ends, pauses = found[::2], found[1::2]
    assert len(pauses) == VISITS - 1
    begins = [0.0, *(end + pause for end, pause in zip(ends, pauses, strict=True))]
    assert all(later - earlier == pytest.approx(LONGEST_REST_S) for earlier, later in pairwise(begins))
    assert visits(0.5, 100) == []


def test_a_precise_series_leaves_the_others_alone() -> None:
    """Of three, the one that is precise and paired precisely is not run any more; the first one is."""
    base = wall_times(0.002, seed=1)
    stopped, (first, precise, wide), _ = play(base, [each / 2 for each in base], wall_times(0.3, seed=2))
    assert stopped == "budget"
    assert precise.stopped == "precision"
    assert (first.stopped, wide.stopped) == ("", "")
    assert len(precise.wall) < len(wide.wall) == len(first.wall)
    assert precise.rounds == first.rounds[: len(precise.rounds)]


def test_time_that_was_left_goes_where_the_interval_is_wide(tmp_path: Path) -> None:
    """A wide group takes what the shared budget holds, up to three budgets; one near its target none."""
    shared_budget = SharedBudget(str(tmp_path / "shared_budget"))
    shared_budget.settle(1.0)
    _, _, now = play(wall_times(0.4), shared_budget=shared_budget)
    assert BUDGET + 1.0 < now < BUDGET + 1.2
    shared_budget.settle(1000.0)
    _, _, now = play(wall_times(0.4), shared_budget=shared_budget)
    assert now == pytest.approx(MOST_BUDGETS * BUDGET, abs=0.2)
    near = replace(SETTINGS, precision_target=0.08)
    _, _, now = play(wall_times(0.3), shared_budget=shared_budget, settings=near)
    assert now < BUDGET + 0.2


def play_beside(others: float, settings: RunSettings = SETTINGS, shared_budget: SharedBudget | None = None):
    """Like :func:`play` for one series of steps of 50 ms, beside work that has its cores until ``others``."""
    series, now, stopped = Series("0", lambda: None), 0.0, ""
    rounds = Rounds([series], settings, shared_budget or SharedBudget(), 0.0, settings.measure_budget_s)
    for number in range(5000):
        taken = now < others
        step_s = 0.4 if taken else 0.05 * (1.0 + 0.001 * (number * 7 % 5))
        series.add(Block(step_s, step_s, None), number, 0.5 if taken else 0.0)
        now += step_s
        stopped = rounds.verdict(number + 1, now)
        if stopped:
            break
    rounds.settle(now)
    return stopped, series, now


def test_sampling_waits_for_others_to_leave_and_leaves_their_blocks_out() -> None:
    """Work that ends long after the budget is waited for and spoils no sample."""
    stopped, series, now = play_beside(BUDGET + 5.0)
    assert BUDGET + 5.0 < now < BUDGET + 7.0
    assert stopped == "budget"
    assert len(series.wall) >= SETTINGS.min_blocks
    assert max(series.wall) < 0.06
    assert {block.wall for block in series.contended.values()} == {0.4}
    assert not set(series.rounds) & set(series.contended)
    assert sorted([*series.rounds, *series.contended]) == list(series.contention)


def test_work_that_stays_is_waited_for_within_the_bound_and_then_counted() -> None:
    """Ten seconds beyond the budget, or as many as the setting says; then what there is has to do."""
    for setting, patience in ((10.0, 10.0), (2.0, 2.0), (0.0, 0.0), (100.0, MOST_WAITS * BUDGET)):
        stopped, series, now = play_beside(math.inf, replace(SETTINGS, quiet_wait_s=setting))
        assert stopped == "budget"
        assert now == pytest.approx(max(BUDGET, 12 * 0.4) if patience < 2 else BUDGET + patience, abs=0.5)
        assert len(series.wall) == len(series.contention)
        assert not series.contended


def test_all_groups_of_a_run_share_their_patience(tmp_path: Path) -> None:
    """A machine that is never quiet: the first group waits, later ones a quarter of a budget each."""
    shared_budget = SharedBudget(str(tmp_path / "shared_budget"))
    times = [play_beside(math.inf, shared_budget=shared_budget)[2] for _ in range(6)]
    assert times[0] == pytest.approx(BUDGET + 10.0, abs=0.5)
    assert max(times[1:]) < 12 * 0.4 + PATIENCE_SHARE * BUDGET + 0.5
    assert shared_budget.seconds() == 0.0
