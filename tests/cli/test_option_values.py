"""Amounts of memory, and lists."""

from __future__ import annotations

import click
import pytest

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


def test_a_list_of_nothing_is_refused_but_from_a_workflow() -> None:
    """It would be one of everything; an input that nobody filled in is left out."""
    for text in ("", " , "):
        with pytest.raises(click.BadParameter, match="is an empty list"):
            CommaList().convert(text, None, None)
        assert CommaList(optional=True).convert(text, None, None) == ()
    assert CommaList().convert("a, b", None, None) == ("a", "b")
