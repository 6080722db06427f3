"""What a command answers: its result on standard output, as text or JSON, and the rest on standard error."""

from __future__ import annotations

import json
import re
import sys
import textwrap
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import click

from torchgauge.errors import UsageError
from torchgauge.results.hostile_text import visible
from torchgauge.results.terminal_width import terminal_width

Command = TypeVar("Command", bound=Callable[..., Any])

_COPIED = re.compile(r"(?:^|[` ])torchgauge [a-z]+ |(?: in|:) /")
"""What is copied from a terminal: a command, or a path at the end of its line."""

JSON = click.option("--json", "as_json", is_flag=True, help="JSON on stdout")


def say_json(value: Any) -> None:
    """Print ``value``, made of JSON values, on standard output."""
    click.echo(json.dumps(value, indent=1, allow_nan=False))


def say(lines: Iterable[object]) -> None:
    """Print ``lines`` on standard output, broken between words where that is a terminal."""
    _print(lines, err=False)


def aside(lines: Iterable[object]) -> None:
    """Print ``lines`` on standard error, where they are in no program's way; broken as :func:`say` does."""
    _print(lines, err=True)


def _print(lines: Iterable[object], *, err: bool) -> None:
    stream = sys.stderr if err else sys.stdout
    columns = terminal_width(stream) if stream.isatty() else None
    for line in lines:
        for part in visible(str(line)).split("\n"):
            click.echo(part if columns is None else fitted(part, columns), err=err)


def fitted(line: str, columns: int) -> str:
    """``line`` in ``columns``, what goes on indented; a command or a path stays whole, to be copied."""
    if len(line) <= columns or _COPIED.search(line):
        return line
    indent = " " * (len(line) - len(line.lstrip()) + 2)
    return textwrap.fill(
        line, columns, subsequent_indent=indent, break_on_hyphens=False, break_long_words=False
    )


def asides(notes: Iterable[str], gaps: Iterable[str]) -> None:
    """Say what has to be known of an answer, and what it does not rest on."""
    aside((*(f"note: {each}" for each in notes), *(f"gap: {each}" for each in gaps)))


def forms(**helps: str) -> Callable[[Command], Command]:
    """Add ``--json`` and an option for each other form; the one that is given is ``form``, else ``text``."""

    def chosen(context: click.Context, parameter: click.Parameter, given: bool) -> None:
        form = context.params.setdefault("form", "text")
        if given and form != "text":
            names = [f"--{name}" for name in ("json", *helps)]
            raise UsageError(
                "several output formats were given", hint=f"one of {', '.join(names[:-1])} and {names[-1]}"
            )
        if given:
            context.params["form"] = parameter.name

    def decorated(command: Command) -> Command:
        for name, words in reversed({"json": "JSON on stdout", **helps}.items()):
            option = click.option(f"--{name}", is_flag=True, expose_value=False, callback=chosen, help=words)
            command = option(command)
        return command

    return decorated
