"""Every text that torchgauge may say, as it stands in the source: what is filled in is ``{expression}``.

Docstrings are none, but those of commands, which are their help. Texts of pages are left out: HTML templates
have tests of their own.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import click

from torchgauge.cli.main import cli

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "torchgauge"


class Template(NamedTuple):
    """A text and where it stands."""

    where: str
    text: str


def of_source() -> Iterator[Template]:
    """Texts of more than one word in Python modules, f-strings with their expressions in braces."""
    for path in sorted(SOURCE.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        silent = {id(node) for node in _documentation(tree)} | {id(node) for node in _parts(tree)}
        for node in ast.walk(tree):
            if id(node) in silent:
                continue
            text = _text(node)
            if text is not None and " " in text.strip():
                yield Template(f"{path.relative_to(SOURCE)}:{getattr(node, 'lineno', 0)}", text)


def of_documents() -> Iterator[Template]:
    """Lines of the templates of documents; what is filled in is ``{expression}`` as well."""
    for path in sorted(SOURCE.rglob("*.md.j2")):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            if not line.startswith("% "):
                text = re.sub(r"\{%.*?%\}", "", line)
                yield Template(
                    f"{path.relative_to(SOURCE)}:{number}", re.sub(r"\{\{(.*?)\}\}", r"{\1}", text)
                )


def of_help(command: click.Command = cli, name: str = "torchgauge") -> Iterator[Template]:
    """Help of every command and option."""
    for text in (command.help, command.short_help, *(getattr(each, "help", "") for each in command.params)):
        if text:
            yield Template(f"{name} --help", text)
    if isinstance(command, click.Group):
        context = click.Context(command)
        for each in command.list_commands(context):
            found = command.get_command(context, each)
            assert found is not None
            yield from of_help(found, f"{name} {each}")


def templates() -> list[Template]:
    """All of them."""
    return [*of_source(), *of_documents(), *of_help()]


def _documentation(tree: ast.AST) -> Iterator[ast.AST]:
    """Strings that stand alone: docstrings of modules, classes, functions, fields and constants."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield node.value


def _parts(tree: ast.AST) -> Iterator[ast.AST]:
    """Pieces of f-strings, which are texts as a whole."""
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield from (each for each in node.values if isinstance(each, ast.Constant))


def _text(node: ast.AST) -> str | None:
    if isinstance(node, ast.JoinedStr):
        return "".join(_piece(each) for each in node.values)
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    return None


def _piece(node: ast.expr) -> str:
    if isinstance(node, ast.FormattedValue):
        return "{" + ast.unparse(node.value).replace("{", "(").replace("}", ")") + "}"
    return str(node.value) if isinstance(node, ast.Constant) else ""
