"""From steps to one number per launch: what is chosen, what is left out, and what is refused."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from torchgauge.records import Outcome, Phase, Status
from torchgauge.records.comparison import Block, Launch, Side
from torchgauge.results.comparing.estimators import (
    Estimator,
    LaunchEstimate,
    Unusable,
    choose_estimator,
    estimate,
    within_fences,
)

PASSED = Outcome("0" * 16, Status.PASS, Phase.DONE)
STEPS = 4


def launch(abba_blocks=12, ratio=1.0, *, wait=0.0, noise=0.002, seed=0, change=lambda block: block) -> Launch:
    """A launch of 1 ms steps whose head takes ``ratio``; every step waits ``wait`` seconds for a core."""
    rng = random.Random(seed)
    blocks = []
    for abba_block in range(abba_blocks):
        order = rng.choice(("ABBA", "BAAB"))
        for position, letter in enumerate(order):
            side = Side.BASE if letter == "A" else Side.HEAD
            length = 1e-3 * (ratio if side is Side.HEAD else 1.0)
            cpu = tuple(length * math.exp(rng.gauss(0, noise)) for _ in range(STEPS))
            wall = tuple(each + 1e-6 + wait for each in cpu)
            blocks.append(change(Block(side, abba_block, position, wall, cpu)))
    return Launch("pair", "pair", 1, Side.BASE, PASSED, PASSED, tuple(each for each in blocks if each))


def altered(block, **fields):
    """``block`` with other fields."""
    return Block(**{**vars(block), **fields})


def test_the_log_ratio_is_of_head_over_base():
    """A head that takes 5 % longer is above 0 by log 1.05."""
    found = estimate(launch(ratio=1.05, abba_blocks=40), Estimator.CPU)
    assert found.log_ratio == pytest.approx(math.log(1.05), abs=0.002)
    assert found.base == pytest.approx(1e-3, rel=0.01)
    assert found.head == pytest.approx(1.05e-3, rel=0.01)
    assert found.abba_blocks + found.outliers == 40


def test_clean_steps_choose_wall_time_and_waiting_ones_cpu_time():
    """The choice looks at waiting, and not at the ratio."""
    assert choose_estimator(launch(ratio=1.5)) is Estimator.CLEAN_WALL
    assert choose_estimator(launch(wait=0.01)) is Estimator.CPU


def test_delays_decide_where_the_system_tells_them():
    """Wall time far above CPU time is clean where no thread waited for a core: the head may just sleep."""
    asleep = launch(wait=0.01, change=lambda block: altered(block, delay=(0.0,) * STEPS))
    waiting = launch(change=lambda block: altered(block, delay=(0.5e-3,) * STEPS))
    assert choose_estimator(asleep) is Estimator.CLEAN_WALL
    assert choose_estimator(waiting) is Estimator.CPU


def test_events_of_the_device_come_first():
    """Event time is taken where every block has it, and not where one block lacks it."""
    timed = launch(change=lambda block: altered(block, device=tuple(3 * each for each in block.cpu)))
    assert choose_estimator(timed) is Estimator.DEVICE
    assert estimate(timed, Estimator.DEVICE).base == pytest.approx(3e-3, rel=0.01)
    lacking = launch(
        change=lambda block: altered(block, device=() if block.abba_block == 3 else tuple(block.cpu)),
    )
    assert choose_estimator(lacking) is not Estimator.DEVICE


def test_one_side_that_always_waits_is_enough_for_cpu_time():
    """A fifth of the steps of either side must be clean, not a fifth of all."""

    def head_waits(block):
        slow = tuple(each + 0.01 for each in block.wall)
        return altered(block, wall=slow) if block.side is Side.HEAD else block

    assert choose_estimator(launch(change=head_waits)) is Estimator.CPU


def test_clean_wall_time_leaves_out_the_steps_that_waited():
    """Steps that were pre-empted say nothing, and those that were not say it all."""

    def every_other_step_waits(block):
        wall = tuple(wall + (0.02 if index % 2 else 0.0) for index, wall in enumerate(block.wall))
        return altered(block, wall=wall)

    found = estimate(launch(ratio=1.05, abba_blocks=40, change=every_other_step_waits), Estimator.CLEAN_WALL)
    assert found.log_ratio == pytest.approx(math.log(1.05), abs=0.003)
    assert found.base < 2e-3


def test_a_few_wild_abba_blocks_are_counted_and_left_out():
    """One ABBA block in which the machine stood still moves nothing."""

    def wild(block):
        long = tuple(100 * each for each in block.cpu)
        return altered(block, cpu=long) if block.abba_block == 5 and block.side is Side.HEAD else block

    found = estimate(launch(change=wild), Estimator.CPU)
    assert found.outliers == 1
    assert found.log_ratio == pytest.approx(0.0, abs=0.003)


@pytest.mark.parametrize("value", [0.0, -1e-3, math.nan, math.inf])
def test_impossible_times_are_left_out_and_counted(value):
    """Zero, negative and non-finite times are no times; the rest of the launch counts."""

    def broken(block):
        return altered(block, cpu=(value, *block.cpu[1:])) if block.abba_block == 0 else block

    found = estimate(launch(change=broken), Estimator.CPU)
    assert isinstance(found, LaunchEstimate)
    assert found.bad_steps == 4
    assert found.log_ratio == pytest.approx(0.0, abs=0.003)


@pytest.mark.parametrize("value", [0.0, -1e-3, math.nan])
def test_a_launch_of_impossible_times_alone_has_no_estimate(value):
    """Nothing is made of nothing."""
    found = estimate(launch(change=lambda block: altered(block, cpu=(value,) * STEPS)), Estimator.CPU)
    assert isinstance(found, Unusable)
    assert "impossible" in found.reason


def test_a_launch_without_blocks_has_no_estimate():
    """The reason says so."""
    assert estimate(launch(abba_blocks=0), Estimator.CPU) == Unusable("the launch has no blocks")


def test_a_missing_side_has_no_estimate():
    """Blocks of the base alone are no comparison."""
    alone = launch(change=lambda block: block if block.side is Side.BASE else None)
    assert isinstance(estimate(alone, Estimator.CPU), Unusable)


def test_abba_blocks_that_ended_early_do_not_count():
    """AB without its BA is not balanced against a machine that becomes slower."""
    half = launch(change=lambda block: None if block.abba_block == 11 and block.position > 1 else block)
    found = estimate(half, Estimator.CPU)
    assert (found.abba_blocks + found.outliers, found.incomplete) == (11, 1)


def test_three_abba_blocks_are_too_few():
    """Below four ABBA blocks there are no quartiles."""
    assert isinstance(estimate(launch(abba_blocks=3), Estimator.CPU), Unusable)
    assert isinstance(estimate(launch(abba_blocks=4), Estimator.CPU), LaunchEstimate)


def test_a_block_whose_columns_differ_in_length_does_not_count():
    """Steps cannot be told apart in it."""
    short = launch(change=lambda block: altered(block, cpu=block.cpu[:2]) if block.abba_block == 0 else block)
    assert estimate(short, Estimator.CPU).incomplete == 1


def test_ties_of_a_coarse_clock_are_no_outliers():
    """Fences of no width would leave nothing but ties."""
    assert within_fences(np.array([0.0, 0.0, 0.0, 0.0, 0.1])).all()


def test_fences_take_nan_for_no_value():
    """An ABBA block without a clean step lies outside, and moves no fence."""
    assert within_fences(np.array([0.1, np.nan, 0.0, -0.1, 0.05, 9.0])).tolist() == [
        True,
        False,
        True,
        True,
        True,
        False,
    ]
