"""The judge: what it asks for, when it stops, and what it says, also of what cannot be judged."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import numpy as np
import pytest
from ab_launches import STEPS, Machine, judge_of, outcome, pair, verdict

from torchgauge.records import (
    Configuration,
    Measurement,
    Modifier,
    Status,
)
from torchgauge.records.comparison import Action, Block, Pair, Side, Verdict
from torchgauge.results.comparing.noise import NoiseHistory, Prior
from torchgauge.results.comparing.sequential import Levels, live_change
from torchgauge.results.comparing.suite_level import SUITE_HARM, common_evidence


def test_unchanged_is_claimed_and_ends_the_launches():
    """The whole interval lies within the tolerance, and nothing more is wanted."""
    one = pair()
    judge = judge_of([one])
    launches = Machine().run(judge, [one])
    found = verdict(judge, one)
    assert found.verdict is Verdict.UNCHANGED
    assert 1 / 1.03 < found.low < found.ratio < found.high < 1.03
    assert found.confidence == pytest.approx(0.9)
    assert (found.launches, found.estimator) == (launches, "cpu")
    assert found.time_s == pytest.approx(10.0 * launches)


def test_pairs_that_compile_are_launched_until_warm_compilations_can_be_compared():
    """One cold compilation and three warm ones take four launches, however sure the latency is."""
    eager, compiled = pair(), Configuration("inductor", "inductor")
    both = Pair(replace(eager.base, configuration=compiled), eager.head)
    for one, launches in ((eager, 3), (both, 4)):
        judge = judge_of([one])
        assert Machine(spread=0.0001).run(judge, [one]) == launches
    control = Pair(both.head, both.head, control=True)
    judge = judge_of([control])
    assert Machine(spread=0.0001).run(judge, [control]) == 3


def test_a_slow_head_is_a_regression_with_its_evidence():
    """One pair needs no fresh launches; everything that the verdict rests on is in it."""
    one = pair()
    judge = judge_of([one])
    Machine().run(judge, [one], lambda *_: 1.08)
    found = verdict(judge, one)
    assert found.verdict is Verdict.REGRESSION
    assert found.action is Action.GATE
    assert 1.0 < found.low < found.ratio < found.high
    assert found.ratio == pytest.approx(1.08, abs=0.02)
    assert found.p <= found.p_adjusted < 0.05
    assert found.head / found.base == pytest.approx(found.ratio, rel=0.02)
    assert 0 < found.spread < 0.05
    assert found.detectable > 0
    assert found.confirmed is None


def test_a_fast_head_is_an_improvement():
    """The mirror image."""
    one = pair()
    judge = judge_of([one])
    Machine().run(judge, [one], lambda *_: 1 / 1.08)
    assert verdict(judge, one).verdict is Verdict.IMPROVEMENT


def test_what_is_never_clear_ends_undecided_and_says_what_it_would_take():
    """Twelve launches of a wild case: undecided, with the reason, the launches needed and what was seen."""
    one = pair()
    judge = judge_of([one])
    assert Machine(spread=0.2, cost_s=1.0).run(judge, [one]) == 12
    found = verdict(judge, one)
    assert found.verdict is Verdict.UNDECIDED
    assert "12 launches" in found.reason
    assert found.needed > 12
    assert found.detectable > 0.2


def test_the_time_of_a_pair_ends_its_launches():
    """No launch is started that would end after the cap, judged by the dearest so far."""
    one = pair()
    judge = judge_of([one])
    assert Machine(spread=0.2, cost_s=50.0).run(judge, [one]) == 4
    found = verdict(judge, one)
    assert found.verdict is Verdict.UNDECIDED
    assert found.time_s <= 240
    assert "240 s" in found.reason


def test_suspicions_among_many_are_measured_again_with_fresh_launches():
    """What both stages agree on is a regression; the others are not asked for again."""
    pairs = [pair(f"m{index}") for index in range(6)]
    judge, asked = judge_of(pairs), []

    def ratio(of, confirms):
        if confirms:
            asked.append(of.key)
        return 1.10 if of is pairs[2] else 1.0

    Machine().run(judge, pairs, ratio)
    found = verdict(judge, pairs[2])
    assert found.verdict is Verdict.REGRESSION
    assert found.confirmed is True
    assert set(asked) == {pairs[2].key}
    assert len(asked) >= 3
    assert {verdict(judge, each).verdict for each in pairs if each is not pairs[2]} == {Verdict.UNCHANGED}


def test_a_suspicion_that_does_not_repeat_is_undecided():
    """It counts against the case in the noise ledger by ``confirmed``."""
    pairs = [pair("a"), pair("b")]
    judge = judge_of(pairs)
    Machine().run(judge, pairs, lambda of, confirms: 1.10 if of is pairs[0] and not confirms else 1.0)
    found = verdict(judge, pairs[0])
    assert found.verdict is Verdict.UNDECIDED
    assert found.confirmed is False
    assert "did not agree" in found.reason


def test_a_single_pair_repeats_its_suspicion_where_the_judge_is_told_to():
    """Fresh launches that agree make it a regression, or an improvement; others leave it undecided."""
    one = pair()
    for first, fresh, found in (
        (1.1, 1.1, Verdict.REGRESSION),
        (1.1, 1.0, Verdict.UNDECIDED),
        (0.9, 0.9, Verdict.IMPROVEMENT),
        (0.9, 1.0, Verdict.UNDECIDED),
    ):
        judge, machine, ratios = judge_of([one], repeat=True), Machine(cost_s=1.0), (first, fresh)
        machine.run(judge, [one], lambda _, confirms, ratios=ratios: ratios[confirms])
        said = verdict(judge, one)
        assert said.verdict is found
        assert "fresh launches" in said.reason


def test_a_suspicion_without_fresh_launches_is_no_regression():
    """A run that was stopped before it could repeat says so."""
    pairs = [pair("a"), pair("b")]
    judge, machine = judge_of(pairs), Machine()
    while not any(each.confirms for each in judge.wanted()):
        for each in judge.wanted():
            of = next(one for one in pairs if one.key == each.pair_key)
            judge.add(machine.launch(of, 1.10 if of is pairs[0] else 1.0))
    assert verdict(judge, pairs[0]).verdict is Verdict.UNDECIDED
    assert "fresh launches" in verdict(judge, pairs[0]).reason


def test_a_judge_that_is_fed_a_journal_goes_on_where_it_stood():
    """Launches in any number, and the same wishes and verdicts as without the interruption."""
    one = pair()
    machine = Machine(spread=0.03)
    launches = [machine.launch(one, 1.04, number=number) for number in range(1, 13)]
    without, wishes = judge_of([one]), []
    for each in launches:
        wishes.append(without.wanted())
        if not wishes[-1]:
            break
        without.add(each)
    for stop in range(len(wishes)):
        resumed = judge_of([one])
        for each in launches[:stop]:
            resumed.add(each)
        assert resumed.wanted() == wishes[stop]


def test_a_head_that_sleeps_is_found_by_wall_time():
    """CPU time cannot see it; wall time is a hypothesis of its own and gates."""
    one = pair()
    judge = judge_of([one])
    Machine().run(judge, [one], asleep=1e-3)
    assert verdict(judge, one).verdict is Verdict.UNCHANGED
    wall = verdict(judge, one, "latency_wall")
    assert wall.verdict is Verdict.REGRESSION
    assert wall.estimator == "wall"
    assert wall.action is Action.GATE


def test_wall_time_that_stays_undecided_blocks_nobody():
    """When it is enough is for the other estimator to say."""
    one = pair()
    judge, rng = judge_of([one]), random.Random(1)
    machine = Machine()
    while judge.wanted():
        judge.add(machine.launch(one, asleep=rng.choice((0.0, 5e-4))))
    wall = verdict(judge, one, "latency_wall")
    assert wall.verdict is Verdict.UNDECIDED
    assert wall.action is Action.REPORT


def test_controls_are_judged_and_never_gate():
    """Head against head that looks slower is a false alarm to be counted, not a red run."""
    pairs = [pair(), pair(control=True)]
    judge = judge_of(pairs)
    Machine().run(judge, pairs, lambda of, _: 1.10 if of.control else 1.0)
    found = verdict(judge, pairs[1])
    assert found.verdict is Verdict.REGRESSION
    assert found.control
    assert found.action is Action.REPORT
    assert verdict(judge, pairs[0]).verdict is Verdict.UNCHANGED


def test_history_decides_with_fewer_launches():
    """The prior enters the test, and the verdict says which it was."""
    one = pair()
    history = NoiseHistory({(one.head.id, "latency"): Prior(0.02, 20.0)}, {})
    plain, known = judge_of([one]), judge_of([one], history)
    fewer = Machine(seed=4, spread=0.02).run(known, [one], lambda *_: 1.05)
    assert fewer < Machine(seed=4, spread=0.02).run(plain, [one], lambda *_: 1.05)
    assert verdict(known, one).prior_spread == 0.02
    assert verdict(known, one).prior_df == 20.0


def test_quarantine_triples_the_tolerance_and_is_said():
    """A case in quarantine is still judged and still gates."""
    one = pair()
    judge = judge_of([one], NoiseHistory({}, {one.head.id: "two modes"}))
    Machine().run(judge, [one], lambda *_: 1.035)
    found = verdict(judge, one)
    assert found.tolerance == pytest.approx(0.09)
    assert found.verdict is Verdict.UNCHANGED
    assert found.quarantined
    assert "two modes" in found.reason
    assert found.action is Action.GATE


def test_the_whole_suite_shows_what_no_case_can():
    """One per cent everywhere is undecided or unchanged for each, and a regression of the suite."""
    pairs = [pair(f"m{index}") for index in range(16)]
    judge = judge_of(pairs)
    assert Machine(spread=0.005).run(judge, pairs, lambda *_: 1.011) > 3
    cases = [verdict(judge, each).verdict for each in pairs]
    whole = judge.verdicts()[-1]
    assert Verdict.REGRESSION not in cases
    assert (whole.pair_key, whole.metric, whole.verdict) == ("", "suite", Verdict.REGRESSION)
    assert 1.0 < whole.low < whole.ratio < whole.high < 1.03
    assert "16 pairs" in whole.reason


def test_what_launches_have_in_common_makes_no_regression_of_the_suite():
    """Launches that move all pairs alike are few samples, however many pairs there are."""
    rng = np.random.default_rng(0)
    levels = Levels(0.01, (3,), harm=SUITE_HARM)
    for common in (0.0, 0.004, 0.015):
        logs = rng.normal(0, 0.0135, (4000, 50, 3)) + rng.normal(0, common, (4000, 1, 3))
        assert live_change(common_evidence(logs), levels).more.mean() <= 0.0025 + 3 * math.sqrt(0.0025 / 4000)


def test_one_pair_is_no_suite():
    """There is no geometric mean of one."""
    one = pair()
    judge = judge_of([one])
    Machine().run(judge, [one])
    assert all(each.pair_key for each in judge.verdicts())


def no_verdict(found) -> bool:
    """Whether nothing was made of nothing."""
    return found.ratio is None and found.low is None and found.p is None


def test_a_pair_without_launches_is_undecided():
    """Too few samples, at their fewest."""
    one = pair()
    found = verdict(judge_of([one]), one)
    assert found.verdict is Verdict.UNDECIDED
    assert no_verdict(found)
    assert "no launch" in found.reason


def test_two_launches_are_too_few():
    """Medians, but no ratio."""
    one = pair()
    judge, machine = judge_of([one]), Machine()
    for _ in range(2):
        judge.add(machine.launch(one, 1.5))
    found = verdict(judge, one)
    assert found.verdict is Verdict.UNDECIDED
    assert no_verdict(found)
    assert found.launches == 2
    assert judge.wanted()


def test_a_case_that_fails_on_one_side_is_not_comparable_and_broken():
    """The second failing launch confirms it, and no third is asked for."""
    one = pair()
    judge = judge_of([one])
    crashed = outcome(one.head, Status.ERROR, "no kernel")
    assert Machine().run(judge, [one], blocks=(), head=crashed) == 2
    found = verdict(judge, one)
    assert found.verdict is Verdict.NOT_COMPARABLE
    assert no_verdict(found)
    assert "head error: no kernel" in found.reason
    assert verdict(judge, one, "status").verdict is Verdict.BROKEN


def test_a_launch_in_which_a_side_failed_once_is_left_out_and_named():
    """The others decide; the reason says that one had no use."""
    one = pair()
    judge, machine = judge_of([one]), Machine()
    judge.add(machine.launch(one, blocks=(), base=outcome(one.base, Status.INFRA, "killed")))
    machine.run(judge, [one])
    found = verdict(judge, one)
    assert found.verdict is Verdict.UNCHANGED
    assert "base infra: killed" in found.reason


@pytest.mark.parametrize("value", [0.0, -1e-3, math.nan])
def test_impossible_times_make_no_verdict(value):
    """Zero, negative and NaN readings: undecided with the reason, and no endless launches."""
    one = pair()
    judge, machine = judge_of([one]), Machine()
    bad = tuple(
        Block(each.side, each.abba_block, each.position, (value,) * STEPS, (value,) * STEPS)
        for each in machine.launch(one).blocks
    )
    assert machine.run(judge, [one], blocks=bad) == 2
    found = verdict(judge, one)
    assert found.verdict is Verdict.UNDECIDED
    assert no_verdict(found)
    assert "impossible times" in found.reason


def test_a_launch_without_blocks_makes_no_verdict():
    """Both sides passed, and nothing was timed."""
    one = pair()
    judge = judge_of([one])
    assert Machine().run(judge, [one], blocks=()) == 2
    found = verdict(judge, one)
    assert found.verdict is Verdict.UNDECIDED
    assert no_verdict(found)
    assert "no blocks" in found.reason


def test_a_side_that_was_never_timed_makes_no_verdict():
    """One side missing."""
    one = pair()
    judge, machine = judge_of([one]), Machine()
    alone = tuple(each for each in machine.launch(one).blocks if each.side is Side.BASE)
    assert machine.run(judge, [one], blocks=alone) == 2
    assert no_verdict(verdict(judge, one))


def test_sides_that_did_not_compute_the_same_are_not_comparable():
    """Unequal realised hashes end the pair at once, whatever the ratio is."""
    one = pair()
    judge, machine = judge_of([one]), Machine()
    other = outcome(one.head, hash_="bb" * 8)
    assert machine.run(judge, [one], lambda *_: 2.0, head=other) == 1
    found = verdict(judge, one)
    assert found.verdict is Verdict.NOT_COMPARABLE
    assert no_verdict(found)
    assert "base and head built different models" in found.reason


def test_more_launches_allow_no_more_than_their_number():
    """With six at most, the looks end at six."""
    one = pair()
    judge = judge_of([one], max_launches=6)
    assert Machine(spread=0.2, cost_s=1.0).run(judge, [one]) == 6
    assert {each.abba_blocks for each in judge_of([one], abba_blocks=7).wanted()} == {7}


@pytest.mark.parametrize("modifier", [Modifier.OTHER_MODEL, Modifier.UNCHECKED, Modifier.UNSTEADY])
def test_what_is_in_doubt_is_compared_with_nobody(modifier) -> None:
    """A head of half the time is no improvement where its step times do not count; it says why."""
    machine, one = Machine(), pair()
    judge = judge_of([one])
    for number in (1, 2):
        made = machine.launch(one, 0.5, number=number)
        judge.add(
            replace(made, head=replace(made.head, modifiers=(modifier,), facts=((modifier.value, "x"),)))
        )
    assert judge.wanted() == ()
    verdicts = judge.verdicts()
    found = next(each for each in verdicts if each.metric == "latency")
    assert (found.verdict, found.action) == (Verdict.NOT_COMPARABLE, Action.GATE)
    assert f"head is {modifier.value.replace('_', ' ')}: x" in found.reason
    assert not any(each.verdict is Verdict.IMPROVEMENT for each in verdicts)


def test_one_degraded_launch_of_several_is_not_timed_and_not_forgotten() -> None:
    """The others decide the times; the status stays open."""
    machine, one = Machine(spread=0.001), pair()
    judge = judge_of([one])
    for number in range(1, 9):
        made = machine.launch(one, 1.0, number=number)
        if number == 2:
            made = machine.launch(one, 0.5, number=number)
            made = replace(made, head=replace(made.head, modifiers=(Modifier.DEGRADED,)))
        judge.add(made)
    said = {each.metric: each for each in judge.verdicts()}
    assert (said["latency"].verdict, said["latency"].launches) == (Verdict.UNCHANGED, 7)
    assert said["status"].verdict is Verdict.UNDECIDED


def test_a_launch_without_clean_steps_is_read_by_cpu_time_and_so_are_all_others():
    """The first launch was quiet and a neighbour came later: nothing that was measured is lost."""
    one = pair()
    judge, machine = judge_of([one]), Machine(spread=0.001)
    judge.add(machine.launch(one, wait=0.0))
    judge.add(machine.launch(one, wait=0.0))
    assert judge.interim(one.key) is None
    judge.add(machine.launch(one, wait=2e-3, number=3))
    found = verdict(judge, one)
    assert (found.launches, found.estimator) == (3, "cpu")
    assert found.verdict is Verdict.UNCHANGED
    assert "launch 3 had too few uninterrupted steps" in found.reason


def test_clean_steps_stay_the_estimator_where_cpu_time_cannot_be_had_of_all():
    """One launch without CPU times: the one that waited is of no use, and says so."""
    one = pair()
    judge, machine = judge_of([one]), Machine(spread=0.001)
    for number in range(1, 5):
        launch = machine.launch(one, wait=0.0, number=number)
        if number == 1:
            blocks = tuple(replace(each, cpu=(0.0,) * STEPS, delay=(0.0,) * STEPS) for each in launch.blocks)
            launch = replace(launch, blocks=blocks)
        judge.add(launch)
    judge.add(machine.launch(one, wait=2e-3, number=5))
    found = verdict(judge, one)
    assert (found.launches, found.estimator) == (4, "clean_wall")
    assert "launch 5: 0 of 8 ABBA blocks are usable by clean_wall" in found.reason


def remembered(launch, base, head):
    """``launch`` with these peaks of memory, MiB."""

    def told(outcome, peak):
        return replace(outcome, measurements=(Measurement("peak_memory", "B", (peak * 2.0**20,)),))

    return replace(launch, base=told(launch.base, base), head=told(launch.head, head))


@pytest.mark.parametrize(("head", "launches", "said"), [(100.0, 3, "unchanged"), (130.0, 6, "regression")])
def test_memory_asks_for_launches_only_where_it_differs(head, launches, said):
    """Six of them show a change that nobody knows the noise of; without one nobody waits for memory."""
    one = pair()
    judge, machine, number = judge_of([one]), Machine(spread=0.001), 0
    while judge.wanted():
        number += 1
        judge.add(remembered(machine.launch(one, number=number), 100.0, head))
    assert number == launches
    assert verdict(judge, one, "peak_memory").verdict.value == said
