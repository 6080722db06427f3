"""Within a budget the most valuable cases run, broadly, and what was left has its turn in the next run."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest

from torchgauge.harness.planning.forecast import Forecast
from torchgauge.harness.planning.order import within_budget
from torchgauge.harness.planning.priority import Priority, choose
from torchgauge.records import DeviceTarget, Group, PlannedCase, Refusal, Status
from torchgauge.results.durations import CaseHistory
from torchgauge.testing import TOLERANCE, make_case, make_plan

NOW = 1.8e9
DAY = 86_400.0


def groups_of(*names, **workload):
    """A group for each model."""
    return make_plan(*(make_case(name, **workload) for name in names)).groups


def named(groups) -> list[str]:
    """The models of ``groups``."""
    return [group.workload.model for group in groups]


def even(groups, seconds: float = 10.0) -> Forecast:
    """A forecast in which all cases of ``groups`` take the same."""
    return Forecast({each.case.id: seconds for group in groups for each in group.cases})


def test_suites_and_modes_share_the_time():
    """Of two equal suites neither takes it all, though one is cheaper."""
    cheap = groups_of(*(f"{word}" for word in "abcdefghij"), suite="cheap")
    dear = groups_of(*(f"{word}" for word in "klmnopqrst"), suite="dear")
    recorded = even(cheap, 5.0).recorded | even(dear, 10.0).recorded
    chosen = choose([*cheap, *dear], Priority({}), Forecast(recorded), 60.0).chosen
    suites = [group.workload.suite for group in chosen]
    assert suites.count("cheap") >= 4
    assert suites.count("dear") >= 2


def test_what_was_never_measured_or_failed_or_is_old_comes_first():
    """Never, then a failure of some days ago, then old passes, then what was measured just now."""
    groups = groups_of("fresh", "old", "failed", "never")
    ids = {group.workload.model: group.cases[0].case.id for group in groups}
    history = {
        ids["fresh"]: CaseHistory((1.0,), "pass", False, NOW),
        ids["old"]: CaseHistory((1.0,), "pass", False, NOW - 6 * DAY),
        ids["failed"]: CaseHistory((1.0,), "error", True, NOW - 6 * DAY),
    }
    choice = choose(groups, Priority({}, history, NOW), even(groups), 1e9)
    assert named(choice.chosen) == ["never", "failed", "old", "fresh"]


def test_every_case_has_its_turn():
    """Nights that have time for a fifth of the cases measure all of them within eight."""
    groups = groups_of(*(f"{word}{number}" for word in ("aa", "bb", "cc") for number in range(10)))
    tiers = {("toy", group.workload.model): "smoke" for group in groups[:10]}
    history: dict[str, CaseHistory] = {}
    for number in range(8):
        now = NOW + number * DAY
        choice = choose(groups, Priority(tiers, history, now), even(groups), 60.0)
        assert len(choice.chosen) == 6
        for group in choice.chosen:
            history[group.cases[0].case.id] = CaseHistory((10.0,), "pass", False, now)
    assert len(history) == len(groups)


@pytest.mark.parametrize("seed", range(30))
def test_a_choice_keeps_its_budget_and_loses_nothing(seed):
    """Chosen and left are the groups, each once; chosen ones fit; nothing small that would fit is left."""
    generator = random.Random(seed)
    groups = groups_of(*(f"{chr(97 + n % 26)}{n}" for n in range(generator.randint(1, 80))))
    forecast = Forecast({g.cases[0].case.id: generator.uniform(0.1, 60.0) for g in groups})
    budget = generator.uniform(60.0, 600.0)
    choice = choose(groups, Priority({}), forecast, budget)
    ids = [group.id for group in (*choice.chosen, *choice.left)]
    assert sorted(ids) == sorted(group.id for group in groups)
    assert choice.chosen_s == pytest.approx(sum(map(forecast.of_group, choice.chosen)))
    assert choice.chosen_s <= budget
    left = [choice.chosen_s + forecast.of_group(group) for group in choice.left]
    assert min(left, default=math.inf) > budget  # where everything fits, nothing is left
    assert choose(groups, Priority({}), forecast, budget) == choice


def test_a_run_with_any_budget_gets_on():
    """One group is chosen though it takes longer than there is; what is refused costs nothing and is kept."""
    groups = groups_of("a", "b")
    refused = PlannedCase(make_case("c"), TOLERANCE, refusal=Refusal(Status.UNSUPPORTED, "no"))
    choice = choose([*groups, Group("r", (refused,))], Priority({}), even(groups), -5.0)
    assert named(choice.chosen) == ["c", "a"]
    assert named(choice.left) == ["b"]


def test_devices_share_a_budget():
    """Each has half of it for its groups, less what starting and calibrating take."""
    one = make_plan(*(make_case(name) for name in "abcdef")).groups
    two = make_plan(*(replace(make_case(name), device=DeviceTarget("fake", 1)) for name in "abcdef")).groups
    forecast = replace(even([*one, *two]), startup_s=20.0)
    ordered, schedule = within_budget([*one, *two], forecast, Priority({}), 120.0)
    assert len(ordered) == 12
    left = set(schedule.left)
    assert [sum(g.id not in left for g in held) for held in (one, two)] == [3, 3]
