"""Refusals within expressions: tables and lists by name, conditional values, skips, choices, decorators."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from refused_by_name.consequences import never_returns
from refused_by_name.device_lists import Scope, is_device, names_of, referred
from refused_by_name.device_words import NEWCOMER, accelerators, all_names, names_within
from refused_by_name.finding import Effect, Refusal
from refused_by_name.name_tests import looks_at_name, truth

LONGEST = 200
_SKIPS = re.compile(r"(^|\.)(skipIf|skipif|skipUnless)$")
_DECORATES = re.compile(r"only|require|need|skip|support|allow|restrict|limited", re.IGNORECASE)
_FAST = re.compile(r"pin_memory|non_blocking|fused|foreach|prefetch|tf32|cudnn|cache", re.IGNORECASE)


def expression_refusals(node: ast.stmt, scope: Scope, function: str) -> Iterator[Refusal]:
    """Those of the expressions of ``node`` itself, not of the statements within it."""
    guarded = isinstance(node, (ast.If, ast.While, ast.Assert))
    for expression in _own(node):
        if guarded and expression is getattr(node, "test", None):
            yield from refusals_within(expression, scope, function, tested=True)
        else:
            yield from refusals_within(expression, scope, function, tested=False)
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        for each in node.decorator_list:
            yield from _decorator(each, scope, function or node.name)


def _own(node: ast.stmt) -> Iterator[ast.expr]:
    for name, value in ast.iter_fields(node):
        if name in {"decorator_list", "body", "orelse", "returns", "annotation"}:
            continue
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, ast.expr):
                yield each
            elif isinstance(each, ast.withitem):
                yield each.context_expr


def refusals_within(expression: ast.expr, scope: Scope, function: str, *, tested: bool) -> Iterator[Refusal]:
    """Refusals in ``expression``; what ``tested`` decides is told of its statement."""
    for node in ast.walk(expression):
        found: tuple[set[str], Effect, str] | None = None
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
            found = _looked_up(node, scope)
        elif isinstance(node, ast.IfExp):
            found = _conditional(node, scope)
        elif isinstance(node, ast.Call):
            found = _called(node, scope)
        elif isinstance(node, ast.comprehension):
            found = _filtered(node, scope)
        if found is None:
            continue
        names, effect, says = found
        at = node if isinstance(node, ast.expr) else node.ifs[0]  # type: ignore[attr-defined]
        yield _refusal(at, scope, function, (names, effect, says))
    if not tested and isinstance(expression, (ast.Compare, ast.BoolOp, ast.UnaryOp, ast.Attribute, ast.Call)):
        names = set(looks_at_name(expression, accelerators(), NEWCOMER, scope))
        if names and not _uses_predicate(expression):
            yield _refusal(expression, scope, function, (names, Effect.OTHER_PATH, ""))


def _uses_predicate(expression: ast.expr) -> bool:
    """Whether it is a call of a function of its own, which is told of where it tests."""
    return isinstance(expression, ast.Call) and not re.search(
        r"is_available|startswith|is_built|device_count|^any$|^all$|match", ast.unparse(expression.func)
    )


def _looked_up(node: ast.Subscript, scope: Scope) -> tuple[set[str], Effect, str] | None:
    """A table of devices that is asked for one without a way out."""
    names = set(names_of(node.value, scope))
    if not names or isinstance(node.slice, ast.Constant) or not is_device(node.slice, scope):
        return _global_by_name(node, scope)
    if not _is_table(node.value, scope):
        return None
    return names, Effect.RAISES, "KeyError"


def _is_table(node: ast.expr, scope: Scope) -> bool:
    if isinstance(node, ast.Dict):
        return True
    there = referred(node, scope)
    return there is not None and isinstance(there[1], ast.Dict)


def _global_by_name(node: ast.Subscript, scope: Scope) -> tuple[set[str], Effect, str] | None:
    """``globals()[f"run_{device.type}"]``: functions that are called after devices."""
    if not isinstance(node.slice, ast.JoinedStr) or ast.unparse(node.value) not in {"globals()", "locals()"}:
        return None
    return _named_after(node.slice, scope, "KeyError")


def _named_after(text: ast.JoinedStr, scope: Scope, says: str) -> tuple[set[str], Effect, str] | None:
    """Functions of the source that ``text``, which has a device in it, may name."""
    parts = [each for each in text.values if isinstance(each, ast.FormattedValue)]
    if len(parts) != 1 or len(text.values) < 2 or not is_device(parts[0].value, scope):
        return None
    start = text.values[0].value if isinstance(text.values[0], ast.Constant) else ""
    known = {
        name
        for function in scope.module.functions
        if function.startswith(str(start))
        for name in names_within(function)
    }
    return (known, Effect.RAISES, says) if known else None


def _conditional(node: ast.IfExp, scope: Scope) -> tuple[set[str], Effect, str] | None:
    names = set(looks_at_name(node.test, accelerators(), NEWCOMER, scope))
    mine = [node.body if value else node.orelse for value in truth(node.test, NEWCOMER, scope)]
    for branch in mine:
        every = set(looks_at_name(node.test, all_names(), NEWCOMER, scope))
        if every and never_returns(branch, scope):
            return every, Effect.RAISES, ast.unparse(branch)[:LONGEST]
    return (names, Effect.OTHER_PATH, "") if names else None


def _filtered(node: ast.comprehension, scope: Scope) -> tuple[set[str], Effect, str] | None:
    names = {name for test in node.ifs for name in looks_at_name(test, accelerators(), NEWCOMER, scope)}
    return (names, Effect.OTHER_PATH, "") if names else None


def _called(node: ast.Call, scope: Scope) -> tuple[set[str], Effect, str] | None:
    """A skip that looks at a name, a list that is searched for one, choices, or an argument that tests."""
    called = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
    if _SKIPS.search(called) and node.args:
        return _skip(node, called, scope)
    for each in node.keywords:
        if each.arg == "choices" and (names := set(names_of(each.value, scope)) & accelerators()):
            return names, Effect.RAISES, "choices of an argument"
    if isinstance(node.func, ast.Attribute) and node.func.attr == "index" and node.args:
        names = set(names_of(node.func.value, scope))
        if names and is_device(node.args[0], scope) and not isinstance(node.args[0], ast.Constant):
            return names, Effect.RAISES, "ValueError"
    if called == "getattr" and len(node.args) == 2 and isinstance(node.args[1], ast.JoinedStr):
        if ast.unparse(node.args[0]) in {"self", "cls"}:
            return _named_after(node.args[1], scope, "AttributeError")
        return None
    for each in node.keywords:
        tested = isinstance(each.value, (ast.Compare, ast.BoolOp, ast.Attribute, ast.Call, ast.UnaryOp))
        if tested and (names := set(looks_at_name(each.value, accelerators(), NEWCOMER, scope))):
            fast = bool(_FAST.search(each.arg or ""))
            return names, Effect.OPTIMISATION if fast else Effect.OTHER_PATH, ""
    return None


def _skip(node: ast.Call, called: str, scope: Scope) -> tuple[set[str], Effect, str] | None:
    """A test that is skipped where the name is not one of those that are looked for."""
    names = set(looks_at_name(node.args[0], all_names(), NEWCOMER, scope))
    skipped = not called.endswith("skipUnless")
    if not names or skipped not in truth(node.args[0], NEWCOMER, scope):
        return None
    return names, Effect.RAISES, f"SkipTest, by {called}"


def _decorator(node: ast.expr, scope: Scope, function: str) -> Iterator[Refusal]:
    """A decorator that is called after devices, or that is given the names of those that may."""
    called = node.func if isinstance(node, ast.Call) else node
    word = ast.unparse(called).rpartition(".")[2]
    if isinstance(node, ast.Call) and _SKIPS.search(ast.unparse(called)):
        found = _skip(node, ast.unparse(called), scope) if node.args else None
        if found:
            yield _refusal(node, scope, function, found)
        return
    if not _DECORATES.search(word):
        return
    names = set(names_within(word))
    if isinstance(node, ast.Call):
        for each in (*node.args, *(keyword.value for keyword in node.keywords)):
            names |= names_of(each, scope)
    if re.search(r"skip|except|exclude", word, re.IGNORECASE) and not re.search(
        r"no_?t?|unless", word, re.IGNORECASE
    ):
        names = set()  # skipped on those devices, and tried on every other one
    if names & accelerators():
        yield _refusal(node, scope, function, (names & accelerators(), Effect.RAISES, f"by decorator {word}"))


Found = tuple[set[str], Effect, str]
"""Names that are treated otherwise, what becomes of others, and what is raised."""


def _refusal(node: ast.expr, scope: Scope, function: str, found: Found) -> Refusal:
    names, effect, says = found
    text = " ".join(ast.unparse(node).split())[:LONGEST]
    return Refusal(scope.module.file, node.lineno, function, text, tuple(sorted(names)), effect, says)
