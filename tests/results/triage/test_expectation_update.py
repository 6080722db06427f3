"""Expectations from results: what is added, removed and marked, and what never changes anything."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

import stored_runs
from stored_runs import BEGIN, DAY, case, environment, result

from torchgauge.records import Cause, Failure, Modifier, Phase, Result, Status
from torchgauge.results.store import Store
from torchgauge.results.triage.case_evidence import read_evidence
from torchgauge.results.triage.expectation_update import Ask, Proposal, proposal
from torchgauge.results.triage.reading import Wanted
from torchgauge.suites.document import parse_document
from torchgauge.suites.expectation_file import ExpectationFile, new_file, parse_file
from torchgauge.suites.expectations import expectations_of

LINK = "https://example.org/42"
ASK = Ask("2026-11-22", LINK)
OLD = """\
device: fake
expectations:
  # By hand.
  - suite: toy
    model: {model}
    {more}status: {status}
    reason: a person wrote this reason
    link: https://example.org/1
    date: 2026-01-01
"""
EXACT = "mode: inference\n    dtype: float32\n    configuration: eager\n    "


def old(model: str, status: str = "error", more: str = EXACT, cause: str = "") -> ExpectationFile:
    """A file with one entry."""
    more += f'cause: "{cause}"\n    ' if cause else ""
    return parse_file(OLD.format(model=model, status=status, more=more), Path("fake.yaml"))


def by(message: str) -> list[Result]:
    """A night in which the case a raises an exception of ``message``."""
    return [bad("a", failure=Failure("RuntimeError", message, "f:1", "", message))]


def bad(model: str, status: Status = Status.ERROR, **changes: Any) -> Result:
    """A case that did not pass."""
    failure = Failure("RuntimeError", f"{model} is broken: 1 # x", "f:1", "", "p")
    fields = {"phase": Phase.EAGER, "failure": failure if status is Status.ERROR else None}
    of = changes.pop("of", case(model))
    return result(of, None, status=status, **{**fields, **changes})


def proposed(
    folder: Path, file: ExpectationFile, *nights: list[Result], runs: int = 2, ask: Ask = ASK
) -> Proposal:
    """What becomes of ``file`` after a run on each of ``nights``."""
    store = Store.open(folder / "store", create=True)
    for number, rows in enumerate(nights):
        at = BEGIN + number * DAY
        dated = [replace(row, started_at=at) for row in rows]
        stored_runs.run(store, f"n{number}", dated, environment(), at=at)
    evidence = read_evidence([str(store.path)], Wanted(), runs)
    return proposal(file, evidence.cases, ask)


def expected(found: Proposal) -> list[tuple[str, ...]]:
    """Model and status of each entry."""
    table = expectations_of(parse_document(found.text, "f"))
    return [(entry.model or entry.case or "", entry.status.value) for entry in table.entries]


EMPTY = new_file("fake", Path("fake.yaml"))


def test_a_failure_that_runs_agree_on_gets_an_entry_with_reason_link_and_date(tmp_path: Path) -> None:
    """The entry names the case by its fields, and the case is then expected."""
    night = [bad("a"), result(case("b")), bad("c", Status.UNSUPPORTED, reason="no such thing")]
    found = proposed(tmp_path, EMPTY, night, night)
    assert expected(found) == [("a", "error")]
    (entry,) = expectations_of(parse_document(found.text, "f")).entries
    assert entry.reason == "RuntimeError: a is broken: 1 # x (phase eager, 2 runs agreed)"
    assert (entry.link, entry.date, entry.configuration) == (LINK, "2026-11-22", "eager")


@pytest.mark.parametrize(
    ("nights", "note"),
    [
        ([[bad("a")]], "seen in 1 of 2 runs"),
        ([[bad("a")], [result(case("a"))], [bad("a")]], "disagree: pass, error"),
        ([[bad("a")], [bad("a", modifiers=(Modifier.FLAKY,))]], "flaky"),
        ([[bad("a")], [bad("a", modifiers=(Modifier.OTHER_MODEL,))]], "the built model is not the named one"),
        ([[bad("a")], [bad("a", modifiers=(Modifier.UNCHECKED,))]], "the results were not checked"),
        ([[result(case("a"), modifiers=(Modifier.OTHER_MODEL,))]] * 2, ""),
        ([[bad("a", Status.INFRA, cause=Cause.KILLED)], [bad("a", Status.NOT_RUN)]], ""),
        ([[bad("a")], [bad("a", Status.INFRA)], [bad("a", Status.SKIPPED)]], "seen in 1 of 2 runs"),
    ],
)
def test_what_runs_do_not_agree_on_widens_nothing(tmp_path: Path, nights: list[Any], note: str) -> None:
    """One run, a flaky case, infra, not_run and skipped add no entry and remove none."""
    assert not proposed(tmp_path / "1", EMPTY, *nights).changed
    found = proposed(tmp_path / "2", old("a", "timeout"), *nights)
    assert not found.changed
    assert any(note in each for each in found.notes) or not note


def test_an_exact_entry_that_passes_goes_and_others_stand_to_the_letter(tmp_path: Path) -> None:
    """Two passes remove it; a failure as expected, and no row at all, change no letter."""
    good, night = [result(case("a"))], [bad("a")]
    gone = proposed(tmp_path / "1", old("a"), good, good)
    assert (expected(gone), gone.removed) == ([], 1)
    assert "# By hand." in gone.text
    cause = "RuntimeError: a is broken: N # x"
    assert not proposed(tmp_path / "2", old("a", cause=cause), night, night).changed
    assert not proposed(tmp_path / "3", old("elsewhere"), good, good).changed
    assert not proposed(tmp_path / "4", old("a", "skipped"), good, good).changed


def test_a_pattern_is_marked_and_removed_only_when_asked_for(tmp_path: Path) -> None:
    """Cases that nobody ran may still need it; the mark goes when it is not true any more."""
    good = [result(case("ab")), result(case("ac"))]
    found = proposed(tmp_path / "1", old("a*"), good, good)
    assert (found.marked, found.removed) == (1, 0)
    assert "# torchgauge expect: 2026-11-22: 2 of 2 measured cases pass (toy/ab" in found.text
    assert expected(found) == [("a*", "error")]
    marked = parse_file(found.text, Path("fake.yaml"))
    night = [bad("ab"), bad("ac")]
    assert proposed(tmp_path / "2", marked, night, night).text == old("a*").text
    pruned = proposed(tmp_path / "3", old("a*"), good, good, ask=replace(ASK, prune=True))
    assert expected(pruned) == []
    half = [result(case("ab")), bad("ac")]
    kept = proposed(tmp_path / "4", old("a*"), half, half, ask=replace(ASK, prune=True))
    assert (kept.marked, expected(kept)) == (1, [("a*", "error")])


def test_another_failure_stands_before_the_pattern_that_selected_it(tmp_path: Path) -> None:
    """The narrow entry wins; an exact entry is replaced."""
    night = [bad("ab", Status.TIMEOUT, reason="deadline of 3 s"), bad("ac")]
    found = proposed(tmp_path / "1", old("a*"), night, night)
    assert expected(found) == [("ab", "timeout"), ("a*", "error")]
    night = [bad("a", Status.TIMEOUT, reason="deadline of 3 s")]
    assert expected(proposed(tmp_path / "2", old("a"), night, night)) == [("a", "timeout")]


def test_an_entry_is_no_wider_than_what_was_seen(tmp_path: Path) -> None:
    """Where another batch ends otherwise the case id is named; a full model is named by its id too."""
    night = [bad("a"), result(case("a", batch=8)), bad("b", of=case("b", size="full"))]
    found = proposed(tmp_path, EMPTY, night, night)
    assert [name for name, _ in expected(found)] == [
        "toy/a:inference:float32:b1:eager@fake",
        "toy/b:inference:float32:b1:eager@fake[size=full]",
    ]


def test_a_name_that_is_a_pattern_is_left_to_a_person(tmp_path: Path) -> None:
    """A hostile name must not select other cases."""
    night = [bad("*"), result(case("a"))]
    found = proposed(tmp_path, EMPTY, night, night)
    assert not found.changed
    assert any("glob character" in note for note in found.notes)


def test_hostile_text_ends_in_one_visible_line(tmp_path: Path) -> None:
    """No key, document, control character or direction of an error reaches the file."""
    message = (
        "x\n  - status: pass\n---\n\x1b[31m\u202e\x00 %TAG &a *b !!python \ufffe 'q' \"q\" " + "long " * 99
    )
    night = [bad("a", failure=Failure("E\nvil", message, "", "", "h"))]
    found = proposed(tmp_path, EMPTY, night, night)
    assert expected(found) == [("a", "error")]
    assert "\x1b" not in found.text
    first = [bad("a", failure=Failure("E", message.replace("\n", " "), "", "", "h"))]
    text = proposed(tmp_path / "2", EMPTY, first, first).text
    assert "\u202e" not in text
    assert len(expectations_of(parse_document(text, "f")).entries) == 1


def test_without_a_link_the_clusters_that_need_one_are_listed(tmp_path: Path) -> None:
    """A link for a cluster serves its cases; the others stay open."""
    one, two = Failure("A", "one", "f", "", "1"), Failure("B", "two", "f", "", "2")
    night = [bad("a", failure=one), bad("b", failure=one), bad("c", failure=two)]
    found = proposed(tmp_path, EMPTY, night, night, ask=Ask("2026-11-22"))
    assert found.text.count("link: MISSING") == 3
    cases = {each.title: len(each.cases) for each in found.unlinked}
    assert cases == {"A: one": 2, "B: two": 1}
    cluster = next(each.cluster for each in found.unlinked if each.title == "A: one")
    evidence = read_evidence([str(tmp_path / "store")], Wanted(), 2)
    linked = proposal(EMPTY, evidence.cases, Ask("2026-11-22", links={cluster: LINK}))
    assert [each.title for each in linked.unlinked] == ["B: two"]
    assert linked.text.count(LINK) == 2


def test_an_update_repeated_changes_nothing(tmp_path: Path) -> None:
    """What is written is what the next update finds right."""
    night = [
        bad("a"),
        bad("b", Status.OOM, cause=Cause.DEVICE, reason="tried to allocate 3 GiB"),
        result(case("c")),
    ]
    found = proposed(tmp_path, old("c"), night, night)
    assert sorted(expected(found)) == [("a", "error"), ("b", "oom")]
    evidence = read_evidence([str(tmp_path / "store")], Wanted(), 2)
    again = proposal(parse_file(found.text, Path("fake.yaml")), evidence.cases, ASK)
    assert (again.changed, again.added, again.removed, again.marked) == (False, 0, 0, 0)


def test_another_device_says_nothing(tmp_path: Path) -> None:
    """Rows of other devices neither add nor remove."""
    file = parse_file(old("a").text.replace("device: fake", "device: other"), Path("other.yaml"))
    night = [bad("a"), result(case("b"))]
    assert not proposed(tmp_path, file, night, night).changed


def test_an_entry_without_a_cause_gets_that_of_two_rows_and_keeps_the_rest(tmp_path: Path) -> None:
    """It is valid as it is, and one line longer after two runs that agree; once is enough when asked for."""
    found = proposed(tmp_path / "1", old("a"), by("shapes 4x8"), by("shapes 2x2"))
    assert (found.recorded, found.added, found.removed) == (1, 0, 0)
    (entry,) = expectations_of(parse_document(found.text, "f")).entries
    assert (entry.cause, entry.reason) == ("RuntimeError: shapes N", "a person wrote this reason")
    assert found.text.replace('    cause: "RuntimeError: shapes N"\n', "") == old("a").text
    assert not proposed(tmp_path / "2", old("a"), by("shapes 4x8")).changed
    assert proposed(tmp_path / "3", old("a"), by("shapes 4x8"), runs=1).recorded == 1


@pytest.mark.parametrize("file", [old("a"), old("a*")])
def test_rows_that_differ_in_the_cause_record_none_and_are_named(
    tmp_path: Path, file: ExpectationFile
) -> None:
    """Nor where the two newest agree, and the cause before them was there earlier still."""
    for number, nights in enumerate((["one", "two"], ["two", "one", "two", "two"])):
        found = proposed(tmp_path / str(number), file, *map(by, nights))
        assert not found.changed
        assert "RuntimeError: one" in found.notes[-1]
        assert "no cause is given, and the rows have" in found.notes[-1]


def test_cases_of_one_entry_that_differ_in_the_cause_record_none(tmp_path: Path) -> None:
    """An entry with patterns is left to a person, who can narrow it."""
    night = [bad("ab"), bad("ac")]
    found = proposed(tmp_path, old("a*"), night, night)
    assert not found.changed
    (note,) = found.notes
    assert note.startswith(
        "suite toy, model a*, mode inference, dtype float32, configuration eager: no cause"
    )
    assert (
        "2 causes: RuntimeError: ab is broken: N # x; RuntimeError: ac is broken: N # x; try: split" in note
    )


@pytest.mark.parametrize("cause", ["", "RuntimeError: one"])
def test_reason_and_link_of_another_cause_are_dropped_and_named(tmp_path: Path, cause: str) -> None:
    """Also where the entry named no cause, and the rows before show which one it was about."""
    found = proposed(tmp_path, old("a", cause=cause), by("one"), by("two"), by("two"))
    (entry,) = expectations_of(parse_document(found.text, "f")).entries
    assert (found.added, found.removed, entry.cause, entry.link) == (1, 1, "RuntimeError: two", LINK)
    assert entry.reason == "RuntimeError: two (phase eager, 2 runs agreed)"
    (note,) = found.notes
    assert "the cause changed from RuntimeError: one to RuntimeError: two" in note
    assert "neither the old reason nor the old link (https://example.org/1)" in note


def test_a_case_that_leaves_the_cause_of_its_pattern_stands_before_it(tmp_path: Path) -> None:
    """The pattern stays with its reason and link for the cases that still fail so."""
    night = [bad("ab"), bad("ac", failure=Failure("KeyError", "'x'", "f:1", "", "k"))]
    found = proposed(tmp_path, old("a*", cause="RuntimeError: a? is broken: N # x"), night, night)
    assert expected(found) == [("ac", "error"), ("a*", "error")]
    assert (found.added, found.removed, len(found.notes)) == (1, 0, 1)
