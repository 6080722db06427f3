"""Fails each test in which a loop of assertions ran zero times: it asserted nothing, and would never fail.

Watched are ``for`` loops with an ``assert`` in their body, and what ``all(...)`` and ``not any(...)`` go
through within an ``assert``. They are found in the syntax tree before pytest rewrites it, so tests are as
ever. A loop whose subject may rightly be empty says so in its first line, ``# may be empty: why``.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from _pytest.assertion import rewrite

EXCUSE = "# may be empty: "
_WATCH = "__watched_by_empty_loops__"
_ran: dict[str, bool] = {}
"""Place of each loop that the present test came to -> whether it had anything to go through."""


def watched(items: Iterable[Any], where: str) -> Iterator[Any]:
    """``items``, one by one; ``where`` is remembered, and whether there was one."""
    _ran.setdefault(where, False)
    for item in items:
        _ran[where] = True
        yield item


class Watch(ast.NodeTransformer):
    """Wraps the subject of every loop of assertions in :func:`watched`."""

    def __init__(self, source: str, path: str) -> None:
        self.lines, self.path, self.count = source.splitlines(), path, 0

    def visit_For(self, node: ast.For) -> ast.AST:
        """A loop, and those within it."""
        self.generic_visit(node)
        if any(isinstance(each, ast.Assert) for part in node.body for each in ast.walk(part)):
            node.iter = self._wrapped(node.iter, node.lineno)
        return node

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        """What ``all`` and ``not any`` go through in an assertion."""
        for each in ast.walk(node):
            call, name = each, "all"
            if isinstance(each, ast.UnaryOp) and isinstance(each.op, ast.Not):
                call, name = each.operand, "any"
            if isinstance(call, ast.Call) and getattr(call.func, "id", "") == name and call.args:
                inner = call.args[0]
                if isinstance(inner, (ast.GeneratorExp, ast.ListComp)):
                    inner.generators[0].iter = self._wrapped(inner.generators[0].iter, node.lineno)
        return node

    def _wrapped(self, subject: ast.expr, line: int) -> ast.expr:
        excuse = self.lines[line - 1].partition(EXCUSE)[2].strip()
        if excuse:
            return subject
        self.count += 1
        place = ast.Constant(f"{self.path}:{line}: {self.lines[line - 1].strip()}")
        return ast.Call(ast.Name(_WATCH, ast.Load()), [subject, place], [])


def watch(tree: ast.Module, source: bytes, path: str) -> int:
    """Watch the loops of assertions in ``tree``, in place; how many there are."""
    transformer = Watch(source.decode("utf-8"), path)
    transformer.visit(tree)
    ast.fix_missing_locations(tree)
    return transformer.count


def install() -> None:
    """Let pytest rewrite what :func:`watch` made of a test file, and cache that under a name of its own."""
    original = rewrite.rewrite_asserts

    def rewritten(mod: ast.Module, source: bytes, module_path: str | None = None, config: Any = None) -> None:
        name = Path(module_path or "").name
        if name.startswith("test_"):  # pytest rewrites plugins too, and torchgauge is one
            watch(mod, source, name)
        original(mod, source, module_path, config)

    setattr(builtins, _WATCH, watched)
    rewrite.rewrite_asserts = rewritten
    rewrite.PYC_TAIL = f".loops{rewrite.PYC_TAIL}"


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Iterator[None]:
    """Run the test, and fail it where a loop of assertions had nothing to go through."""
    _ran.clear()
    result = yield
    empty = [where for where, ran in _ran.items() if not ran]
    if empty:
        places = "\n  ".join(empty)
        pytest.fail(
            f"a loop of assertions ran zero times in {pyfuncitem.name}, so it says nothing:\n  {places}\n"
            f"assert first that there is something to go through, or end its line with {EXCUSE}why",
            pytrace=False,
        )
    return result
