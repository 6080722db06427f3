"""A speed-up is made of rounds that say who is faster, never of those that say who was disturbed."""

from __future__ import annotations

import pytest

from torchgauge.harness.derived_series import ONE_ALONE, speedup
from torchgauge.harness.worker.case_measurements import contention, timings
from torchgauge.harness.worker.series import Block, Series

SLOWED = 5.0
"""How much longer a disturbed block takes."""


def series(wall: float, disturbed: range | tuple[int, ...], rounds: int = 20) -> Series:
    """Rounds of ``wall`` seconds, some of them ``disturbed``, settled as at the end of sampling."""
    made = Series("a", lambda: None)
    for number in range(rounds):
        taken = number in disturbed
        made.add(Block(wall * (SLOWED if taken else 1.0), wall, None), number, 0.5 if taken else 0.0)
    made.settle(0.95)
    return made


@pytest.mark.parametrize(
    ("mine", "base", "rounds", "how"),
    [
        ((), (), range(20), "paired by round"),
        ((0, 1), (1, 2), range(3, 20), "paired by round"),
        # eager has no six blocks to itself, so all of it counts; six of the other's are its own
        (range(6, 20), range(1, 20), (0, *range(6, 20)), "paired by round, disturbed rounds included"),
        (range(1, 20), range(6, 20), (0, *range(6, 20)), "paired by round, disturbed rounds included"),
        (range(20), range(20), range(20), "paired by round, disturbed rounds included"),
        # each has blocks enough to itself, but in other rounds
        (range(10), range(8, 20), (8, 9), "paired by round, disturbed rounds included"),
    ],
)
def test_a_round_in_which_one_alone_was_disturbed_makes_no_ratio(mine, base, rounds, how) -> None:
    """Twice as fast stays twice as fast, whichever blocks the two latencies are made of."""
    found = {each.metric: each for each in timings(series(1.0, mine), series(2.0, base), "budget")}
    ratio = found["speedup"]
    assert (ratio.blocks, set(ratio.samples), ratio.provenance) == (tuple(rounds), {2.0}, how)


def test_without_any_other_round_there_is_no_ratio() -> None:
    """The reason says so; who sees both latencies knows why not to divide them."""
    found = {each.metric: each for each in timings(series(1.0, ()), series(2.0, range(20)), "budget")}
    assert (found["speedup"].samples, found["speedup"].absent) == ((), ONE_ALONE)


def test_where_nobody_counts_what_others_take_each_round_makes_one() -> None:
    """Rounds that one of them had alone make none."""
    found = []
    for rounds in (20, 15):
        made = Series("a", lambda: None)
        for number in range(rounds):
            made.add(Block(1.0, 1.0, None), number)
        walls = timings(made, made, "budget")
        found.append({each.metric: each for each in (*walls, *contention(made, "budget"))})
    assert speedup(*found).blocks == tuple(range(15))
    del found[1]["latency"]
    assert speedup(*found).absent == "eager and this configuration have no common round"
