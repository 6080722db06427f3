"""Editing a file of expectations as text: what stands is the same to the letter."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchgauge.errors import DataFileError
from torchgauge.records import Status
from torchgauge.suites.document import parse_document
from torchgauge.suites.expectation_file import MARK, Edits, NewEntry, new_file, parse_file, read_file
from torchgauge.suites.expectations import FOLDER, expectations_of

TEXT = """\
# A heading that stays.
device: abacus   # the one on the desk
expectations:
  # Rounding.
  - suite: timm
    model: resnet*
    status: fail_accuracy
    reason: >-
      the device rounds
      # to even only
    link: https://example.org/1
    date: "2026-11-21"   # looked at twice

  # Memory.
  -
    case: "timm/*@abacus*"
    status: skipped
    reason: images do not fit the device
    link: https://example.org/2
    date: 2026-11-21
# The end.
"""
NEW = NewEntry(
    Status.ERROR,
    (("suite", "toy"), ("model", "true")),
    "it is too slow",
    "https://example.org/3#a",
    "2026-11-22",
    "aten::sort is missing",
)
PATH = Path("abacus.yaml")


def entries(text: str):
    return expectations_of(parse_document(text, "f")).entries


def test_no_edits_change_no_letter() -> None:
    """Comments, order of fields, folding and blank lines are a person's, also in all files that ship."""
    assert parse_file(TEXT, PATH).edited(Edits()) == TEXT
    for path in sorted(FOLDER.glob("*.yaml")):
        assert read_file(path).edited(Edits()) == path.read_text()


def test_entries_go_and_come_where_they_should() -> None:
    """Before an entry, at the end, and none where it was; everything else keeps its lines."""
    text = parse_file(TEXT, PATH).edited(Edits(frozenset({0}), before={1: [NEW]}, appended=[NEW]))
    assert [entry.status.value for entry in entries(text)] == ["error", "skipped", "error"]
    assert entries(text)[0].model == "true"
    kept = [line for line in TEXT.splitlines() if line in text.splitlines()]
    gone = [line for line in TEXT.splitlines() if line not in text.splitlines()]
    assert [line for line in text.splitlines() if line in kept][:4] == kept[:4]
    assert gone[0] == "  - suite: timm"
    assert "# to even only" in gone[5]
    assert "  # Memory." in text
    assert text.endswith("# The end.\n")


def test_marks_are_comments_that_the_next_update_replaces() -> None:
    """A mark stands above its entry, changes nothing that is read, and never piles up."""
    once = parse_file(TEXT, PATH).edited(Edits(marks={0: "look " * 40}, looked_at=frozenset({0})))
    assert entries(once) == entries(TEXT)
    assert once.count(MARK) > 1
    assert max(map(len, once.splitlines())) <= 110
    again = parse_file(once, PATH).edited(Edits(marks={0: "look"}, looked_at=frozenset({0})))
    assert again.count(MARK) == 1
    assert parse_file(again, PATH).edited(Edits(looked_at=frozenset({0}))) == TEXT
    assert parse_file(again, PATH).edited(Edits()) == again


def test_a_list_becomes_empty_and_full_again() -> None:
    """`[]` stands exactly where there is no entry."""
    empty = parse_file(TEXT, PATH).edited(Edits(frozenset({0, 1})))
    assert entries(empty) == ()
    assert "expectations: []" in empty
    full = parse_file(empty, PATH).edited(Edits(appended=[NEW]))
    assert len(entries(full)) == 1
    fresh = new_file("abacus", PATH)
    assert entries(fresh.text) == ()
    assert len(entries(fresh.edited(Edits(appended=[NEW, NEW])))) == 2


@pytest.mark.parametrize(
    "reason",
    [
        "colon: and # hash and 'quotes' and \"more\" and \\ and {braces} and [x] and %",
        "- starts like an entry, and goes on for so long that it has to be folded "
        + "word: # - > | " * 20
        + "end",
        "no break " + "x" * 200 + " é 漢字 😀 ends",
        "# a comment at the beginning, folded because it is long " + "and longer " * 12 + "yes",
    ],
)
def test_any_reason_reads_back_as_it_was(reason: str) -> None:
    """Quoted or folded, whatever is in it."""
    chosen = (("model", "yes"), ("case", "a/b:*? x"))
    entry = NewEntry(Status.ERROR, chosen, reason, NEW.link, NEW.date, cause=reason)
    (found,) = entries(new_file("abacus", PATH).edited(Edits(appended=[entry])))
    assert (found.reason, found.cause, found.model, found.case) == (reason, reason, "yes", "a/b:*? x")


def test_a_cause_is_one_more_line_of_its_entry() -> None:
    """In the column of its other fields, also where the dash stands alone; no other line changes."""
    text = TEXT.replace("status: skipped", "status: error")
    causes = {0: "aten::sort is missing", 1: "long " * 30 + "cause"}
    edited = parse_file(text, PATH).edited(Edits(causes=causes))
    assert [entry.cause for entry in entries(edited)] == list(causes.values())
    kept = iter(edited.splitlines())
    assert all(line in kept for line in text.splitlines())


def test_windows_line_endings_and_a_missing_last_one_are_kept() -> None:
    """A file has one kind of line ending before and after."""
    windows = TEXT.replace("\n", "\r\n")
    assert parse_file(windows, PATH).edited(Edits()) == windows
    added = parse_file(windows, PATH).edited(Edits(appended=[NEW]))
    assert added.count("\n") == added.count("\r\n")
    cut = TEXT.removesuffix("# The end.\n").removesuffix("\n")
    assert len(entries(parse_file(cut, PATH).edited(Edits(appended=[NEW])))) == 3


@pytest.mark.parametrize(
    "text",
    [
        (
            "device: d\nexpectations: [{model: a, status: error, reason: because it is, "
            "link: 'http://x', date: 2026-11-21}]\n"
        ),
        TEXT.replace("rounds", "rounds\u2028"),
    ],
)
def test_what_cannot_be_edited_line_by_line_is_refused(text: str) -> None:
    """With what to write instead."""
    with pytest.raises(DataFileError, match="YAML block style"):
        parse_file(text, PATH)
