"""Patterns of data files."""

from __future__ import annotations

import pytest

from torchgauge.suites.pattern import matches


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        (None, "anything", True),
        ("resnet18", "resnet18", True),
        ("resnet", "resnet18", False),
        ("resnet*", "resnet18", True),
        ("resnet1?", "resnet18", True),
        ("*[seq=64]", "huggingface/a:inference@cpu[seq=64]", True),
        ("a.b", "axb", False),
    ],
)
def test_only_star_and_question_mark_are_special(pattern: str | None, text: str, expected: bool) -> None:
    """Brackets and dots stand for themselves; a pattern must fit the whole text."""
    assert matches(pattern, text) is expected
