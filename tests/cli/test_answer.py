"""JSON that every program reads, and lines that are broken between words."""

from __future__ import annotations

import json

import pytest

from torchgauge.cli.answer import fitted, say_json


def test_json_holds_no_word_that_is_none(capsys: pytest.CaptureFixture[str]) -> None:
    """NaN is no JSON: better an error than a file that another program refuses."""
    say_json({"a": [1, None]})
    assert json.loads(capsys.readouterr().out) == {"a": [1, None]}
    with pytest.raises(ValueError, match="JSON"):
        say_json(float("nan"))


def test_a_line_is_broken_between_words_and_a_command_stays_whole() -> None:
    """What goes on is indented; a command or a path is copied as it stands, however long."""
    long = "  latency  " + "words and more words " * 6
    broken = fitted(long, 80).split("\n")
    assert len(broken) > 1
    assert all(len(each) <= 80 for each in broken)
    assert all(each.startswith("    ") for each in broken[1:])
    for whole in (f"  try: torchgauge run {'x' * 90} b", f"logs in /{'y' * 90} z", "short"):
        assert fitted(whole, 80) == whole
