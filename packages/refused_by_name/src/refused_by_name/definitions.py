"""What the sources of a package define: words for devices, functions, and what each name stands for.

A table that something is put into later is open to every device, so it is no list of names.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

Function = ast.FunctionDef | ast.AsyncFunctionDef
OPENING = frozenset({"add", "append", "extend", "insert", "setdefault", "update", "register"})
"""Methods by which something is put into a collection."""


@dataclass
class Module:
    """One source: its names are those of its own level, and those of its classes by attribute."""

    name: str
    file: str
    tree: ast.Module
    values: dict[str, ast.expr] = field(default_factory=dict)
    functions: dict[str, Function] = field(default_factory=dict)
    attributes: dict[str, ast.expr] = field(default_factory=dict)
    imported: dict[str, tuple[str, str]] = field(default_factory=dict)
    opened: set[str] = field(default_factory=set)


@dataclass
class Package:
    """All modules by their dotted names."""

    modules: dict[str, Module] = field(default_factory=dict)
    known: dict[tuple[str, int, str], Any] = field(default_factory=dict)
    """What was found out of functions, by what, whose and for which device."""

    def value(self, module: Module, name: str, depth: int = 4) -> tuple[Module, ast.expr] | None:
        """What the constant ``name`` of ``module`` is, wherever it was imported from, and where it stands."""
        if name in module.values:
            return None if name in module.opened else (module, module.values[name])
        if name in module.imported and depth:
            source, original = module.imported[name]
            if source in self.modules:
                return self.value(self.modules[source], original, depth - 1)
        return None

    def function(self, module: Module, name: str, depth: int = 4) -> tuple[Module, Function] | None:
        """The function ``name`` as ``module`` sees it, and where it is defined."""
        if name in module.functions:
            return module, module.functions[name]
        if name in module.imported and depth:
            source, original = module.imported[name]
            if source in self.modules:
                return self.function(self.modules[source], original, depth - 1)
        return None

    def below(self, module: Module, alias: str) -> Module | None:
        """The module that ``alias`` stands for in ``module``."""
        if alias not in module.imported:
            return None
        source, original = module.imported[alias]
        return self.modules.get(f"{source}.{original}".strip(".")) or self.modules.get(
            source if not original else ""
        )


def read_module(name: str, file: str, source: str) -> Module:
    """The module with everything that it defines; raises ``SyntaxError`` where it is no Python."""
    module = Module(name, file, ast.parse(source))
    for statement in module.tree.body:
        _define(module, statement)
    for node in ast.walk(module.tree):
        if isinstance(node, ast.ImportFrom):
            _import(module, node)
        elif isinstance(node, ast.Import):
            for each in node.names:
                module.imported[each.asname or each.name] = (each.name, "")
        elif isinstance(node, ast.ClassDef):
            _attributes(module, node)
        module.opened.update(_opened(node))
    return module


def _define(module: Module, node: ast.stmt) -> None:
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        module.functions[node.name] = node
    elif isinstance(node, (ast.If, ast.Try)):
        for inner in ast.iter_child_nodes(node):
            if isinstance(inner, ast.stmt):
                _define(module, inner)
    else:
        module.values.update(assigned(node))


def assigned(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Names that a statement gives one value each."""
    target: ast.expr | None = None
    if isinstance(node, ast.Assign) and len(node.targets) == 1:
        target = node.targets[0]
    elif isinstance(node, (ast.AnnAssign, ast.NamedExpr)):
        target = node.target
    value = node.value if isinstance(node, (ast.Assign, ast.AnnAssign, ast.NamedExpr)) else None
    if isinstance(target, ast.Name) and value is not None:
        yield target.id, value


def _attributes(module: Module, node: ast.ClassDef) -> None:
    for inner in node.body:
        module.attributes.update(assigned(inner))
        if isinstance(inner, Function):
            module.functions.setdefault(inner.name, inner)
            for each in ast.walk(inner):
                if isinstance(each, ast.Assign) and isinstance(each.targets[0], ast.Attribute):
                    module.attributes.setdefault(each.targets[0].attr, each.value)


def _opened(node: ast.AST) -> Iterator[str]:
    """Names of collections that ``node`` puts something into."""
    target: ast.AST | None = None
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in OPENING:
        target = node.func.value
    elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
        target = node.value
    elif isinstance(node, ast.AugAssign):
        target = node.target
    if isinstance(target, ast.Name):
        yield target.id
    elif isinstance(target, ast.Attribute):
        yield target.attr


def _import(module: Module, node: ast.ImportFrom) -> None:
    base = node.module or ""
    if node.level:
        parts = module.name.split(".")
        is_package = module.file.endswith("__init__.py")
        kept = parts[: len(parts) - node.level + is_package]
        base = ".".join([*kept, *([node.module] if node.module else [])])
    for each in node.names:
        module.imported[each.asname or each.name] = (base, each.name)
