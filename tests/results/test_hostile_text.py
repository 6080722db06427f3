"""Text from machines that nobody controls."""

from __future__ import annotations

import re

import pytest

from torchgauge.results.hostile_text import LOG_LIMIT, csv_cell, slug, tail, visible


def test_terminal_sequences_and_control_characters_are_removed() -> None:
    """Colours, links and bells of a terminal have no business on a page."""
    assert visible("\x1b[31mred\x1b[0m\x07 \x1b]8;;http://x\x07link\x00\x9b") == "red link"


@pytest.mark.parametrize("char", ["\u202e", "\u2066", "\u200f", "\u200b", "\ufeff", "\ud800", "\U000e0041"])
def test_invisible_characters_become_visible(char: str) -> None:
    """Text that reverses its direction or hides must show that it does, and must be writable as UTF-8."""
    shown = visible(f"a{char}b")
    assert shown == f"a[U+{ord(char):04X}]b"
    assert shown.encode()


def test_a_long_log_keeps_its_end_and_says_so() -> None:
    """The error stands at the end."""
    shown = tail("é" * LOG_LIMIT + "the end")
    assert shown.startswith("[the first ")
    assert shown.endswith("the end")
    assert len(shown.encode()) < LOG_LIMIT + 100


@pytest.mark.parametrize(
    "name", ["../../etc/passwd", "a/b", "<script>", "", "CON", "日本", "x" * 500, "a\x00b"]
)
def test_slugs_are_plain_file_names(name: str) -> None:
    """No raw name reaches the file system."""
    assert re.fullmatch(r"([a-z0-9-]{1,60}-)?[0-9a-f]{8}", slug(name))


def test_names_that_look_alike_have_different_slugs() -> None:
    """The hash is over the raw name."""
    assert len({slug(name) for name in ("a b", "a-b", "A B", "a_b")}) == 4


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@x", "  =1", "\t=1", "\x00=1"])
def test_formulas_are_quoted_in_csv(text: str) -> None:
    """A spreadsheet runs no text."""
    assert csv_cell(text).startswith("'")
