"""Files, verbs, flags, variables, keys and classes have none of the words that only we knew."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from torchgauge.cli.main import cli

try:
    import tomllib
except ModuleNotFoundError:  # before Python 3.11
    import tomli as tomllib

ROOT = Path(__file__).parents[2]
SAY = tomllib.loads((ROOT / "docs" / "plain_words.toml").read_text(encoding="utf-8"))
ROOMS = ("src", "tests", "packages", "docs", "benchmarks", "scripts", ".github")


def _files() -> Iterator[Path]:
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                yield path.relative_to(ROOT)


def _classes() -> Iterator[str]:
    for path in _files():
        if path.suffix == ".py":
            tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
            yield from (node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef))


def _options(command: click.Command) -> Iterator[str]:
    for parameter in command.params:
        yield from parameter.opts
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield name
            yield from _options(found)


def _variables() -> Iterator[str]:
    for path in _files():
        if path.parts[0] == "src" and path.suffix == ".py":
            yield from re.findall(r"\bTORCHGAUGE_[A-Z_]+", (ROOT / path).read_text(encoding="utf-8"))


def _keys() -> Iterator[str]:
    meanings = tomllib.loads((ROOT / "docs" / "yaml_meanings.toml").read_text(encoding="utf-8"))
    for table in meanings.values():
        yield from table if isinstance(table, dict) else ()


NAMES = {
    "files": (lambda: [part for path in _files() for part in path.parts], 1000),
    "verbs and flags": (lambda: list(_options(cli)), 300),
    "variables": (lambda: list(_variables()), 10),
    "keys of YAML files": (lambda: list(_keys()), 100),
    "classes": (lambda: list(_classes()), 600),
}


def _words(name: str) -> list[str]:
    """The words of ``name``, in lower case; the names of others are one word."""
    parts = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name.replace("TorchBench", "Torchbench"))
    return [part.lower() for part in parts]


@pytest.mark.parametrize("kind", NAMES)
def test_a_name_has_no_word_that_only_we_know(kind: str) -> None:
    """What it should say instead is in ``docs/plain_words.toml``."""
    names, least = NAMES[kind][0](), NAMES[kind][1]
    assert len(names) >= least
    assert {f"{name}: say {SAY[word]}" for name in names for word in _words(name) if word in SAY} == set()
