"""Which names of torch a source file uses, and whether each is guarded against its absence.

Read from the syntax tree: ``import torch.x``, ``from torch.x import y``, attribute chains from ``torch``
(also through an alias), ``getattr(torch.x, "y")``. A use is guarded inside a ``try`` or ``suppress`` that
catches what its absence raises, in the branch of ``if hasattr(...)``, and in ``getattr`` with a default or
``hasattr``. What is computed at run time, keyword arguments and methods of objects are beyond it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

ATTRIBUTE = frozenset({"AttributeError", "Exception", "BaseException", "HOOK_ERRORS"})
IMPORT = frozenset({"ImportError", "Exception", "BaseException", "HOOK_ERRORS"})
EVERY_MODULE = frozenset({"__doc__", "__file__", "__name__", "__path__", "__spec__"})
MISSING_MODULE = IMPORT | {"ModuleNotFoundError"}


@dataclass(frozen=True)
class Use:
    """One use of a name of torch; ``kind`` is ``module``, ``name`` (``from`` import) or ``attribute``."""

    path: str
    kind: str
    line: int
    guarded: bool


@dataclass
class _Scope:
    aliases: dict[str, str] = field(default_factory=dict)
    caught: frozenset[str] = frozenset()
    present: frozenset[str] = frozenset()


def uses_of(source: str) -> list[Use]:
    """Every use of torch in ``source``, in its order."""
    visitor = _Visitor()
    visitor.visit(ast.parse(source))
    return visitor.found


def unguarded(source: str, inventory: Mapping[str, frozenset[str]]) -> Iterator[tuple[int, str]]:
    """Line and complaint for each use that ``inventory`` does not have and that nothing guards."""
    for use in uses_of(source):
        problem = missing(use.path, inventory)
        if problem and not use.guarded:
            yield use.line, problem


def missing(path: str, inventory: Mapping[str, frozenset[str]]) -> str:
    """What of ``path`` the inventory lacks; empty where all of it is there.

    A name with a trailing dot in the inventory is a submodule.
    """
    module, *rest = path.split(".")
    for part in rest:
        names = inventory.get(module)
        if names is None:
            return f"{module} is not in the inventory: make it anew with torch_inventory.py, or guard the use"
        if part in EVERY_MODULE:
            return ""
        if f"{part}." in names:
            module = f"{module}.{part}"
        elif part in names:
            return ""  # an object: what it has is not known
        else:
            return f"{module}.{part} is not in torch 2.5: guard it with getattr, hasattr or try"
    return ""


def read_inventory(path: Path) -> dict[str, frozenset[str]]:
    """The file that ``torch_inventory.py`` writes: a module and its names on each line."""
    lines = (line.split() for line in path.read_text(encoding="utf-8").splitlines())
    return {words[0]: frozenset(words[1:]) for words in lines if words and words[0] != "#"}


class _Visitor(ast.NodeVisitor):
    def __init__(self) -> None:
        self.found: list[Use] = []
        self.scope = _Scope()

    @contextmanager
    def inside(self, caught: frozenset[str] = frozenset(), present: frozenset[str] = frozenset()):
        before = self.scope
        self.scope = _Scope(dict(before.aliases), before.caught | caught, before.present | present)
        try:
            yield
        finally:
            self.scope = before

    def note(self, path: str, kind: str, line: int, *, guarded: bool = False) -> None:
        catchers = {"module": MISSING_MODULE, "name": IMPORT, "attribute": ATTRIBUTE}[kind]
        known = any(path == each or path.startswith(f"{each}.") for each in self.scope.present)
        self.found.append(Use(path, kind, line, guarded or known or bool(self.scope.caught & catchers)))

    def chain(self, node: ast.AST) -> str | None:
        """The dotted path of ``node`` where it leads to torch."""
        if isinstance(node, ast.Name):
            return self.scope.aliases.get(node.id)
        if isinstance(node, ast.Attribute):
            base = self.chain(node.value)
            return None if base is None else f"{base}.{node.attr}"
        return None

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            if alias.name.partition(".")[0] == "torch":
                self.note(alias.name, "module", node.lineno)
                name, target = (alias.asname, alias.name) if alias.asname else ("torch", "torch")
                self.scope.aliases[name] = target

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        if node.level == 0 and (node.module or "").partition(".")[0] == "torch":
            for alias in node.names:
                path = f"{node.module}.{alias.name}"
                self.note(path, "name", node.lineno)
                self.scope.aliases[alias.asname or alias.name] = path

    def visit_Attribute(self, node: ast.Attribute) -> None:
        path = self.chain(node)
        if path is None:
            self.generic_visit(node)
        else:
            self.note(path, "attribute", node.lineno)

    def visit_Call(self, node: ast.Call) -> None:
        called = node.func.id if isinstance(node.func, ast.Name) else ""
        if called in ("getattr", "hasattr") and len(node.args) >= 2:
            owner, name = node.args[:2]
            path = self.chain(owner)
            if path is not None and isinstance(name, ast.Constant):
                optional = called == "hasattr" or len(node.args) == 3
                self.note(f"{path}.{name.value}", "attribute", node.lineno, guarded=optional)
        self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        self.generic_visit(node)
        path = self.chain(node.value)
        for target in node.targets:
            if isinstance(target, ast.Name):
                if path is not None:
                    self.scope.aliases[target.id] = path
                else:
                    self.scope.aliases.pop(target.id, None)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        for decorator in node.decorator_list:
            self.visit(decorator)
        with self.inside():
            arguments = node.args
            for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
                self.scope.aliases.pop(each.arg, None)
                if each.arg == "torch":  # the module itself, handed in
                    self.scope.aliases["torch"] = "torch"
            for statement in node.body:
                self.visit(statement)

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815  the name is ast's

    def visit_Try(self, node: ast.Try) -> None:
        caught = {
            name.rpartition(".")[2]
            for handler in node.handlers
            for name in (_names(handler.type) if handler.type is not None else ["BaseException"])
        }
        aliases = self.scope.aliases
        with self.inside(caught=frozenset(caught)):
            self.scope.aliases = aliases  # what is imported here is known below
            for statement in node.body:
                self.visit(statement)
        for part in (*node.handlers, *node.orelse, *node.finalbody):
            self.visit(part)

    def visit_With(self, node: ast.With) -> None:
        caught: set[str] = set()
        for item in node.items:
            self.visit(item.context_expr)
            call = item.context_expr
            if isinstance(call, ast.Call) and ast.unparse(call.func).rpartition(".")[2] == "suppress":
                caught.update(name for argument in call.args for name in _names(argument))
        aliases = self.scope.aliases
        with self.inside(caught=frozenset(caught)):
            self.scope.aliases = aliases
            for statement in node.body:
                self.visit(statement)

    def visit_If(self, node: ast.If) -> None:
        if "TYPE_CHECKING" in ast.unparse(node.test):
            return
        self.visit(node.test)
        aliases = self.scope.aliases
        with self.inside(present=frozenset(self._asked(node.test))):
            self.scope.aliases = aliases
            for statement in node.body:
                self.visit(statement)
        for statement in node.orelse:
            self.visit(statement)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self.visit(node.test)
        with self.inside(present=frozenset(self._asked(node.test))):
            self.visit(node.body)
        self.visit(node.orelse)

    def _asked(self, test: ast.expr) -> Iterator[str]:
        """Paths that ``hasattr`` in ``test`` says are there; an ``or`` or a ``not`` says nothing."""
        terms = test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]
        for term in terms:
            if isinstance(term, ast.Call) and isinstance(term.func, ast.Name) and term.func.id == "hasattr":
                owner = self.chain(term.args[0])
                if owner is not None and isinstance(term.args[1], ast.Constant):
                    yield f"{owner}.{term.args[1].value}"


def _names(node: ast.expr) -> list[str]:
    if isinstance(node, ast.Tuple):
        return [name for item in node.elts for name in _names(item)]
    return [ast.unparse(node).rpartition(".")[2]]
