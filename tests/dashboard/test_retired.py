"""Models that were renamed or dropped leave the counts with a note, and keep their page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from page_text import words
from store_builder import CPU, NOW, NPU
from subject_store import night

from torchgauge.dashboard import build_site
from torchgauge.dashboard.retired import retired_text
from torchgauge.dashboard.site_data import read_site_data
from torchgauge.records import Status
from torchgauge.results.store import Store

PASS, ERROR, NOT_RUN = Status.PASS, Status.ERROR, Status.NOT_RUN
ALL = "abcdefgh"


def _retired(store: Path, *nights: str) -> dict[str, str]:
    """The models that are retired after ``nights``, of which each letter is a model, with since when."""
    for number, models in enumerate(nights, 31 - len(nights)):
        if models:
            night(store, number, dict.fromkeys(models, PASS))
    retired = read_site_data(Store.open(store), NOW).latest.retired
    return {entry.workload.model: day for entry, day in retired}


@pytest.mark.parametrize(
    ("nights", "retired"),
    [
        ((ALL, ALL), {}),
        (("abcd", "abcx"), {"d": "2026-01-01"}),  # renamed
        (("ab", "ax"), {"b": "2026-01-01"}),
        (("abcd", "abc"), {}),  # not yet
        (("abcd", "abc", "abc", "abc"), {"d": "2025-12-30"}),  # dropped
        (("abcd", "a", "b", "c", "a"), {}),  # runs by hand
        (("abcd", "abce", "abcde"), {}),  # back again
        (("abcd", "abcd", "", "abcx"), {"d": "2026-01-01"}),
        ((ALL, "ab", "ab", "ab", "ab", ALL, "ab"), {}),  # a small tier every night, all of it in the weekend
        ((ALL, "abcde", "abcde", ALL, "abcde", "abcde"), {}),
        ((ALL, "abcde", "abcde", ALL, "abcde", "abcde", "abcde"), dict.fromkeys("fgh", "2025-12-30")),
        (("abcd", "efgh", "abcd", "efgh"), {}),  # two halves of a suite in turn
        (("abcd", *("wxyz",) * 7), {}),  # all new, which may be the first round of a rota
        (("abcd", *("wxyz",) * 8), dict.fromkeys("abcd", "2025-12-25")),  # a whole suite has new names
        (("abcd", *("w",) * 9), {}),  # a run by hand each night replaces nothing
        (("ab", "cd", "ef", "gh", "ab", "cd", "ef", "gh"), {}),
    ],
)
def test_what_is_retired_and_since_when(
    tmp_path: Path, nights: tuple[str, ...], retired: dict[str, str]
) -> None:
    """By its own rhythm, and at once where something new came in its place."""
    assert _retired(tmp_path, *nights) == retired


def test_it_leaves_every_count_with_a_note_and_keeps_its_page(tmp_path: Path) -> None:
    """A failure that nobody runs any more is none of tonight's either."""
    store = tmp_path / "store"
    night(store, 28, dict.fromkeys("abcd", PASS))
    night(store, 29, {**dict.fromkeys("abc", PASS), "d": ERROR})
    night(store, 30, dict.fromkeys("abcx", PASS))
    report = build_site(store, tmp_path / "site", now=NOW)
    assert (report.passed, report.planned, report.cases) == (4, 4, 4)
    note = "1 case is no longer planned and left out: toy/d since 2026-01-01."
    for name in ("index.html", "compatibility.html"):
        text = words(tmp_path / "site" / name)
        assert "4/4" in text
        assert note in text
    matrix = (tmp_path / "site" / "compatibility.html").read_text()
    assert len(re.findall(r"<td class=p><a ", matrix)) == 4
    assert ">d</a>" not in matrix
    (page,) = (tmp_path / "site" / "models").glob("toy-d-*.html")
    assert "retired" in words(page)


def test_what_another_device_dropped_is_retired_by_the_first_night_that_misses_it(tmp_path: Path) -> None:
    """A device that was silent when a model was dropped counts its old pass no more when it comes back."""
    for number in (20, 26, 27, 28, 29):
        night(tmp_path / "store", number, dict.fromkeys("abcd" if number == 20 else "abc", PASS), CPU)
    for number in (19, 30):
        night(tmp_path / "store", number, dict.fromkeys("abcde" if number == 19 else "abc", PASS), NPU)
    report = build_site(tmp_path / "store", tmp_path / "site", now=NOW)
    retired = read_site_data(Store.open(tmp_path / "store"), NOW).latest.retired
    assert {(entry.workload.model, entry.column.device) for entry, _ in retired} == {
        ("d", str(CPU)),
        ("d", str(NPU)),
    }
    assert (report.passed, report.planned) == (7, 7)  # of e no device knows more yet


def test_what_was_planned_and_lost_is_not_retired(tmp_path: Path) -> None:
    """A night that was lost planned all of it."""
    for number in (27, 28, 29, 30):
        night(tmp_path, number, {"a": PASS, "b": PASS if number == 27 else NOT_RUN})
    data = read_site_data(Store.open(tmp_path), NOW)
    assert data.latest.retired == ()


def test_the_note_names_the_newest_models(tmp_path: Path) -> None:
    """And counts the others."""
    _retired(tmp_path, "abcdefghijkl", "abcdefxyzuvw")
    text = retired_text(read_site_data(Store.open(tmp_path), NOW).latest)
    assert text.startswith("6 cases are no longer planned and left out: toy/l since 2026-01-01, toy/k since")
    assert text.endswith(" and 2 other models.")
