"""Templates quote what they print, whatever a template does with it, and tables fit their terminal."""

from __future__ import annotations

import sys
from enum import Enum

import pytest

from torchgauge.results import document
from torchgauge.results.document import Ours, table_lines

BAD = "\x1b[31m| `x` @all <b>**#1** \u202e"


class Word(str, Enum):
    """A word of our own."""

    ONE = "fail_accuracy"


def rendered(form: str, template: str, **data: object) -> str:
    """``template`` as a document of ``form`` is made, before it is laid out."""
    return document._environment(form).from_string(template).render(**data)


@pytest.mark.parametrize("form", ["markdown", "terminal"])
@pytest.mark.parametrize(
    "expression",
    ["bad", "bad|upper", "bad ~ 1", "1|string ~ bad", "[bad]|join(', ')", "'%s'|format(bad)", "bad|safe",
     "[bad]|each", "bad|brief(300)", "bad|link", "bad|escape", "ours ~ bad"],
)  # fmt: skip
def test_no_expression_prints_a_stores_text_as_it_is(form: str, expression: str) -> None:
    """Whatever a template does with it, and also where it forgets to quote."""
    text = rendered(form, f"{{{{ {expression} }}}}", bad=BAD, ours=Ours("x"))
    assert text, "nothing is printed"
    assert not set("\x1b\u202e|<b").intersection(text.replace("<code>", "").replace("</code>", "")) - {"b"}
    assert "**" not in text


def test_numbers_enumerations_and_our_own_words_are_printed_as_they_are() -> None:
    """So that a sentence reads as one."""
    text = rendered(
        "markdown", "{{ 3 }} {{ word }} {{ 2|count('case') }} {{ ours }}", word=Word.ONE, ours=Ours("ok")
    )
    assert text == "3 fail_accuracy 2 cases ok"


def test_a_missing_name_is_a_mistake_and_not_empty() -> None:
    """A fact that is not there must not vanish from a page."""
    with pytest.raises(Exception, match="nothing"):
        rendered("markdown", "{{ nothing }}")


def test_a_terminal_shows_a_document_without_its_signs() -> None:
    """Headings, bars, folds and fences go; what a store says keeps its own."""
    fold = "<details><summary>more</summary>"
    lines = ["## Of a\x02", fold, "| a | **b** |", "| --- | ---: |", "| x\x01y | 3 |", "</details>"]
    assert list(document._laid_out(lines, 80)) == ["Of a\x02", "  a    b", "  x|y  3", ""]


def test_a_table_folds_what_a_narrow_terminal_cannot_show_and_cuts_nothing() -> None:
    """Every character of every cell is there, and no line is wider than the terminal."""
    cell = "".join(f"{number:03}" for number in range(40))
    lines = table_lines([["name", "what"], [cell, "数 wide"]], ["---", "---"], 60)
    assert max(map(len, lines)) <= 60
    assert "".join(line[2:].partition("  ")[0].strip() for line in lines[1:]) == cell
    assert "数 wide" in " ".join(lines)


def test_what_is_no_terminal_gets_one_line_for_each_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pipe has no width: rows can be found with grep."""
    monkeypatch.setattr(sys.stdout, "isatty", lambda: False)
    lines = table_lines([["name"], ["x" * 3_000]], ["---"], document._UNLIMITED)
    assert lines[1] == f"  {'x' * 3_000}"
