"""What devices and models say stands on one visible line of a terminal, in each template of the harness."""

from __future__ import annotations

import re

import pytest

from torchgauge.harness.census.view import view_text
from torchgauge.harness.checks.check_card import Card, Deviation, GroupLine, card_lines
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
