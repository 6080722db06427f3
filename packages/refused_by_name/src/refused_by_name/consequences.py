"""What statements do for a device of some name: raise, return, go on, or leave their loop."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from refused_by_name.definitions import Function, Package, assigned
from refused_by_name.device_lists import Scope, names_of
from refused_by_name.name_tests import EITHER, NO, YES, Truth, truth

RAISE, RETURN, GO_ON, BREAK = "raise", "return", "go on", "break"
Ends = frozenset[str]
_RAISES = frozenset({"skip", "skipTest", "fail", "exit", "_exit", "abort", "assert_never"})
"""Functions of unittest, pytest and the standard library that do not come back."""


def local_names(function: Function, package: Package) -> dict[str, ast.expr]:
    """Names of ``function`` that are given one value, or that count through one collection."""
    key = ("names", id(function), "")
    if key not in package.known:
        package.known[key] = _local_names(function)
    names: dict[str, ast.expr] = package.known[key]
    return names


def _local_names(function: Function) -> dict[str, ast.expr]:
    found: dict[str, list[ast.expr]] = {}
    arguments = function.args
    for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
        found.setdefault(each.arg, [])
    parameters = set(found)
    for node in ast.walk(function):
        for name, value in assigned(node):
            found.setdefault(name, []).append(value)
        if isinstance(node, (ast.For, ast.AsyncFor)) and isinstance(node.target, ast.Name):
            found.setdefault(node.target.id, []).append(node.iter)
        elif isinstance(node, (ast.GeneratorExp, ast.ListComp, ast.SetComp)):
            for part in node.generators:
                if isinstance(part.target, ast.Name):
                    found.setdefault(part.target.id, []).append(part.iter)
    return {name: values[0] for name, values in found.items() if len(values) == 1 and name not in parameters}


def ends(body: Sequence[ast.stmt], name: str, scope: Scope) -> Ends:
    """How ``body`` may end for a device of type ``name``; tests of other things may fall either way."""
    found: set[str] = set()
    for statement in body:
        these = _ends(statement, name, scope)
        found |= these - {GO_ON}
        if GO_ON not in these:
            return frozenset(found)
    return frozenset(found | {GO_ON})


def _ends(node: ast.stmt, name: str, scope: Scope) -> Ends:
    if isinstance(node, ast.Raise):
        return frozenset({RAISE})
    if isinstance(node, ast.Return):
        return frozenset({RAISE if node.value is not None and never_returns(node.value, scope) else RETURN})
    if isinstance(node, (ast.Break, ast.Continue)):
        return frozenset({BREAK})
    if isinstance(node, ast.Assert):
        found = truth(node.test, name, scope)
        return frozenset({RAISE}) if found == NO else frozenset({GO_ON})
    if isinstance(node, ast.Expr):
        return frozenset({RAISE if never_returns(node.value, scope) else GO_ON})
    if isinstance(node, ast.If):
        return _of_branches(node, name, scope)
    if isinstance(node, (ast.With, ast.AsyncWith)):
        return ends(node.body, name, scope)
    if isinstance(node, ast.Try):
        return _of_try(node, name, scope)
    if isinstance(node, (ast.For, ast.AsyncFor, ast.While)):
        return _of_loop(node, name, scope)
    if isinstance(node, ast.Match):
        return frozenset().union(*(ends(body, name, scope) for body in _inner(node, name, scope)))
    return frozenset({GO_ON})


def _of_branches(node: ast.If, name: str, scope: Scope) -> Ends:
    found: Ends = frozenset()
    for value in truth(node.test, name, scope):
        found |= ends(node.body if value else node.orelse, name, scope)
    return found


def _of_try(node: ast.Try, name: str, scope: Scope) -> Ends:
    found = ends([*node.body, *node.orelse], name, scope)
    if RAISE in found and node.handlers:
        found = (found - {RAISE}) | frozenset().union(
            *(ends(each.body, name, scope) for each in node.handlers)
        )
    last = ends(node.finalbody, name, scope)
    return found if GO_ON in last else last


def _of_loop(node: ast.For | ast.AsyncFor | ast.While, name: str, scope: Scope) -> Ends:
    """A loop over names of devices finds its own: a break means that the ``else`` is left out."""
    body = ends(node.body, name, scope)
    by_name = isinstance(node, (ast.For, ast.AsyncFor)) and bool(names_of(node.iter, scope))
    if by_name and BREAK in body and GO_ON not in body:
        return frozenset({GO_ON})
    after = ends(node.orelse, name, scope)
    if by_name and BREAK in body:
        after |= {GO_ON}
    found = (body - {BREAK, GO_ON}) | after
    return found if by_name else found | {GO_ON}


def taken_cases(node: ast.Match, name: str, scope: Scope) -> list[ast.match_case]:
    """The cases of a match that a device of type ``name`` may end in."""
    found = []
    for case in node.cases:
        listed = _pattern_names(case.pattern, scope)
        if listed and name not in listed:
            continue
        found.append(case)
        if (listed or _catches_all(case)) and case.guard is None:
            break
    return found


def _pattern_names(pattern: ast.pattern, scope: Scope) -> frozenset[str]:
    if isinstance(pattern, ast.MatchValue):
        return names_of(pattern.value, scope)
    if isinstance(pattern, ast.MatchOr):
        return frozenset().union(*(_pattern_names(each, scope) for each in pattern.patterns))
    if isinstance(pattern, ast.MatchAs) and pattern.pattern is not None:
        return _pattern_names(pattern.pattern, scope)
    return frozenset()


def _catches_all(case: ast.match_case) -> bool:
    return isinstance(case.pattern, ast.MatchAs) and case.pattern.pattern is None


def never_returns(node: ast.expr, scope: Scope) -> bool:
    """Whether ``node`` is a call of something that always raises."""
    if not isinstance(node, ast.Call) or scope.depth < 0:
        return False
    word = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
    found = scope.package.function(scope.module, word)
    if found is None:
        return word in _RAISES
    module, function = found
    known, key = scope.package.known, ("raises", id(function), "")
    if key not in known:
        known[key] = False  # of a function that calls itself
        inner = Scope(scope.package, module, local_names(function, scope.package), scope.depth - 1)
        generator = any(isinstance(each, (ast.Yield, ast.YieldFrom)) for each in ast.walk(function))
        known[key] = not generator and _always(function.body, inner)
    return bool(known[key])


def _always(body: Sequence[ast.stmt], scope: Scope) -> bool:
    """Whether ``body`` raises, whatever is tested."""
    for statement in body:
        if isinstance(statement, ast.Raise):  # bare, it says that somebody else defines the method
            return not (isinstance(statement.exc, ast.Name) and statement.exc.id == "NotImplementedError")
        if isinstance(statement, (ast.Return, ast.If, ast.For, ast.While, ast.Try, ast.With, ast.Match)):
            return False
        if isinstance(statement, ast.Expr) and never_returns(statement.value, scope):
            return True
    return False


def returned(body: Sequence[ast.stmt], name: str, scope: Scope) -> Truth:
    """What a function with ``body`` returns for a device of type ``name``, as true or false."""
    found, through = _returned(body, name, scope)
    return found | NO if through else found or EITHER


def _returned(body: Sequence[ast.stmt], name: str, scope: Scope) -> tuple[Truth, bool]:
    """The same, and whether the body may come to its end."""
    found: Truth = frozenset()
    for node in body:
        if isinstance(node, ast.Return):
            return found | (truth(node.value, name, scope) if node.value is not None else NO), False
        if isinstance(node, ast.Raise):
            return found, False
        if isinstance(node, (ast.For, ast.While)):
            these, _ = _returned(node.body, name, scope)
            found |= these
            through = not (these == YES and names_of(getattr(node, "iter", None), scope))
        else:
            parts = [_returned(inner, name, scope) for inner in _inner(node, name, scope)]
            found = found.union(*(these for these, _ in parts))
            through = not parts or any(passes for _, passes in parts)
        if not through:
            return found, False
    return found, True


def _inner(node: ast.stmt, name: str, scope: Scope) -> list[list[ast.stmt]]:
    """The bodies of ``node`` of which a device of type ``name`` may come into one."""
    if isinstance(node, ast.If):
        return [node.body if value else node.orelse for value in truth(node.test, name, scope)]
    if isinstance(node, (ast.With, ast.Try)):
        return [node.body]
    if isinstance(node, ast.Match):
        past: list[list[ast.stmt]] = [] if any(map(_catches_all, node.cases)) else [[]]
        return [case.body for case in taken_cases(node, name, scope)] + past
    return []
