"""When rounds have been enough, with the samples and the clock given: no step runs and nothing waits."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from torchgauge.harness.worker.lane import Block, Lane
from torchgauge.harness.worker.purse import Purse
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
from torchgauge.records import RunSettings

SETTINGS = RunSettings()
BUDGET = SETTINGS.measure_budget_s


def series(spread: float, alike: float = 0.0, seed: int = 0, step_s: float = 0.05) -> list[float]:
    """A thousand samples around ``step_s``; ``alike`` is the correlation of each with the one before."""
    dice, value, found = random.Random(seed), 0.0, []
    for _ in range(1000):
        value = alike * value + dice.gauss(0.0, spread * math.sqrt(1 - alike**2))
        found.append(step_s * math.exp(value))
    return found


def play(*lanes: list[float], purse: Purse | None = None, settings: RunSettings = SETTINGS):
    """Why rounds over ``lanes`` ended, the lanes, and the seconds that their samples took."""
    made = [Lane(str(number), lambda: None) for number in range(len(lanes))]
    rounds = Rounds(made, settings, purse or Purse(), 0.0, settings.measure_budget_s * len(lanes))
    now = 0.0
    for number in range(len(lanes[0])):
        for lane, samples in zip(made, lanes, strict=True):
            if not lane.stopped:
                lane.wall.append(samples[number])
                lane.rounds.append(number)
                now += samples[number]
        stopped = rounds.verdict(number + 1, now)
        if stopped:
            return stopped, made, now
    return "series", made, now


def test_steady_samples_end_early() -> None:
    """Narrow and independent: the second of two looks after half of the budget ends it."""
    stopped, _, now = play(series(0.002))
    assert stopped == "precision"
    assert LEAST_SHARE * BUDGET < now < 1.3 * LEAST_SHARE * BUDGET


def test_nothing_ends_in_the_first_moments() -> None:
    """However precise fast samples are, half of the budget is taken: machines have moods."""
    stopped, (lane,), now = play(series(0.002, step_s=0.002))
    assert stopped == "precision"
    assert LEAST_SHARE * BUDGET <= now < 1.3 * LEAST_SHARE * BUDGET
    assert len(lane.wall) > 500


def test_samples_that_resemble_each_other_take_thirty_rounds() -> None:
    """Where a machine drifts, few samples in a row agree with each other and not with what comes."""
    drift = [0.05 * (1.0 + 0.0001 * number) for number in range(1000)]
    stopped, (lane,), _ = play(drift)
    assert stopped in {"precision", "budget"}
    assert len(lane.wall) >= ALIKE_ROUNDS
    stopped, (slow,), now = play([10 * each for each in drift])
    assert (stopped, len(slow.wall)) == ("budget", ALIKE_ROUNDS)
    assert now > BUDGET


def test_very_slow_steps_end_at_the_ceiling() -> None:
    """Beyond eight budgets six rounds are enough; what is so slow that they are not had in 24 has three."""
    stopped, (lane,), now = play(series(0.1, step_s=CEILING * BUDGET / 5))
    assert (stopped, len(lane.wall)) == ("budget", 6)
    assert now > CEILING * BUDGET
    stopped, (lane,), _ = play(series(0.1, step_s=HARD_CEILING * BUDGET))
    assert (stopped, len(lane.wall)) == ("budget", 3)


def test_slow_steps_that_resemble_each_other_are_sampled_on() -> None:
    """Twelve of them say little: up to thirty are taken, and never more than 24 budgets."""
    slow = [CEILING * BUDGET / 11 * (1.0 + 0.001 * number) for number in range(100)]
    stopped, (lane,), _ = play(slow)
    assert (stopped, len(lane.wall)) == ("budget", ALIKE_ROUNDS)
    stopped, (lane,), now = play([2 * each for each in slow])
    assert stopped == "budget"
    assert HARD_CEILING * BUDGET < now < HARD_CEILING * BUDGET + 3 * slow[0]


def visits(step_s: float, rounds: int) -> list[float]:
    """When each visit to a case with steps of ``step_s`` ends, on the machine's clock, and the pause then."""
    lane, now, found = Lane("0", lambda: None), 0.0, []
    counted = Rounds([lane], SETTINGS, Purse(), 0.0, BUDGET)
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


def test_a_pause_is_no_time_of_sampling() -> None:
    """Budget and floor count what was sampled."""
    counted = Rounds([Lane("0", lambda: None)], SETTINGS, Purse(), 0.0, BUDGET)
    before = counted.deadline
    counted.rested(4.0)
    assert (counted.began, counted.deadline) == (4.0, before + 4.0)


def test_wide_samples_spend_their_budget_and_no_more() -> None:
    """Without a purse the budget is the end, as soon as the smallest number of rounds is there."""
    stopped, _, now = play(series(0.3))
    assert stopped == "budget"
    assert BUDGET < now < BUDGET + 0.2
    stopped, (slow,), now = play(series(0.3, step_s=0.2))
    assert (stopped, len(slow.wall)) == ("budget", 16)


def test_a_precise_lane_leaves_the_others_alone() -> None:
    """Of three, the one that is precise and paired precisely is not run any more; the first one is."""
    base = series(0.002, seed=1)
    stopped, (first, precise, wide), _ = play(base, [each / 2 for each in base], series(0.3, seed=2))
    assert stopped == "budget"
    assert precise.stopped == "precision"
    assert (first.stopped, wide.stopped) == ("", "")
    assert len(precise.wall) < len(wide.wall) == len(first.wall)
    assert precise.rounds == first.rounds[: len(precise.rounds)]


def test_time_that_was_left_goes_where_the_interval_is_wide(tmp_path: Path) -> None:
    """A wide group takes what the purse holds, up to three budgets; one near its target takes none."""
    purse = Purse(str(tmp_path / "purse"))
    purse.settle(1.0)
    _, _, now = play(series(0.4), purse=purse)
    assert BUDGET + 1.0 < now < BUDGET + 1.2
    purse.settle(1000.0)
    _, _, now = play(series(0.4), purse=purse)
    assert now == pytest.approx(MOST_BUDGETS * BUDGET, abs=0.2)
    near = replace(SETTINGS, precision_target=0.08)
    _, _, now = play(series(0.3), purse=purse, settings=near)
    assert now < BUDGET + 0.2


def test_a_purse_holds_what_was_put_in(tmp_path: Path) -> None:
    """Seconds add up, overruns are paid from it, it is never below nothing, and damage empties it."""
    purse = Purse(str(tmp_path / "purse"))
    assert purse.seconds() == 0.0
    purse.settle(2.0)
    purse.settle(1.5)
    assert Purse(purse.path).seconds() == 3.5
    purse.settle(-10.0)
    assert purse.seconds() == 0.0
    Path(purse.path).write_text("nan")
    assert purse.seconds() == 0.0
    Purse().settle(5.0)
    assert Purse().seconds() == 0.0
    assert [file.name for file in tmp_path.iterdir()] == ["purse"]


def play_beside(others: float, settings: RunSettings = SETTINGS, purse: Purse | None = None):
    """Like :func:`play` for one lane of steps of 50 ms, beside work that has its cores until ``others``."""
    lane, now, stopped = Lane("0", lambda: None), 0.0, ""
    rounds = Rounds([lane], settings, purse or Purse(), 0.0, settings.measure_budget_s)
    for number in range(5000):
        taken = now < others
        step_s = 0.4 if taken else 0.05 * (1.0 + 0.001 * (number * 7 % 5))
        lane.add(Block(step_s, step_s, None), number, 0.5 if taken else 0.0)
        now += step_s
        stopped = rounds.verdict(number + 1, now)
        if stopped:
            break
    rounds.settle(now)
    return stopped, lane, now


def test_sampling_waits_for_others_to_leave_and_leaves_their_blocks_out() -> None:
    """Work that ends long after the budget is waited for and spoils no sample."""
    stopped, lane, now = play_beside(BUDGET + 5.0)
    assert BUDGET + 5.0 < now < BUDGET + 7.0
    assert stopped == "budget"
    assert len(lane.wall) >= SETTINGS.min_blocks
    assert max(lane.wall) < 0.06
    assert {block.wall for block in lane.contended.values()} == {0.4}
    assert not set(lane.rounds) & set(lane.contended)
    assert sorted([*lane.rounds, *lane.contended]) == list(lane.contention)


def test_work_that_stays_is_waited_for_within_the_bound_and_then_counted() -> None:
    """Ten seconds beyond the budget, or as many as the setting says; then what there is has to do."""
    for setting, patience in ((10.0, 10.0), (2.0, 2.0), (0.0, 0.0), (100.0, MOST_WAITS * BUDGET)):
        stopped, lane, now = play_beside(math.inf, replace(SETTINGS, quiet_wait_s=setting))
        assert stopped == "budget"
        assert now == pytest.approx(max(BUDGET, 12 * 0.4) if patience < 2 else BUDGET + patience, abs=0.5)
        assert len(lane.wall) == len(lane.contention)
        assert not lane.contended


def test_all_groups_of_a_run_share_their_patience(tmp_path: Path) -> None:
    """A machine that is never quiet: the first group waits, later ones a quarter of a budget each."""
    purse = Purse(str(tmp_path / "purse"))
    times = [play_beside(math.inf, purse=purse)[2] for _ in range(6)]
    assert times[0] == pytest.approx(BUDGET + 10.0, abs=0.5)
    assert max(times[1:]) < 12 * 0.4 + PATIENCE_SHARE * BUDGET + 0.5
    assert purse.seconds() == 0.0


def test_a_quiet_group_waits_for_nobody(tmp_path: Path) -> None:
    """Blocks without contention, and blocks of a system that does not count it, end as they did."""
    stopped, lane, now = play_beside(0.0)
    assert stopped == "precision"
    assert now < BUDGET
    assert not lane.contended
