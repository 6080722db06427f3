"""Rare slow steps: what every robust estimator throws away is compared for itself, and gates by harm."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from ab_launches import Machine, judge_of, pair, verdict

from torchgauge.records.comparison import Action, Block, Side, Verdict
from torchgauge.results.comparing.tails import estimate_tail

RARE = (1 / 40, 100.0)


def rewritten(launch, change):
    """``launch`` with every block changed."""
    return replace(launch, blocks=tuple(change(each) for each in launch.blocks))


def test_one_step_in_forty_that_takes_a_hundred_times_as_long_is_a_regression():
    """Latency and wall time throw it away as outliers, and the mean is three times as long."""
    one = pair()
    judge = judge_of([one])
    launches = Machine(cost_s=5.0).run(judge, [one], rare={Side.HEAD: RARE})
    found = verdict(judge, one, "latency_tail")
    assert verdict(judge, one).verdict is Verdict.UNCHANGED
    assert found.verdict is Verdict.REGRESSION
    assert found.action is Action.GATE
    assert found.ratio == pytest.approx(1 + 99 / 40, rel=0.3)
    assert (found.base, found.unit, found.estimator) == (1.0, "ratio", "tail")
    assert "steps of at least twice the median: base 0 of " in found.reason
    assert 3 < launches <= 8


def test_tails_that_both_sides_have_are_no_regression():
    """A busy machine makes them on both, and a pair is compared with itself."""
    one = pair()
    judge = judge_of([one])
    Machine(seed=3).run(judge, [one], rare={Side.BASE: RARE, Side.HEAD: RARE})
    assert verdict(judge, one, "latency_tail").verdict is not Verdict.REGRESSION


def test_fewer_slow_steps_are_an_improvement_that_blocks_nobody():
    """The mirror image; it is reported, and asks for no launch."""
    one = pair()
    judge = judge_of([one], max_launches=8)
    Machine(cost_s=5.0).run(judge, [one], rare={Side.BASE: RARE})
    found = verdict(judge, one, "latency_tail")
    assert found.ratio < 0.5
    assert found.verdict in (Verdict.IMPROVEMENT, Verdict.UNDECIDED)
    assert found.action is Action.REPORT


def test_a_pair_without_slow_steps_asks_for_no_further_launch():
    """What is not there cannot be heavier: three launches, as before."""
    one = pair()
    judge = judge_of([one])
    assert Machine(spread=0.0001).run(judge, [one]) == 3
    found = verdict(judge, one, "latency_tail")
    assert (found.verdict, found.ratio, found.action) == (Verdict.UNCHANGED, 1.0, Action.REPORT)


def test_what_looks_heavier_and_cannot_be_told_is_not_passed_over():
    """One long step in every other launch: more launches, and at the end undecided, which gates."""
    one = pair()
    judge, machine = judge_of([one]), Machine(cost_s=1.0)
    number = 0
    while judge.wanted():
        number += 1
        long = {Side.HEAD: (0.02, 60.0) if number % 2 else (0.004, 20.0)}
        judge.add(machine.launch(one, number=number, rare=long))
    found = verdict(judge, one, "latency_tail")
    assert number > 3
    assert found.ratio > 1.015
    assert found.verdict in (Verdict.REGRESSION, Verdict.UNDECIDED)
    assert found.action is Action.GATE


def test_controls_with_heavier_tails_never_gate():
    """A false alarm of the rule blocks nobody."""
    one = pair(control=True)
    judge = judge_of([one])
    Machine(cost_s=5.0).run(judge, [one], rare={Side.HEAD: RARE})
    assert verdict(judge, one, "latency_tail").action is Action.REPORT


def test_among_many_pairs_heavier_tails_repeat_in_fresh_launches():
    """As every suspicion does."""
    pairs = [pair(f"m{index}") for index in range(3)]
    judge, machine = judge_of(pairs), Machine(cost_s=5.0)
    for number in range(1, 40):
        wanted = judge.wanted()
        if not wanted:
            break
        for each in wanted:
            of = next(one for one in pairs if one.key == each.pair_key)
            rare = {Side.HEAD: RARE} if of is pairs[1] else {}
            judge.add(machine.launch(of, number=number, confirms=each.confirms, rare=rare))
    found = verdict(judge, pairs[1], "latency_tail")
    assert found.verdict is Verdict.REGRESSION
    assert found.confirmed is True
    assert verdict(judge, pairs[0], "latency_tail").verdict is Verdict.UNCHANGED


def test_a_step_that_lost_its_core_is_not_slow_for_that():
    """Its own time is wall time less what it waited."""
    one = pair()
    launch = Machine().launch(one, rare={Side.HEAD: RARE}, wait=0.0)

    def waited(block: Block) -> Block:
        usual = min(block.wall)
        return replace(
            block, delay=tuple(each - usual for each in block.wall), cpu=(usual,) * len(block.wall)
        )

    assert estimate_tail(launch).log_ratio > 0.5
    assert estimate_tail(rewritten(launch, waited)).log_ratio == 0.0


def test_a_step_that_sleeps_is_slow_where_the_system_tells_waiting():
    """It waited for no core, and CPU time alone would not see it."""
    one = pair()
    launch = Machine().launch(one, rare={Side.HEAD: RARE}, wait=0.0)

    def asleep(block: Block) -> Block:
        return replace(block, delay=(0.0,) * len(block.wall), cpu=(min(block.wall),) * len(block.wall))

    found = estimate_tail(rewritten(launch, asleep))
    assert found.head / found.base == pytest.approx(math.exp(found.log_ratio))
    assert found.log_ratio > 0.5


def test_threads_that_waited_for_longer_than_the_step_lasted_fall_back_to_cpu_time():
    """Waiting is summed over threads, so it can exceed wall time; nothing is left of the step then."""
    one = pair()
    launch = Machine().launch(one, rare={Side.HEAD: RARE}, wait=0.0)
    spun = rewritten(launch, lambda block: replace(block, delay=tuple(2 * each for each in block.wall)))
    assert estimate_tail(spun).log_ratio == pytest.approx(estimate_tail(launch).log_ratio)


def test_a_lower_half_of_steps_that_only_waited_falls_back_to_cpu_time():
    """The median of an even number of steps may lie between nothing and a step."""
    one = pair()
    launch = Machine().launch(one, rare={Side.HEAD: RARE}, wait=0.0)
    steps = sum(len(block.wall) for block in launch.blocks if block.side is Side.HEAD)
    left = {Side.BASE: steps // 2, Side.HEAD: steps // 2}

    def waited(block: Block) -> Block:
        share = min(len(block.wall), left[block.side])
        left[block.side] -= share
        rest = (0.0,) * (len(block.wall) - share)
        return replace(block, delay=(*block.wall[:share], *rest))

    found = estimate_tail(rewritten(launch, waited))
    assert found.log_ratio == pytest.approx(estimate_tail(launch).log_ratio)


def test_a_side_without_steps_has_no_tail():
    """Nothing is said, and nothing is made up."""
    one = pair()
    launch = Machine().launch(one)
    assert estimate_tail(replace(launch, blocks=())) is None
    half = tuple(each for each in launch.blocks if each.side is Side.BASE)
    assert estimate_tail(replace(launch, blocks=half)) is None
