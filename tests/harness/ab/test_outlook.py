"""What an A/B run can decide, said before it: from earlier launches, or that nothing is known."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "results"))

from stored_runs import BEGIN, case, comparison, launch, verdict

from torchgauge.harness.ab.outlook import outlook, outlook_lines
from torchgauge.records import RunSettings
from torchgauge.records.comparison import ComparisonPlan, Pair, SideSpec
from torchgauge.results.comparing.policy import Policy
from torchgauge.results.store import Store

QUIET = [0.001, -0.001, 0.0012, -0.0008, 0.0009, -0.0011]
"""Log ratios of A/A launches on a machine that scatters by a tenth of a per cent."""


def plan(*pairs: Pair, max_launches: int = 12) -> ComparisonPlan:
    """A comparison of ``pairs`` that nobody ran."""
    side = SideSpec("side", "python")
    made = ComparisonPlan("new", BEGIN, (), RunSettings(), side, side, pairs, (), 1)
    return replace(made, max_launches=max_launches)


def controlled(store: Store, log_ratios: list[float]) -> None:
    """Keep an A/A run of the toy case whose launches took a second and a half each."""
    pair = Pair(case(), case(), control=True)
    launches = [
        launch(pair, number + 1, value, setup_s=1.0, measure_s=0.5) for number, value in enumerate(log_ratios)
    ]
    comparison(store, "earlier", launches, [verdict(pair)], [pair])


@pytest.fixture
def known(tmp_path) -> Store:
    """A store with one A/A comparison of the toy case."""
    store = Store.open(tmp_path / "store", create=True)
    controlled(store, QUIET)
    return store


PAIR = Pair(case(), case())
STRANGER = Pair(case("mlp"), case("mlp"))


def test_what_is_known_is_said_with_its_numbers(known) -> None:
    """The seconds of a launch as they were, and a change that so quiet a case would show."""
    found = outlook(plan(PAIR), Policy.default(), known, None)
    (only,) = found.pairs
    assert only.launch_s == 1.5
    assert only.spread == pytest.approx(0.001, rel=0.3)
    assert only.launches == 12
    assert only.deciding == 3
    assert 0 < only.detectable < 0.02
    assert found.likely_s == pytest.approx(3 * only.launch_s)
    assert found.longest_s == pytest.approx(12 * only.launch_s)
    text = "\n".join(outlook_lines(found))
    assert "not known" not in text
    assert "smallest detectable change: 1" in text


def test_less_time_is_fewer_launches_and_larger_changes(known) -> None:
    """As many launches as fit; with fewer than the rule looks at, nothing is decided."""
    whole = outlook(plan(PAIR), Policy.default(), known, None)
    four = outlook(plan(PAIR), Policy.default(), known, 4.5 * whole.launch_s)
    two = outlook(plan(PAIR), Policy.default(), known, 2.5 * whole.launch_s)
    assert [each.pairs[0].launches for each in (whole, four, two)] == [12, 4, 2]
    assert four.pairs[0].detectable >= whole.pairs[0].detectable
    assert two.pairs[0].detectable is None
    assert any("which are too few for a verdict" in line for line in outlook_lines(two))
    assert any("leaves time for 4 launches" in line for line in outlook_lines(four))


def test_what_no_earlier_run_says_is_not_known(known) -> None:
    """Nothing is guessed of a case that was never compared, nor of a whole that has one."""
    found = outlook(plan(PAIR, STRANGER), Policy.default(), known, 60.0)
    assert (found.pairs[1].launch_s, found.pairs[1].spread, found.pairs[1].detectable) == (None, None, None)
    assert (found.launch_s, found.likely_s, found.longest_s) == (None, None, None)
    lines = outlook_lines(found)
    assert lines[0].startswith("time: not known")
    assert sum(f"is unknown for {STRANGER.id}" in line for line in lines) == 2


def test_a_noisy_case_is_said_to_stay_undecided(tmp_path) -> None:
    """Launches that scatter by a tenth cannot show 3 %."""
    store = Store.open(tmp_path / "store", create=True)
    controlled(store, [100 * value for value in QUIET])
    found = outlook(plan(PAIR), Policy.default(), store, None)
    assert found.pairs[0].deciding is None
    assert found.pairs[0].detectable > 0.05
    assert any("stay undecided" in line for line in outlook_lines(found))
