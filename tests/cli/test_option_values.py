"""Amounts of memory, lists, and groups of options."""

from __future__ import annotations

import click
import pytest

from torchgauge.cli.grouped_command import GROUPS
from torchgauge.cli.main import cli
from torchgauge.cli.option_values import LEAST_WORKER, Bytes, CommaList


@pytest.mark.parametrize(
    ("text", "size"),
    [("4G", 4 << 30), ("512m", 512 << 20), ("1.5GiB", 3 << 29), ("2TB", 2 << 40), ("1200000000", 1200000000)],
)
def test_memory_is_read_with_and_without_a_unit(text, size) -> None:
    """Units are powers of 1024; a bare number is bytes."""
    assert Bytes(LEAST_WORKER).convert(text, None, None) == size


@pytest.mark.parametrize("text", ["1", "16M", "4X", "-4G", "", "G"])
def test_memory_that_is_none_or_too_little_is_refused(text) -> None:
    """With what to type."""
    with pytest.raises(click.BadParameter, match="try: 4G"):
        Bytes(LEAST_WORKER).convert(text, None, None)


@pytest.mark.parametrize("verb", ["run", "plan", "ab", "repro", "ops judge", "worker", "check"])
def test_options_are_shown_in_groups(invoke, verb) -> None:
    """Every option of a verb that measures stands under one of the headings, in their order."""
    lines = invoke(*verb.split(), "--help").stdout.splitlines()
    headings = [line[:-1] for line in lines if line.endswith(":") and not line.startswith(" ")]
    assert headings == [heading for heading in GROUPS if heading in headings]
    assert len(headings) >= 2
    command = cli
    for word in verb.split():
        command = command.get_command(click.Context(command), word)
    options = {parameter.opts[-1] for parameter in command.params if isinstance(parameter, click.Option)}
    shown = {word.strip(",") for line in lines for word in line.split() if word.startswith("--")}
    assert options <= shown


def test_a_list_of_nothing_is_refused_but_from_a_workflow() -> None:
    """It would be one of everything; an input that nobody filled in is left out."""
    for text in ("", " , "):
        with pytest.raises(click.BadParameter, match="names nothing"):
            CommaList().convert(text, None, None)
        assert CommaList(optional=True).convert(text, None, None) == ()
    assert CommaList().convert("a, b", None, None) == ("a", "b")
