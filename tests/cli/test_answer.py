"""One form of an answer at most, and JSON that every program reads."""

from __future__ import annotations

import json

import click
import pytest
from click.testing import CliRunner

from torchgauge.cli.answer import asides, fitted, forms, say, say_json
from torchgauge.errors import UsageError


@click.command()
@forms(csv="rows", markdown="a page")
def asked(form: str) -> None:
    """Say which form is asked for."""
    click.echo(form)


@pytest.mark.parametrize(
    ("given", "form"),
    [((), "text"), (("--json",), "json"), (("--csv",), "csv"), (("--markdown",), "markdown")],
)
def test_the_form_is_the_one_that_is_given(given: tuple[str, ...], form: str) -> None:
    """Without an option it is text."""
    assert CliRunner().invoke(asked, given).output.strip() == form


@pytest.mark.parametrize("given", [("--json", "--csv"), ("--markdown", "--json"), ("--csv", "--markdown")])
def test_two_forms_are_a_mistake_that_names_all_of_them(given: tuple[str, ...]) -> None:
    """In any order."""
    found = CliRunner().invoke(asked, given).exception
    assert isinstance(found, UsageError)
    assert found.hint == "one of --json, --csv and --markdown"


def test_json_holds_no_word_that_is_none(capsys: pytest.CaptureFixture[str]) -> None:
    """NaN is no JSON: better an error than a file that another program refuses."""
    say_json({"a": [1, None]})
    assert json.loads(capsys.readouterr().out) == {"a": [1, None]}
    with pytest.raises(ValueError, match="JSON"):
        say_json(float("nan"))


def test_what_is_beside_the_answer_is_on_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    """A program that reads the answer reads nothing else."""
    say(["answer"])
    asides(["n"], ["g"])
    told = capsys.readouterr()
    assert (told.out, told.err) == ("answer\n", "note: n\ngap: g\n")


def test_a_line_is_broken_between_words_and_a_command_stays_whole() -> None:
    """What goes on is indented; a command or a path is copied as it stands, however long."""
    long = "  latency  " + "words and more words " * 6
    broken = fitted(long, 80).split("\n")
    assert len(broken) > 1
    assert all(len(each) <= 80 for each in broken)
    assert all(each.startswith("    ") for each in broken[1:])
    for whole in (f"  try: torchgauge run {'x' * 90} b", f"logs in /{'y' * 90} z", "short"):
        assert fitted(whole, 80) == whole
