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


def test_what_is_recorded_counts_at_once():
    """Before any group is done the forecast stands."""
    pace = recorded_pace()
    assert pace.expected_seconds(GROUPS[0]) == 10.0
    assert pace.fits(GROUPS[0], 10.0)
    assert not pace.fits(GROUPS[0], 9.0)


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


def test_without_a_schedule_the_mean_counts():
    """Nothing is known before the first group: it starts; then the mean of those before it."""
    pace = Pace.of_plan(PLAN)
    assert pace.expected_seconds(GROUPS[0]) is None
    assert pace.fits(GROUPS[0], 0.0)
    pace.learn(GROUPS[0], 4.0)
    pace.learn(GROUPS[1], 8.0)
    assert pace.expected_seconds(GROUPS[2]) == 6.0


def test_only_the_first_group_starts_whatever_it_takes():
    """However many ask at once; what is not even tried takes no time and is no first one."""
    pace = recorded_pace()
    pace.expected[GROUPS[0].id] = 0.0
    assert pace.may_start(GROUPS[0], -1.0)
    assert pace.may_start(GROUPS[1], -1.0)
    assert not pace.may_start(GROUPS[2], 9.0)
    assert pace.may_start(GROUPS[2], 11.0)


def test_a_guess_counts_until_there_is_better():
    """With nothing recorded the first group decides what the others are taken for."""
    pace = Pace({group.id: 30.0 for group in GROUPS})
    assert pace.expected_seconds(GROUPS[1]) == 30.0
    pace.learn(GROUPS[0], 6.0)
    assert pace.expected_seconds(GROUPS[1]) == 6.0


def test_a_smaller_group_takes_the_place_of_one_that_does_not_fit():
    """The most valuable one that fits is next; none does when time is nearly over."""
    pace = Pace({group.id: float(10 - number) for number, group in enumerate(GROUPS)}, trust=1.0)
    assert pace.next_to_start(GROUPS, 0.1) == 0  # the first of the run
    assert pace.next_to_start(GROUPS, 100.0) == 0
    assert pace.next_to_start(GROUPS, 4.5) == 6
    assert pace.next_to_start(GROUPS, 0.5) is None
    assert (pace.next_to_start(GROUPS, None), pace.next_to_start((), None)) == (0, None)
