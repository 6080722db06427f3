"""Which devices an expression lists by name, and whether one is a device at all."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from refused_by_name.definitions import Module, Package
from refused_by_name.device_words import NEWCOMER, device_name

DEVICE_WORDS = re.compile(r"dev|\.type\b|accelerator|backend|platform|hardware|place", re.IGNORECASE)
_OPEN = re.compile(r"privateuse1|current_accelerator", re.IGNORECASE)
"""What asks PyTorch for the name of the accelerator that is there: a list with it is open to every device."""
_COLLECTIONS = frozenset({"set", "frozenset", "tuple", "list", "sorted"})
_DEPTH = 8


@dataclass(frozen=True)
class Scope:
    """Where an expression stands: ``local`` are names of its function with what each was given, once."""

    package: Package
    module: Module
    local: dict[str, ast.expr] = field(default_factory=dict)
    depth: int = _DEPTH
    met: set[str] = field(default_factory=set)
    """Names of devices that tests were seen to look for."""

    def deeper(self, module: Module | None = None, local: dict[str, ast.expr] | None = None) -> Scope:
        """The same one level down, perhaps in another source."""
        return replace(
            self,
            module=module or self.module,
            local=self.local if local is None else local,
            depth=self.depth - 1,
        )


def names_of(node: ast.expr | None, scope: Scope) -> frozenset[str]:
    """The devices that ``node`` lists by name: a literal, a collection of them, keys, or a name for those."""
    if node is None or scope.depth < 0:
        return frozenset()
    if _OPEN.search(ast.unparse(node)) if isinstance(node, (ast.Call, ast.Attribute)) else False:
        return frozenset({NEWCOMER})
    found: Iterable[ast.expr | None] = ()
    if isinstance(node, ast.Constant):
        name = device_name(node.value)
        return frozenset({name}) if name else frozenset()
    if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
        found = node.elts
    elif isinstance(node, ast.Dict):
        found = node.keys
    elif isinstance(node, ast.Starred):
        found = [node.value]
    elif isinstance(node, ast.BinOp) and isinstance(node.op, (ast.BitOr, ast.Add)):
        found = [node.left, node.right]
    elif isinstance(node, ast.Call):
        found = _listed_by_call(node)
    elif isinstance(node, (ast.Name, ast.Attribute)):
        there = referred(node, scope)
        if there is not None:
            where, value = there
            if not isinstance(value, ast.Constant) or device_name(value.value):
                return names_of(value, where)
    return frozenset().union(*(names_of(each, scope) for each in found))


def _listed_by_call(node: ast.Call) -> Iterable[ast.expr]:
    """What a call of ``set``, of ``torch.device`` or of ``.keys()`` lists."""
    if isinstance(node.func, ast.Name) and node.func.id in _COLLECTIONS:
        return node.args[:1]
    if isinstance(node.func, ast.Attribute) and node.func.attr == "keys":
        return [node.func.value]
    if ast.unparse(node.func).rpartition(".")[2] == "device" and node.args:
        return node.args[:1]
    return ()


def referred(node: ast.expr, scope: Scope) -> tuple[Scope, ast.expr] | None:
    """What a name or an attribute stands for, and in which scope that is written."""
    if isinstance(node, ast.Name):
        if node.id in scope.local:
            local = {name: value for name, value in scope.local.items() if name != node.id}
            return scope.deeper(local=local), scope.local[node.id]
        found = scope.package.value(scope.module, node.id)
        return (scope.deeper(found[0], {}), found[1]) if found else None
    if isinstance(node, ast.Attribute):
        if isinstance(node.value, ast.Name):
            module = scope.package.below(scope.module, node.value.id)
            if module is not None:
                found = scope.package.value(module, node.attr)
                return (scope.deeper(found[0], {}), found[1]) if found else None
        if node.attr in scope.module.attributes and node.attr not in scope.module.opened:
            return scope.deeper(local={}), scope.module.attributes[node.attr]
    return None


def is_device(node: ast.expr, scope: Scope) -> bool:
    """Whether ``node`` is a device or its type, as far as its words or what it was given say."""
    if DEVICE_WORDS.search(ast.unparse(node)):
        return True
    if isinstance(node, ast.Name) and node.id in scope.local and scope.depth > 0:
        value = scope.local[node.id]
        return not isinstance(value, ast.Constant) and bool(DEVICE_WORDS.search(ast.unparse(value)))
    return False
