"""What a call is for a device of some name: a question of one device, of a collection, or of a function."""

from __future__ import annotations

import ast
import re
from dataclasses import replace

from refused_by_name.definitions import Function, Module
from refused_by_name.device_lists import Scope, names_of, referred
from refused_by_name.device_words import accelerators, device_name
from refused_by_name.name_tests import EITHER, IS, Truth, counted, named_module, one_of, truth

LARGEST = 30
"""Statements of a function that is followed: what a larger one returns is no test of a name."""
_ASKED = frozenset({"is_available", "is_built", "_is_compiled"})
_OF_A_LIST = frozenset({"issuperset", "get", "isdisjoint", "intersection", "__contains__"})
_IN_A_LIST = frozenset({"startswith", "issubset", "isdisjoint", "intersection"})


def called(node: ast.Call, name: str, scope: Scope) -> Truth:
    """What the call returns, as true or false."""
    if isinstance(node.func, ast.Name):
        return _plain(node, node.func.id, name, scope)
    if not isinstance(node.func, ast.Attribute):
        return EITHER
    if node.func.attr in _ASKED and named_module(node.func):
        return one_of({named_module(node.func)}, name, scope)
    if counted(node):
        return one_of({counted(node)}, name, scope)
    return _method(node, node.func, name, scope)


def _plain(node: ast.Call, word: str, name: str, scope: Scope) -> Truth:
    first = node.args[0] if node.args else None
    if word in {"any", "all", "next"} and isinstance(first, (ast.GeneratorExp, ast.ListComp)):
        inner = replace(scope, local=scope.local | iterated(first))
        if word != "next":
            return truth(first.elt, name, inner)
        values = [truth(test, name, inner) for each in first.generators for test in each.ifs]
        return values[0] if len(values) == 1 else EITHER
    if word == "bool" and first is not None:
        return truth(first, name, scope)
    if word == "getattr" and len(node.args) > 1:
        what = node.args[1]
        found = IS.match(str(what.value)) if isinstance(what, ast.Constant) else None
        return one_of({found[1]}, name, scope) if found and device_name(found[1]) else EITHER
    function = scope.package.function(scope.module, word)
    return of_function(function[1], function[0], name, scope) if function else EITHER


def iterated(made: ast.GeneratorExp | ast.ListComp) -> dict[str, ast.expr]:
    """The names that a comprehension counts through, with what it counts through."""
    return {each.target.id: each.iter for each in made.generators if isinstance(each.target, ast.Name)}


def _method(node: ast.Call, method: ast.Attribute, name: str, scope: Scope) -> Truth:
    wanted = method.attr != "isdisjoint"
    if node.args and method.attr in _IN_A_LIST and (listed := names_of(node.args[0], scope)):
        return one_of(listed, name, scope, wanted=wanted)
    if node.args and method.attr in _OF_A_LIST and (listed := names_of(method.value, scope)):
        return one_of(listed, name, scope, wanted=wanted)
    if node.args and method.attr == "difference" and (listed := names_of(node.args[0], scope)):
        return one_of(listed, name, scope, wanted=False)
    if method.attr in {"match", "fullmatch", "search"}:
        return _pattern(node, method, name, scope)
    if not isinstance(method.value, ast.Name):
        return EITHER
    module = scope.package.below(scope.module, method.value.id)
    if module is None and method.value.id not in {"self", "cls"}:
        return EITHER
    found = scope.package.function(module or scope.module, method.attr)
    return of_function(found[1], found[0], name, scope) if found else EITHER


def _pattern(node: ast.Call, method: ast.Attribute, name: str, scope: Scope) -> Truth:
    """A regular expression that has names of devices in it, tried on the name."""
    value: ast.expr | None = method.value
    there = referred(method.value, scope)
    if isinstance(value, ast.Name) and value.id == "re":
        value = node.args[0] if node.args else None
    elif there is not None and isinstance(there[1], ast.Call) and there[1].args:
        value = there[1].args[0]
    text = value.value if isinstance(value, ast.Constant) else None
    listed = accelerators() & set(re.findall(r"[a-z]+", text)) if isinstance(text, str) else frozenset()
    if not listed or not isinstance(text, str):
        return EITHER
    try:
        how = getattr(re.compile(text), method.attr)
    except re.error:
        return EITHER
    matching = {each for each in (*listed, name) if how(each) or how(f"{each}:0")}
    return one_of(matching, name, scope)


def of_function(function: Function, module: Module, name: str, scope: Scope) -> Truth:
    """What a call of ``function`` returns, as far as the name decides; found out once."""
    from refused_by_name.consequences import local_names, returned  # it tests by these modules

    if sum(isinstance(each, ast.stmt) for each in ast.walk(function)) > LARGEST:
        return EITHER
    known, key = scope.package.known, ("returns", id(function), name)
    if key not in known:
        known[key] = EITHER, frozenset()  # of a function that calls itself
        inner = Scope(scope.package, module, local_names(function, scope.package), scope.depth - 1)
        found = returned(function.body, name, inner)
        known[key] = found, frozenset(inner.met)
    answer: tuple[Truth, frozenset[str]] = known[key]
    scope.met.update(answer[1])
    return answer[0]
