"""What a group will probably take: as recorded, else as those like it, and the same wherever it is asked."""

from __future__ import annotations

from dataclasses import replace

import pytest

from torchgauge.harness.planning.forecast import UNKNOWN_CHECK_S, UNKNOWN_S, Forecast
from torchgauge.records import Group, PlannedCase, Refusal, Status
from torchgauge.testing import TOLERANCE, make_case


def group(*cases, **fields):
    """A group of ``cases``."""
    return Group("id", tuple(PlannedCase(case, TOLERANCE) for case in cases), **fields)


def test_a_group_takes_what_its_cases_took():
    """Every configuration adds its own seconds, so a group with more of them takes longer."""
    eager, compiled = make_case("a"), make_case("a", "inductor")
    forecast = Forecast({eager.id: 3.0, compiled.id: 10.0})
    assert forecast.of_group(group(eager)) == 3.0
    assert forecast.of_group(group(eager, compiled)) == 13.0
    assert replace(forecast, wall_ratio=1.5).of_group(group(eager)) == 4.5
    assert forecast.knows(group(eager, compiled))


def test_an_unknown_case_takes_a_little_longer_than_those_like_it():
    """Like it: the same suite, mode, configuration and size; training says nothing of inference."""
    recorded = {make_case(f"m{n}").id: float(n) for n in (1, 2, 9)}
    recorded |= {make_case(f"m{n}", mode="training").id: 100.0 for n in range(9)}
    forecast = Forecast(recorded)
    assert forecast.of_case(make_case("new")) == 1.25 * 2.0
    assert not forecast.knows(group(make_case("new")))


def test_a_large_model_is_taken_for_large_ones():
    """With parameters known the five nearest count, on a logarithmic scale."""
    recorded = {make_case(f"m{n}").id: float(n) for n in range(1, 21)}
    parameters = {("toy", f"m{n}"): 10**n for n in range(1, 21)}
    forecast = Forecast(recorded, parameters | {("toy", "small"): 100, ("toy", "huge"): 10**18})
    assert forecast.of_case(make_case("small")) == 1.25 * 3.0
    assert forecast.of_case(make_case("huge")) == 1.25 * 18.0
    assert forecast.of_case(make_case("unknown")) == 1.25 * 10.5


@pytest.mark.parametrize(
    ("asked", "seconds"),
    [
        (make_case("a", "other"), 2 * 4.0),
        (make_case("a", mode="training"), 2 * 5.0),
        (make_case("a", suite="elsewhere"), 2 * 6.0),
    ],
)
def test_where_nothing_is_like_it_a_case_takes_twice_what_is_nearest(asked, seconds):
    """Of its suite and mode, else of its suite, else of everything."""
    recorded = {
        make_case("b").id: 4.0,
        make_case("c", mode="other").id: 6.0,
        make_case("d", suite="far").id: 100.0,
    }
    assert Forecast(recorded).of_case(asked) == seconds


def test_where_nothing_is_recorded_all_are_alike():
    """Checks are shorter; what is refused takes nothing unless its row once said otherwise."""
    forecast = Forecast()
    assert forecast.of_case(make_case("a")) == UNKNOWN_S
    assert forecast.of_group(group(make_case("a", "b"), checks=True)) == UNKNOWN_CHECK_S
    refused = PlannedCase(make_case("a"), TOLERANCE, refusal=Refusal(Status.UNSUPPORTED, "no"))
    assert forecast.of_group(Group("id", (refused,))) == 0.0
    assert Forecast({refused.case.id: 2.0}).of_group(Group("id", (refused,))) == 2.0
