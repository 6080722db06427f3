"""What is paired with what, and what is refused before anything is written."""

from __future__ import annotations

import io
import random
from dataclasses import replace
from typing import Any

import pytest

from torchgauge.errors import UsageError
from torchgauge.harness.ab.alternation import ABBA, MAX_STEPS, steps_per_block
from torchgauge.harness.ab.comparison import new_comparison
from torchgauge.harness.ab.launch_hosts import LaunchHosts, choose_cpus, threads_of
from torchgauge.harness.ab.progress import AbProgress
from torchgauge.harness.planning.selection import Selection
from torchgauge.records import Case, Configuration, DeviceTarget, RunSettings, Workload
from torchgauge.records.comparison import Pair, Side, SideSpec

MINE, YOURS = SideSpec("mine", "", (("FLAG", "1"),)), SideSpec("yours", "")
SETTINGS = RunSettings(threads=1)
CPU = Selection(("toy",), ("cpu",), ("mlp", "convnet", "rnn"), configurations=("eager", "inductor"))


def planned(arena: Any, **more: Any) -> Any:
    return new_comparison(arena.request(**more), store=str(arena.store), progress=AbProgress(io.StringIO()))


def test_what_is_the_same_must_be_asked_for(arena: Any) -> None:
    """Otherwise a forgotten option would say that nothing changed; and nothing is written."""
    with pytest.raises(UsageError, match="base and head are the same") as same:
        planned(arena, control=False)
    assert "--control" in same.value.hint
    with pytest.raises(UsageError, match="but base and head differ"):
        planned(arena, base=MINE, control=True)
    with pytest.raises(UsageError, match="only one side has a configuration"):
        planned(arena, base=SideSpec("x", "", (), "eager"))
    assert not arena.store.exists()


def test_a_comparison_without_accuracy_is_refused(arena: Any) -> None:
    """Its rows would be unchecked, and every verdict not comparable: said before anything is measured."""
    with pytest.raises(UsageError, match="results that were not checked are not compared"):
        planned(arena, settings=replace(SETTINGS, accuracy=False))
    assert not arena.store.exists()


def test_an_a_a_run_is_all_controls(arena: Any) -> None:
    """Each case against itself, marked as what it is."""
    pairs = planned(arena).plan.pairs
    assert [pair.head.workload.model for pair in pairs] == ["steady", "faulty"]
    assert all(pair.control and pair.base == pair.head for pair in pairs)


def test_two_pairs_are_also_measured_head_against_head(arena: Any) -> None:
    """Chosen by the seed, beside the pairs themselves, and from what head can run."""
    found = {
        seed: planned(arena, base=MINE, selection=CPU, controls=2, seed=seed).plan.pairs for seed in range(6)
    }
    for pairs in found.values():
        controls = [pair for pair in pairs if pair.control]
        assert (len(pairs), len(controls)) == (8, 2)
        assert len({pair.key for pair in pairs}) == 8
        assert {pair.head for pair in controls} <= {pair.head for pair in pairs if not pair.control}
    assert len({tuple(pair.key for pair in pairs) for pairs in found.values()}) > 1
    assert planned(arena, base=MINE, selection=CPU, controls=2, seed=3).plan.pairs == found[3]


def test_a_seed_is_drawn_where_none_is_given(arena: Any) -> None:
    """Without one, comparisons do not repeat each other; what one pair draws does not hang on another."""
    plans = [planned(arena, seed=None).plan for _ in range(2)]
    assert plans[0].seed != plans[1].seed
    hosts = [LaunchHosts({}, {}, "launch 1 of 7") for _ in range(2)]
    hosts[0].dice("abba_blocks of another").random()
    assert hosts[0].dice("abba_blocks of one").random() == hosts[1].dice("abba_blocks of one").random()


def test_two_configurations_are_one_pair_for_each_workload(arena: Any) -> None:
    """The base's case beside the head's; a control has head's on both sides."""
    base, head = SideSpec("a", "", (), "eager"), SideSpec("b", "", (), "inductor")
    pairs = planned(arena, base=base, head=head, selection=CPU, controls=1).plan.pairs
    names = [(p.base.configuration.name, p.head.configuration.name, p.control) for p in pairs]
    assert names == [("eager", "inductor", False)] * 3 + [("inductor", "inductor", True)]


def test_unknown_policy_of_names_is_refused_before_anything_is_written(arena: Any) -> None:
    """As in any run."""
    with pytest.raises(UsageError, match="unknown model"):
        planned(arena, base=MINE, selection=Selection(("racers",), ("fake",), ("no-such",)))
    assert not arena.store.exists()


def pair_of(control: bool = False, **fields: Any) -> Pair:
    case = Case(Workload("racers", "steady"), Configuration("eager", "eager", **fields), DeviceTarget("fake"))
    return Pair(case, case, control)


def test_a_control_gets_a_host_of_its_own_only_where_base_is_executed_otherwise() -> None:
    """Head against head needs two hosts of head; those of an A/A run are that already."""
    for base, roles in ((YOURS, {"base"}), (MINE, {"twin"})):
        hosts = LaunchHosts({Side.BASE: base, Side.HEAD: YOURS}, {}, "1")
        assert {hosts._role(Side.BASE, pair_of(control=True))} == roles
        assert hosts._role(Side.BASE, pair_of()) == "base"
        assert hosts._role(Side.HEAD, pair_of(control=True)) == "head"


def test_either_side_starts_first() -> None:
    """By the toss of a coin."""
    specs = {Side.BASE: MINE, Side.HEAD: YOURS}
    first = {LaunchHosts(specs, {}, str(n)).first(pair_of()) for n in range(20)}
    assert first == {Side.BASE, Side.HEAD}


def test_as_many_cpus_as_threads_are_chosen_by_chance(monkeypatch: pytest.MonkeyPatch) -> None:
    """From those that this process may use; none where a configuration names its own, or nobody a number."""
    import os

    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    chosen = {choose_cpus(2, random.Random(seed)) for seed in range(20)}
    assert len(chosen) > 5
    assert all(len(set(cpus)) == 2 and set(cpus) <= set(range(8)) for cpus in chosen)
    assert choose_cpus(99, random.Random(0)) == tuple(range(8))
    assert choose_cpus(None, random.Random(0)) == ()
    assert threads_of(pair_of(), 3) == 3
    assert threads_of(pair_of(threads=2), 3) == 2
    assert threads_of(pair_of(), None) is None
    assert threads_of(pair_of(cpus="0-1"), 3) is None
    assert threads_of(pair_of(numa=0), 3) is None


def test_a_block_lasts_four_milliseconds_on_the_faster_side() -> None:
    """One step at least, and a bounded number of them."""
    assert steps_per_block({Side.BASE: 0.001, Side.HEAD: 0.002}) == 4
    assert steps_per_block({Side.BASE: 3.0, Side.HEAD: 2.0}) == 1
    assert steps_per_block({Side.BASE: 0.0, Side.HEAD: 2.0}) == MAX_STEPS
    assert {"".join(side.value[0] for side in abba_block) for abba_block in ABBA.values()} == {"bhhb", "hbbh"}
