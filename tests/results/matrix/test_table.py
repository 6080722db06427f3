"""From cells with ratios to the first version at which a change appears, and to what stands on a page."""

from __future__ import annotations

from dataclasses import replace

import pytest

from torchgauge.results.matrix.table import (
    Column,
    Entry,
    Row,
    Table,
    _agreed,
    _steps,
    with_others,
)
from torchgauge.results.matrix.text import markdown_of, terminal_of

BASE = Entry("pass", median=0.01)
SAME = Entry("pass", "unchanged", 1.0, 0.99, 1.01, 0.01)
SLOW = Entry("pass", "regression", 1.2, 1.18, 1.22, 0.012)
SLOWER = Entry("pass", "regression", 1.5, 1.48, 1.52, 0.015)
FAST = Entry("pass", "improvement", 0.8, 0.79, 0.81, 0.008)
OPEN = Entry("pass", "undecided", 1.1, 0.9, 1.3, 0.011, reason="12 launches were not enough")
ERROR = Entry("error", reason="no such operator")
MISSING = Entry("missing", reason="it was not measured")


def table(*entries: Entry, repeats: tuple[int, ...] = ()) -> Table:
    """One case over as many versions, the first of which is the baseline."""
    columns = tuple(
        Column(f"2.{at}.0", f"2.{at}.0+cpu", f"/envs/{at}/bin/python", f"ab-{at}", "complete",
               baseline=at == 0, repeats="2.0.0" if at in repeats else "")
        for at in range(len(entries))
    )  # fmt: skip
    row = Row("toy/mlp:inference:float32:b1:eager@cpu", "toy", "mlp", "inference", "float32", "eager", "cpu",
              "small", entries)  # fmt: skip
    made = Table(
        "0123456789abcdef", 0.0, ("torchgauge",), "2.0.0", columns, (row,), (), (), machine="two cores"
    )
    return replace(made, steps=tuple(_steps(made)))


def found(*entries: Entry, **more: tuple[int, ...]) -> list[tuple[str, str, str]]:
    return [(step.after, step.at, step.what.partition(":")[0]) for step in table(*entries, **more).steps]


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ((BASE, SAME, SAME), []),
        ((BASE, SAME, SLOW, SLOW), [("2.1.0", "2.2.0", "slower")]),
        ((BASE, SLOW, SLOWER), [("2.0.0", "2.1.0", "slower"), ("2.1.0", "2.2.0", "slower")]),
        ((BASE, SLOW, SAME), [("2.0.0", "2.1.0", "slower"), ("2.1.0", "2.2.0", "faster")]),
        ((BASE, OPEN, FAST), [("2.0.0", "2.2.0", "faster")]),
        ((BASE, MISSING, SLOW), [("2.0.0", "2.2.0", "slower")]),
        ((BASE, ERROR, ERROR, SAME),
         [("2.0.0", "2.1.0", "pass to error"), ("2.2.0", "2.3.0", "error to pass")]),
        ((replace(BASE, status="error", median=None), replace(SAME, verdict="", ratio=None)),
         [("2.0.0", "2.1.0", "error to pass")]),
    ],
)  # fmt: skip
def test_a_change_appears_at_the_first_version_that_shows_it(entries, expected):
    """After the last one that said something; what is open or was not measured is passed over."""
    assert found(*entries) == expected


def test_other_outputs_are_a_change_with_a_bisection_on_the_status():
    """The cell says so, has no ratio, and fails the matrix; the reason stands below."""
    wrong = Entry("pass", "outputs_differ", reason="head's out differs by 0.01 from base's reference")
    made = table(BASE, SAME, wrong)
    (step,) = made.steps
    assert (step.at, step.after, step.what) == ("2.2.0", "2.1.0", wrong.reason)
    assert "--metric status" in step.command
    assert (made.differ, table(BASE, SLOW).differ) == (True, False)
    for text in (terminal_of(made), markdown_of(made)):
        assert "outputs differ" in text
        assert "differs by 0.01" in text


def test_an_alarm_of_an_aa_column_is_no_change():
    """What did not change cannot be bisected; the column itself shows the alarm."""
    assert found(BASE, SLOW, SAME, repeats=(1,)) == []


def test_the_command_goes_on_between_the_two_versions():
    """It names both interpreters, and is what a person can type."""
    (step,) = table(BASE, SAME, SLOW).steps
    assert step.command == (
        "torchgauge bisect toy/mlp --device cpu --mode inference --config eager --dtype float32 --size small "
        "--build 2.1.0=/envs/1/bin/python --build 2.2.0=/envs/2/bin/python"
    )


def test_a_cell_that_was_tried_and_has_nothing_is_no_open_end():
    """It says so with its reason, has no column of packages, and nobody is told to go on."""
    made = table(BASE, SAME, MISSING)
    empty = replace(made.columns[2], comparison="", state="", failed="no torch there")
    made = replace(made, columns=(*made.columns[:2], empty), differs=(("timm", ("1.0", "1.1", "")),))
    assert made.complete
    page = markdown_of(made)
    assert "has nothing" in page
    assert "no torch there" in page
    assert "Not complete" not in page
    (head,) = [line for line in page.splitlines() if line.startswith("| package |")]
    (row,) = [line for line in page.splitlines() if "timm" in line and "1.1" in line]
    assert head.count("|") == row.count("|") == 4
    half = replace(empty, comparison="ab-2", state="running")
    assert not replace(made, columns=(*made.columns[:2], half)).complete


def test_another_machine_has_no_interval_and_no_verdict():
    """Its ratio is one of medians; a case that it does not have is missing."""
    here, there = table(BASE, SAME), replace(table(BASE, SLOW), machine="laptop")
    shown = with_others(here, {"laptop": there})
    assert [column.label for column in shown.columns] == ["2.0.0", "2.1.0", "laptop: 2.0.0", "laptop: 2.1.0"]
    mine, theirs = shown.rows[0].entries[2:]
    assert (mine.ratio, theirs.ratio) == (1.0, 1.2)
    assert {each.low for each in (mine, theirs)} == {None}
    assert {each.verdict for each in (mine, theirs)} == {""}
    other = replace(there, rows=(replace(there.rows[0], case="toy/other:inference:float32:b1:eager@cpu"),))
    assert with_others(here, {"laptop": other}).rows[0].entries[2].status == "missing"
    assert shown.steps == ()


@pytest.mark.parametrize(
    ("first", "again", "agreed"),
    [
        (SAME, SAME, 1),
        (SLOW, replace(SLOW, ratio=1.21), 1),
        (SLOW, SAME, 0),
        (SLOW, ERROR, 0),
        (BASE, SLOW, 0),
    ],
)
def test_two_columns_of_one_environment_agree_or_not(first, again, agreed):
    """By the interval of the ratio of both; a case without two ratios does not agree."""
    made = table(BASE, first, again)
    assert _agreed(made.rows, 1, 2) == agreed
