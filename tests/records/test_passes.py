"""Which rows are counted among the passes: one rule for every page, report and claim."""

from __future__ import annotations

from pathlib import Path

import pytest
import tomllib

from torchgauge.records import (
    GRAVEST,
    STEP_TIMES,
    UNCOUNTED,
    UNTIMED,
    Modifier,
    Status,
    apart,
    counts_as_pass,
    doubt,
    left_out,
    number_counts,
    times_count,
)

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("modifier", Modifier)
def test_a_pass_with_a_modifier_counts_unless_the_modifier_says_what_else_it_is(modifier: Modifier) -> None:
    """As a record and as words of a table."""
    counted = modifier not in (Modifier.DEGRADED, Modifier.OTHER_MODEL, Modifier.UNCHECKED)
    assert counts_as_pass(Status.PASS, (modifier,)) is counted
    assert counts_as_pass("pass", ["unexpected", modifier.value]) is counted


@pytest.mark.parametrize("modifier", Modifier)
def test_step_times_in_doubt_enter_no_comparison(modifier: Modifier) -> None:
    """Another model's, unchecked, unsteady and impossible ones; a degraded row's times are what they are."""
    counted = modifier not in {
        Modifier.OTHER_MODEL,
        Modifier.UNCHECKED,
        Modifier.UNSTEADY,
        Modifier.FASTER_THAN_PEAK,
    }
    assert times_count(Status.PASS, (modifier,)) is counted
    assert times_count("pass", ["unexpected", modifier.value]) is counted
    assert not times_count(Status.CRASH, ())


def test_nothing_but_the_status_pass_counts() -> None:
    """With no modifier the status decides."""
    assert [status for status in Status if counts_as_pass(status, ())] == [Status.PASS]


def test_the_meaning_of_each_says_that_it_is_no_pass() -> None:
    """A reader of a count finds why a row is not in it."""
    text = (ROOT / "docs" / "status_meanings.toml").read_text(encoding="utf-8")
    meanings = tomllib.loads(text)["Modifiers"]
    for modifier in UNCOUNTED:
        assert "never counts as a pass" in meanings[modifier.value]
    for modifier in UNTIMED:
        assert "excluded from every" in meanings[modifier.value]


@pytest.mark.parametrize("metric", ["latency", "speedup", "compile_cold", "peak_memory"])
def test_every_number_has_one_rule(metric: str) -> None:
    """Step times stand apart for four modifiers, every other number for another model alone."""
    keeping = {modifier for modifier in Modifier if doubt(metric, [modifier.value])}
    assert keeping == (set(UNTIMED) if metric in STEP_TIMES else {Modifier.OTHER_MODEL})
    for modifier in Modifier:
        assert number_counts(metric, "pass", (modifier,)) is (modifier not in keeping)
        assert bool(apart(metric, [modifier])) is (modifier in keeping or modifier in UNCOUNTED)
    assert set(GRAVEST) == UNCOUNTED | UNTIMED


def test_the_gravest_modifier_is_told_and_what_is_left_out_is_counted() -> None:
    """One word for a row, and a sentence for many."""
    assert doubt("latency", ["unsteady", "flaky", "unchecked"]) == "unchecked"
    assert apart("latency", ["unsteady", "degraded"]) == "degraded"
    assert left_out(["unsteady", "", "unchecked", "unsteady"]) == "1 unchecked, 2 unsteady left out"
    assert left_out(["", ""]) == ""
