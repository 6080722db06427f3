"""Answers are yes, no or unknown by what was measured, and never yes where nothing was."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from torchgauge.errors import DataFileError, UsageError
from torchgauge.harness.bringup.answer import Word, answers_of
from torchgauge.harness.bringup.bringup_run import BringupRun, bringup_run
from torchgauge.harness.bringup.finding import Finding, Kind
from torchgauge.harness.bringup.machine import NO_ANSWER
from torchgauge.harness.bringup.page import html_of, markdown_of
from torchgauge.harness.bringup.part import SHARES_S, TEN_ANSWERS_S, Part, PartRecord, PartState
from torchgauge.harness.bringup.question import COPIES, HERE, QUESTIONS, question_of
from torchgauge.harness.bringup.report import report_of
from torchgauge.harness.bringup.state import STATE_FILE, Asked, Bringup, begin, save
from torchgauge.harness.interpreter.interpreter import interpreter
from torchgauge.suites.conformance.catalogue import groups

NEW = Bringup(Asked("dev"), 1_700_000_000.0)
DONE = replace(NEW, parts=tuple(PartRecord(part, PartState.DONE) for part in Part))
GOOD = Finding(Kind.WORKS, COPIES, "tensor: 8 of 8 checks pass", command="look", part="check")


def copies(state: Bringup, *findings: Finding) -> tuple[Word, str]:
    """The answer to one question and why."""
    (found,) = [each for each in answers_of(state, findings, "again") if each.question.key == COPIES]
    return found.word, found.reason


def test_a_report_of_nothing_has_no_yes_and_nothing_green(tmp_path) -> None:
    """Where nothing was measured each of the ten answers is unknown and says which part has not begun."""
    report = report_of(tmp_path, NEW)
    assert [each.word for each in report.answers] == [Word.UNKNOWN] * 10
    assert all("not begun" in each.reason for each in report.answers)
    assert report.exit_code == 3
    page = html_of(report)
    assert 'class="word yes"' not in page
    assert page.count('class="word unknown"') == 10
    assert "**yes**" not in markdown_of(report)
    assert "nothing was found so far" in page


def test_a_yes_needs_every_part_of_its_question_to_be_done_and_to_show_it() -> None:
    """Without evidence, or with a part that ended early, there is no yes; with both there is."""
    assert copies(DONE) == (Word.UNKNOWN, "no result of check answers this question")
    assert copies(DONE, GOOD) == (Word.YES, GOOD.subject)
    late = DONE.having(PartRecord(Part.CHECK, PartState.OUT_OF_BUDGET, "9 cases are left"))
    word, why = copies(late, GOOD)
    assert (word, why) == (
        Word.UNKNOWN,
        "no failure so far; check: out of budget (9 cases are left)",
    )
    assert copies(DONE, replace(GOOD, part="models"))[0] is Word.UNKNOWN


@pytest.mark.parametrize("kind", [Kind.DANGER, Kind.NEXT])
def test_what_is_wrong_or_missing_says_no_also_where_much_is_right(kind) -> None:
    """A no stands whatever else was found, unless a device may do without what it lacks."""
    bad = Finding(kind, COPIES, "error tensor.copy", "the tail is lost", "look", part="check")
    assert copies(DONE, GOOD, bad) == (Word.NO, "error tensor.copy: the tail is lost")
    assert copies(NEW, bad)[0] is Word.NO
    assert copies(DONE, GOOD, replace(bad, decides=False))[0] is Word.YES


def test_the_shares_of_the_first_parts_leave_ten_minutes_for_ten_answers() -> None:
    """Each question is answered by first parts, whose times are less than ten minutes together."""
    assert sum(SHARES_S.values()) < TEN_ANSWERS_S
    assert len(QUESTIONS) == 10
    assert {part for each in QUESTIONS for part in each.parts} == set(SHARES_S)


def test_each_group_of_checks_is_of_a_question_or_known_to_be_of_none() -> None:
    """A group that somebody adds is noticed here, as no answer would rest on it."""
    asked = {group for group in groups() if question_of(f"{group}.")}
    assert set(groups()) - asked == {"profiler", "quantization", "interop", "data"}
    assert question_of("operators.fallback") == "fallbacks"
    assert question_of("operators.basics") == "operators"


def test_a_device_that_does_not_answer_is_not_measured_and_is_asked_again_later(tmp_path) -> None:
    """Parts that would hang as the first did are not tried; the next command looks whether it answers now."""
    hung = Finding(Kind.DANGER, HERE, NO_ANSWER, "timeout: it hangs")
    asked = Asked("fake", parts=("models",))
    state = replace(NEW, asked=asked).having(PartRecord(Part.DOCTOR, PartState.DONE, findings=(hung,)))
    seen: list[Bringup] = []
    run = BringupRun(tmp_path, state, interpreter(None), None, 0.0, float("inf"), seen.append)
    ended = run.run().of(Part.MODELS)
    assert (ended.state, ended.reason) == (PartState.NOT_TRIED, "no answer: timeout: it hangs")
    assert seen[-1].of(Part.MODELS) == ended
    with bringup_run(tmp_path, asked, 60.0, seen.append) as again:
        assert again.state.of(Part.DOCTOR).state is PartState.NOT_BEGUN
        assert again.silent == ""


def test_a_folder_of_another_bringup_is_refused(tmp_path) -> None:
    """The same folder goes on with the same words only; what it holds is read as it was written."""
    save(tmp_path, DONE)
    found = begin(tmp_path, DONE.asked, 0.0)
    assert found == DONE
    with pytest.raises(Exception, match="contains a bringup with other options: --device dev"):
        begin(tmp_path, Asked("other"), 0.0)


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        (Asked("dev", checks=("tensor.copy",)), "--checks leaves out"),
        (Asked("dev", checks=("tensor.*", "storage.*", "serialization.*")), ""),
        (Asked("dev", checks=("/^conformance/",)), ""),
    ],
)
def test_a_question_of_which_the_command_leaves_evidence_out_has_no_yes(asked, why) -> None:
    """One check of many that passes is no yes to their question; all of them are."""
    word, reason = copies(replace(DONE, asked=asked), GOOD)
    assert word is (Word.UNKNOWN if why else Word.YES)
    assert why in reason
    told = next(
        each for each in answers_of(replace(DONE, asked=asked), [GOOD], "") if each.question.key == COPIES
    )
    assert told.command == ("torchgauge bringup --device dev --out NEW-FOLDER" if why else GOOD.command)


def test_a_folder_is_of_one_command_at_a_time(tmp_path) -> None:
    """A second command is refused and writes nothing; the folder is free as soon as the first has ended."""
    asked, out = Asked("fake"), tmp_path / "out"
    with bringup_run(out, asked, 60.0, print):
        before = (out / STATE_FILE).read_bytes()
        with (
            pytest.raises(UsageError, match="another command uses"),
            bringup_run(out, asked, 60.0, print),
        ):
            pass
        assert (out / STATE_FILE).read_bytes() == before
    with bringup_run(out, asked, 60.0, print) as again:
        assert again.state.created_at == json.loads(before)["created_at"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"schema"', '"schema', "is not JSON"),
        ('"run_id": ""', '"run_id": "../../x"', "its parts are not those of a bringup"),
    ],
)
def test_a_state_that_somebody_edited_is_refused_by_its_file(tmp_path, old, new, message) -> None:
    """What cannot have been written by a bringup is not gone on with."""
    save(tmp_path, NEW)
    text = (tmp_path / STATE_FILE).read_text()
    assert old in text
    (tmp_path / STATE_FILE).write_text(text.replace(old, new, 1))
    with pytest.raises(DataFileError, match=message) as refused:
        begin(tmp_path, NEW.asked, 0.0)
    assert STATE_FILE in str(refused.value)


@pytest.mark.parametrize("what", ["file", "other"])
def test_a_file_and_a_folder_of_something_else_are_refused(tmp_path, what) -> None:
    """Neither is written to."""
    out = tmp_path / "out"
    mine = out if what == "file" else out / "notes.txt"
    mine.parent.mkdir(exist_ok=True)
    mine.write_text("mine")
    with (
        pytest.raises(UsageError, match=r"is not a folder|contains no bringup"),
        bringup_run(out, Asked("fake"), 60.0, print),
    ):
        pass
    assert [each.name for each in tmp_path.rglob("*") if each.is_file()] == [mine.name]
