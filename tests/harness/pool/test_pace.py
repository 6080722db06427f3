"""A run learns how far off its forecast is, and stops before what would end too late."""

from __future__ import annotations

import pytest

from torchgauge.harness.planning.forecast import Forecast
from torchgauge.harness.planning.order import longest_first
from torchgauge.harness.pool.pace import Pace
from torchgauge.testing import make_case, make_plan

PLAN = make_plan(*(make_case(f"m{n}") for n in range(10)))
GROUPS = PLAN.groups


def recorded_pace(seconds: float = 10.0) -> Pace:
    """The pace of a plan all of whose durations are recorded."""
    from dataclasses import replace

    forecast = Forecast({group.cases[0].case.id: seconds for group in GROUPS})
    return Pace.of_plan(replace(PLAN, schedule=longest_first(GROUPS, forecast)[1]))


def test_a_slower_machine_is_noticed():
    """After many groups of twice the time the rest is expected to take nearly twice as long."""
    pace = recorded_pace()
    for group in GROUPS[:8]:
        pace.learn(group, 20.0)
    assert pace.expected_seconds(GROUPS[9]) == pytest.approx(18.0)
    assert pace.ratio == pytest.approx(1.8)


def test_one_hang_does_not_end_the_run():
    """A group that took a hundred times as long counts for five times."""
    pace = recorded_pace()
    pace.learn(GROUPS[0], 1000.0)
    assert pace.expected_seconds(GROUPS[1]) == pytest.approx(10.0 * (50 + 20) / (10 + 20))


def test_a_smaller_group_takes_the_place_of_one_that_does_not_fit():
    """The most valuable one that fits is next; none does when time is nearly over."""
    pace = Pace({group.id: float(10 - number) for number, group in enumerate(GROUPS)}, trust=1.0)
    assert pace.next_to_start(GROUPS, 0.1) == 0  # the first of the run
    assert pace.next_to_start(GROUPS, 100.0) == 0
    assert pace.next_to_start(GROUPS, 4.5) == 6
    assert pace.next_to_start(GROUPS, 0.5) is None
    assert (pace.next_to_start(GROUPS, None), pace.next_to_start((), None)) == (0, None)
