"""What an expression is for a device of some name: true, false, or either.

The question is never what the expression says, but whether it says something else of a device that nobody has
heard of than of one that it names: then it looks at the name.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace

from refused_by_name.device_lists import Scope, is_device, names_of, referred
from refused_by_name.device_words import device_name

Truth = frozenset[bool]
YES, NO, EITHER = frozenset({True}), frozenset({False}), frozenset({True, False})
MANY = 8
"""How many devices there are of one that is there."""
IS = re.compile(r"^_?is_([a-z]+)$")
_AMBIGUOUS = frozenset({"meta", "lazy"})
"""Words that mean something else as often: only what is a device by its words is compared with them."""


def truth(node: ast.expr, name: str, scope: Scope) -> Truth:
    """What ``node`` is on a machine whose accelerator is of type ``name``, and of a tensor that is there."""
    if scope.depth < 0:
        return EITHER
    kind = _KINDS.get(type(node))
    return kind(node, name, scope) if kind is not None else EITHER


def looks_at_name(node: ast.expr, names: Iterable[str], newcomer: str, scope: Scope) -> frozenset[str]:
    """Those of ``names`` of which ``node`` says something else than of a ``newcomer``."""
    asked = replace(scope, met=set())
    unknown = truth(node, newcomer, asked)
    there = asked.met.intersection(names)
    return frozenset(name for name in there if truth(node, name, scope) != unknown)


def _constant(node: ast.Constant, _name: str, _scope: Scope) -> Truth:
    return YES if node.value else NO


def _not(node: ast.UnaryOp, name: str, scope: Scope) -> Truth:
    if not isinstance(node.op, ast.Not):
        return EITHER
    return frozenset(not value for value in truth(node.operand, name, scope))


def _bool(node: ast.BoolOp, name: str, scope: Scope) -> Truth:
    values = [truth(each, name, scope) for each in node.values]
    decisive = isinstance(node.op, ast.Or)
    if any(value == {decisive} for value in values):
        return frozenset({decisive})
    return frozenset({not decisive} if all(v == {not decisive} for v in values) else EITHER)


def _if(node: ast.IfExp, name: str, scope: Scope) -> Truth:
    found: Truth = frozenset()
    for value in truth(node.test, name, scope):
        found |= truth(node.body if value else node.orelse, name, scope)
    return found


def _named(node: ast.NamedExpr, name: str, scope: Scope) -> Truth:
    return truth(node.value, name, scope)


def _referred(node: ast.expr, name: str, scope: Scope) -> Truth:
    """A name for a test, an attribute such as ``is_xyz``, or the version of a build for one device."""
    if isinstance(node, ast.Attribute):
        found = IS.match(node.attr)
        if found and device_name(found[1]):
            return one_of({found[1]}, name, scope)
        if device_name(node.attr) and ast.unparse(node.value).endswith("torch.version"):
            return one_of({node.attr}, name, scope)
    there = referred(node, scope)
    if there is None or names_of(there[1], there[0]):
        return EITHER
    return truth(there[1], name, there[0])


def _without(node: ast.BinOp, name: str, scope: Scope) -> Truth:
    """What is left of the devices' types when listed ones are taken away."""
    names = names_of(node.right, scope)
    if isinstance(node.op, ast.Sub) and names and not names_of(node.left, scope):
        return one_of(names, name, scope, wanted=False)
    return EITHER


def _compare(node: ast.Compare, name: str, scope: Scope) -> Truth:
    if len(node.ops) != 1:
        return EITHER
    operator, left, right = node.ops[0], node.left, node.comparators[0]
    if isinstance(operator, (ast.Is, ast.IsNot)) or isinstance(right, ast.Constant):
        found = _against_constant(operator, left, right, name, scope)
        if found is not None:
            return found
    listed = names_of(right, scope)
    if listed and _comparable(left, listed, scope):
        return _against_names(operator, listed, name, scope)
    listed = names_of(left, scope)
    if listed and _comparable(right, listed, scope):
        if isinstance(operator, (ast.In, ast.NotIn)):  # a word within the text of a device
            if not isinstance(left, ast.Constant) or not _is_text(right, scope):
                return EITHER
            return one_of(listed, name, scope, wanted=isinstance(operator, ast.In))
        return _against_names(_MIRRORED.get(type(operator), operator), listed, name, scope)
    return EITHER


_MIRRORED: Mapping[type[ast.cmpop], ast.cmpop] = {
    ast.GtE: ast.LtE(),
    ast.LtE: ast.GtE(),
    ast.Gt: ast.Lt(),
    ast.Lt: ast.Gt(),
}


def _against_names(operator: ast.cmpop, listed: frozenset[str], name: str, scope: Scope) -> Truth:
    """A device compared with ``listed`` ones: equal, in, or of sets a part of them."""
    if isinstance(operator, (ast.Eq, ast.In, ast.LtE, ast.Lt)):
        return one_of(listed, name, scope)
    if isinstance(operator, (ast.NotEq, ast.NotIn)):
        return one_of(listed, name, scope, wanted=False)
    return EITHER


def one_of(listed: Collection[str], name: str, scope: Scope, *, wanted: bool = True) -> Truth:
    """Whether ``name`` is ``listed``, which is noted; the opposite where that is not ``wanted``."""
    scope.met.update(listed)
    return YES if (name in listed) is wanted else NO


def _against_constant(
    operator: ast.cmpop, left: ast.expr, right: ast.expr, name: str, scope: Scope
) -> Truth | None:
    """A test against None, a boolean or a count; None where it is none."""
    if not isinstance(right, ast.Constant):
        return None
    value = right.value
    same = isinstance(operator, (ast.Is, ast.Eq))
    if (value is None or isinstance(value, bool)) and (same or isinstance(operator, (ast.IsNot, ast.NotEq))):
        found = truth(left, name, scope)
        return frozenset((each is bool(value)) is same for each in found)
    if isinstance(value, int) and counted(left):
        scope.met.add(counted(left))
        number = MANY if counted(left) == name else 0
        compare = _NUMBERS.get(type(operator))
        return EITHER if compare is None else (YES if compare(number, value) else NO)
    return None


_NUMBERS: Mapping[type[ast.cmpop], Callable[[int, int], bool]] = {
    ast.Eq: lambda a, b: a == b, ast.NotEq: lambda a, b: a != b, ast.Lt: lambda a, b: a < b,
    ast.LtE: lambda a, b: a <= b, ast.Gt: lambda a, b: a > b, ast.GtE: lambda a, b: a >= b,
}  # fmt: skip


def counted(node: ast.expr) -> str:
    """The device whose number of devices ``node`` asks for, as ``torch.xyz.device_count()`` does."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return ""
    return named_module(node.func) if node.func.attr == "device_count" else ""


def named_module(node: ast.Attribute) -> str:
    """The device after which the module is called of which ``node`` is an attribute."""
    inner = node.value
    return device_name(inner.attr) if isinstance(inner, ast.Attribute) else ""


def _comparable(node: ast.expr, listed: frozenset[str], scope: Scope) -> bool:
    """Whether ``node`` may be a device that is compared with ``listed`` ones."""
    if isinstance(node, ast.Constant) or names_of(node, scope):
        return False
    return is_device(node, scope) or not listed <= _AMBIGUOUS


def _is_text(node: ast.expr, scope: Scope) -> bool:
    """Whether ``node`` is one device as text, and no collection of some."""
    words = ast.unparse(node).lower()
    return is_device(node, scope) and not re.search(
        r"(devices|types|backends|names)\b|environ|modules", words
    )


def _call(node: ast.Call, name: str, scope: Scope) -> Truth:
    from refused_by_name.name_calls import called  # it tests by this module

    return called(node, name, scope)


_KINDS: Mapping[type[ast.expr], Callable[..., Truth]] = {
    ast.Constant: _constant, ast.UnaryOp: _not, ast.BoolOp: _bool, ast.IfExp: _if, ast.NamedExpr: _named,
    ast.Name: _referred, ast.Attribute: _referred, ast.BinOp: _without, ast.Compare: _compare,
    ast.Call: _call,
}  # fmt: skip
