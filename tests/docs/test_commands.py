"""Every ``torchgauge`` command in the docs is one that the real command line takes."""

from __future__ import annotations

import functools
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from torchgauge.cli.main import cli

sys.path.insert(0, str(Path(__file__).parent))

from doc_pages import PAGES, ROOT, all_blocks, prose

LANGUAGES = ("sh", "bash", "console", "text", "")
INLINE = re.compile(r"(?<!`)`(torchgauge [^`]+)`(?!`)")
COMMAND = re.compile(
    r"^(?:[A-Z_]+=\S+ )*(?:timeout (?:-\S+ )?\S+ \S+ )?(?:\S*bin/)?torchgauge |\$\(torchgauge "
)
"""A command line of ours: after variables, behind `timeout`, by its path, or within another one."""
WORD = re.compile(r"[a-z][a-z-]*")
ENDS = {"|", ">", ">>", "&&", "||", ";", "&", "2>", "2>&1", "<"}
PLACEHOLDER = re.compile(r"[A-Z][A-Z0-9_.:/-]*|\.\.\.|\$.*|.*\{.*")


def typed() -> Iterator[tuple[str, str]]:
    """Place and text of each command that stands on a line of a block, continued lines joined."""
    for block in all_blocks(*LANGUAGES):
        text = re.sub(r"\\\n *", " ", block.text)
        for offset, line in enumerate(text.splitlines()):
            prompt = line.startswith("$ ")
            if block.language in {"text", ""} and not prompt:
                continue
            command = line.removeprefix("$ ")
            if COMMAND.search(command):
                yield f"{block.page.relative_to(ROOT)}:{block.line + offset}", command


def mentioned() -> Iterator[tuple[str, str]]:
    """Place and text of each command between backticks in a sentence; a decision names rejected ones too."""
    for page in (page for page in PAGES if page.parent.name != "adr"):
        text = prose(page)
        for match in INLINE.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            yield f"{page.relative_to(ROOT)}:{line}", " ".join(match[1].split())


def words_of(command: str) -> list[str]:
    """The arguments of ``torchgauge`` in ``command``, up to where the shell takes over."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars="|>&;")
    lexer.whitespace_split = True
    words = list(lexer)
    start = next(place for place, word in enumerate(words) if re.search(r"(^|bin/|\$\()torchgauge$", word))
    rest = words[start + 1 :]
    end = next((place for place, word in enumerate(rest) if word in ENDS), len(rest))
    return rest[:end]


@functools.cache
def below(group: click.Group, name: str) -> click.Command | None:
    """The command ``name`` of ``group``."""
    return group.get_command(click.Context(group), name)


def problem_of(words: list[str], *, whole: bool) -> str:
    """Why the command line does not take ``words``, or ""; ``whole`` asks for what is required."""
    command: click.Command = cli
    rest = list(words)
    while isinstance(command, click.Group) and rest and WORD.fullmatch(rest[0]):
        found = below(command, rest[0])
        if found is None:
            return f"there is no command {rest[0]!r}"
        command, rest = found, rest[1:]
    if isinstance(command, click.Group) and not rest and not command.invoke_without_command:
        return "a command is missing" if whole else ""
    context = click.Context(command)
    try:
        options, extra, _ = command.make_parser(context).parse_args(rest)
    except click.UsageError as error:
        # A sentence may name a flag without its value.
        return "" if isinstance(error, click.BadOptionUsage) and not whole else error.format_message()
    if extra:
        return f"unexpected {' '.join(extra)}"
    return next(filter(None, (refusal(each, options, whole) for each in command.get_params(context))), "")


def refusal(param: click.Parameter, options: dict[str, object], whole: bool) -> str:
    """Why ``param`` refuses what ``options`` has for it: nothing where it is needed, or no choice of it."""
    value = options.get(param.name or "")
    missing = value is None or value == () or not isinstance(value, str | int | tuple | list)
    if missing and param.required and whole:
        return f"{param.opts[0]} is missing"
    if isinstance(param.type, click.Choice) and isinstance(value, str | tuple | list):
        for each in [value] if isinstance(value, str) else value:
            if each not in param.type.choices and not PLACEHOLDER.fullmatch(str(each)):
                return f"{param.opts[0]} takes one of {', '.join(map(str, param.type.choices))}, not {each}"
    return ""


@pytest.mark.parametrize(("place", "command"), list(typed()), ids=lambda value: value)
def test_a_command_that_a_reader_types_is_taken(place: str, command: str) -> None:
    """Verbs and flags exist, values are among the choices, and nothing that is required is left out."""
    problem = problem_of(words_of(command), whole=True)
    assert not problem, f"{place}: {command}: {problem}"


@pytest.mark.parametrize(("place", "command"), list(mentioned()), ids=lambda value: value)
def test_a_command_that_a_sentence_names_is_there(place: str, command: str) -> None:
    """Verbs and flags exist; a sentence may leave the rest out."""
    problem = problem_of(words_of(command), whole=False)
    assert not problem, f"{place}: {command}: {problem}"
