"""What devices and models say stands on one visible line of a terminal, in each template of the harness."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from torchgauge.devices.calibration_conditions import Conditions
from torchgauge.devices.health import Check, CheckState
from torchgauge.harness.census.view import view_text
from torchgauge.harness.checks.check_card import Card, Deviation, GroupLine, card_lines
from torchgauge.harness.doctor.doctor_run import Calibrated, Gap
from torchgauge.harness.doctor.doctor_text import calibration_lines
from torchgauge.harness.doctor.fitness import Fitness, Verdict
from torchgauge.harness.run.run_report import RunReport
from torchgauge.harness.run.summary import brief_text, plan_lines, report_lines, result_lines
from torchgauge.records import (
    Case,
    Configuration,
    DeviceTarget,
    Environment,
    Expectation,
    Group,
    Modifier,
    Phase,
    Plan,
    PlannedCase,
    Refusal,
    Result,
    RunSettings,
    Status,
    Tolerance,
    Workload,
)
from torchgauge.suites.census.data import CensusData
from torchgauge.suites.census.record import ModelCensus

HOSTILE = [
    "\x1b[2Jgone",
    "a\nok  b",
    "\u202eevil",
    "a | b",
    "**bold** # `x`",
    "<details>",
    "::error::no",
    "\x06 1",
]


def harmless(text: str) -> bool:
    """Whether nothing in ``text`` moves the cursor or hides."""
    return not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", text)


@pytest.mark.parametrize("text", HOSTILE)
def test_a_capability_card_has_as_many_lines_as_for_a_tame_device(text: str) -> None:
    """Reasons, names and statuses make no line of their own, and what is visible of them is there."""

    def lines(word: str) -> list[str]:
        groups = (GroupLine(word, 2, 1, ((word, 1),)),)
        deviations = tuple(Deviation(word, word, word, word, each, word) for each in (True, False))
        return card_lines(Card(word, groups, deviations))

    assert len(lines(text)) == len(lines("tame")) >= 10
    assert all(map(harmless, lines(text)))
    assert any("bold" in line for line in lines("**bold**"))


@pytest.mark.parametrize("text", HOSTILE)
def test_a_census_has_as_many_lines_as_for_tame_models(text: str) -> None:
    """A census of somebody's own file holds any text."""

    def lines(word: str) -> list[str]:
        pairs = frozenset({(f"aten::{word}", word)})
        entries = [
            ModelCensus(word, word, word, word, word, pairs, "", word, pairs),
            ModelCensus(word, word, word, word, word, frozenset(), word),
        ]
        data = CensusData({word: word}, tuple(entries), {})
        return view_text(data, entries, 1, received=False).splitlines()

    assert len(lines(text)) == len(lines("tame")) >= 6
    assert all(map(harmless, lines(text)))


@pytest.mark.parametrize("text", HOSTILE)
def test_a_calibration_has_as_many_lines_as_on_a_tame_machine(text: str) -> None:
    """Models of devices, reasons of gaps and names of checks are what drivers say."""

    def lines(word: str) -> list[str]:
        where = Environment(word, (("device.model", word), ("torch.version", word)))
        gaps = (Gap(word, word, Status.ERROR, word),)
        found = Calibrated("run", word, where, (), gaps, Conditions(cores=4, seconds=1.0), 0)
        checks = (Check(word, CheckState.FAIL, word, word),)
        return calibration_lines(found, Fitness(Verdict.UNFIT, word, checks))

    assert len(lines(text)) == len(lines("tame")) >= 7
    assert all(map(harmless, lines(text)))


def rows_of(word: str) -> list[Result]:
    """A failure, and a pass with each doubt, of which every text is ``word``."""

    def row(status: Status, *modifiers: Modifier) -> Result:
        case = Case(Workload(word, word), Configuration(word, word), DeviceTarget(word))
        facts = tuple((each.value, word) for each in modifiers)
        return Result(
            "run",
            case.id,
            case,
            status,
            Phase.DONE,
            None,
            reason=word,
            modifiers=modifiers,
            facts=facts,
            teardown=word,
            reproduce=f"torchgauge run '{word}'",
        )

    return [row(Status.ERROR), *(row(Status.PASS, each) for each in Modifier)]


@pytest.mark.parametrize("text", HOSTILE)
def test_the_last_words_of_a_run_and_its_rows_have_as_many_lines_as_of_tame_models(text: str) -> None:
    """Reasons and names of models come from stores and models."""

    def lines(word: str) -> list[str]:
        rows = rows_of(word)
        report = RunReport("run", len(rows))
        for row in rows:
            report.add(row)
        return [*report_lines(report), *brief_text(rows).splitlines()]

    assert len(lines(text)) == len(lines("tame")) >= 15
    assert all(map(harmless, lines(text)))


@pytest.mark.parametrize("text", HOSTILE)
def test_all_of_a_row_has_as_many_lines_as_of_a_tame_model(text: str) -> None:
    """But for its traceback and its log, which have lines of their own, each after four blanks."""

    def lines(word: str) -> list[str]:
        return [line for row in rows_of(word) for line in result_lines(row)]

    assert len(lines(text)) == len(lines("tame")) >= 15
    assert all(map(harmless, lines(text)))
    logged = result_lines(replace(rows_of("tame")[0], log_excerpt=f"first\n{text}"))
    quoted = logged[logged.index("  end of log") + 1 :]
    assert quoted[0] == "    first"
    assert all(harmless(line) and line.startswith("    ") for line in quoted)


@pytest.mark.parametrize("text", HOSTILE)
def test_a_plan_has_as_many_lines_as_of_tame_models(text: str) -> None:
    """A device's refusal and the reason of an expectation are texts of packages and files."""

    def lines(word: str) -> list[str]:
        (row, *_) = rows_of(word)
        planned = PlannedCase(
            row.case,
            Tolerance(1e-3, 1e-3, 2.0, word),
            refusal=Refusal(Status.UNSUPPORTED, word),
            expectation=Expectation(Status.ERROR, word),
        )
        return plan_lines(Plan("run", 1.0, ("torchgauge",), RunSettings(), (Group(word, (planned,)),)))

    assert len(lines(text)) == len(lines("tame")) == 2
    assert all(map(harmless, lines(text)))
