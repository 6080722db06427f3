"""Which rows are counted among the passes: one rule for every page, report and claim."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from torchgauge.records import UNCOUNTED, UNTIMED, Modifier, Status, counts_as_pass, times_count

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("modifier", Modifier)
def test_a_pass_with_a_modifier_counts_unless_the_modifier_says_what_else_it_is(modifier: Modifier) -> None:
    """As a record and as words of a table."""
    counted = modifier not in (Modifier.DEGRADED, Modifier.OTHER_MODEL, Modifier.UNCHECKED)
    assert counts_as_pass(Status.PASS, (modifier,)) is counted
    assert counts_as_pass("pass", ["unexpected", modifier.value]) is counted


@pytest.mark.parametrize("modifier", Modifier)
def test_step_times_in_doubt_enter_no_comparison(modifier: Modifier) -> None:
    """Another model's, unchecked and unsteady ones; a degraded row's times are what they are."""
    counted = modifier not in (Modifier.OTHER_MODEL, Modifier.UNCHECKED, Modifier.UNSTEADY)
    assert times_count(Status.PASS, (modifier,)) is counted
    assert times_count("pass", ["unexpected", modifier.value]) is counted
    assert not times_count(Status.CRASH, ())


def test_nothing_but_the_status_pass_counts() -> None:
    """With no modifier the status decides."""
    assert [status for status in Status if counts_as_pass(status, ())] == [Status.PASS]


def test_the_glossary_says_of_each_that_it_is_no_pass() -> None:
    """A reader of a count finds why a row is not in it."""
    text = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    for modifier in UNCOUNTED:
        (line,) = re.findall(rf"^\| `{modifier.value}` \|.*$", text, re.MULTILINE)
        assert "never counts as a pass" in line
    for modifier in UNTIMED:
        (line,) = re.findall(rf"^\| `{modifier.value}` \|.*$", text, re.MULTILINE)
        assert "comparison" in line or "compared with nobody" in line


def test_no_other_code_has_a_rule_of_its_own() -> None:
    """Whoever names both modifiers side by side has written the rule again."""
    again = re.compile(r"DEGRADED[^\n]*OTHER_MODEL|degraded\"[^\n]*\"other_model")
    found = [
        path.relative_to(ROOT).as_posix()
        for path in sorted((ROOT / "src").rglob("*.py"))
        if again.search(path.read_text(encoding="utf-8"))
    ]
    assert found == ["src/torchgauge/records/status.py"]
