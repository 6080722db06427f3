"""What a group will probably take: as recorded, else as those like it, and the same wherever it is asked."""

from __future__ import annotations

from dataclasses import replace

from torchgauge.harness.planning.forecast import Forecast
from torchgauge.records import Group, PlannedCase
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
