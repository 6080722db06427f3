"""Templates quote what they print, whatever a template does with it, and tables fit their terminal."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Iterator
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


ARGUMENTS = ["echo", "a\n\n\n\nb  c\td", "\n\n\n| x |\n\n\n"]


@pytest.fixture
def _template(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A document that is a command between blank lines of its own."""
    monkeypatch.setattr(document, "_source", lambda _name: "before\n\n\n\n{{ command|command }}\n\n\n\nafter")
    document._environment.cache_clear()
    yield
    document._environment.cache_clear()


@pytest.mark.usefixtures("_template")
def test_a_command_in_markdown_keeps_the_blank_lines_of_its_arguments() -> None:
    """With fewer of them it would repeat something else; blank lines around it are the template's own."""
    command = shlex.join(ARGUMENTS)
    text = document.markdown("any", command=command)
    assert text == f"before\n\n```text\n{command}\n```\n\nafter\n"


@pytest.mark.usefixtures("_template")
def test_a_command_on_a_terminal_is_one_line_that_a_shell_reads_as_the_same() -> None:
    """Line feeds in its arguments are written as a shell's own sign for them."""
    lines = document.terminal("any", command=shlex.join(ARGUMENTS)).splitlines()
    assert (len(lines), lines[0], lines[-1]) == (5, "before", "after")
    shell = [sys.executable, "-c", "import sys; print(ascii(sys.argv[1:]))", "_"]
    said = subprocess.run(
        ["bash", "-c", lines[2].replace("echo", shlex.join(shell), 1)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert said.stdout.strip() == ascii(["_", *ARGUMENTS[1:]])


def test_sentences_are_broken_between_words_and_commands_are_not() -> None:
    """What follows a dash stays beside it; a command is copied whole, and nothing is lost."""
    lines = [
        "**Each** version was measured in turns",
        "- in `2.5.1`: one-two three four",
        "    " + "run " * 9,
    ]
    shown = list(document._laid_out(lines, 20))
    assert shown[:2] == ["Each version was", "measured in turns"]
    assert shown[2:4] == ["- in `2.5.1`:", "  one-two three four"]
    assert shown[4] == lines[2]
    assert list(document._laid_out(lines[1:], 100)) == [*lines[1:], ""]
