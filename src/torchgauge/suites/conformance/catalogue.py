"""Which checks there are, read from the sources of their modules and without importing any of them.

Why: the parent process lists and plans checks and never imports torch, while checks are ordinary torch code.
A vendor names a module of checks under the entry-point group ``torchgauge.checks``. Standard library only.
"""

from __future__ import annotations

import ast
import importlib.util
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from torchgauge import registry
from torchgauge.errors import InfrastructureError
from torchgauge.records import digest

ENTRY_POINTS = "torchgauge.checks"
CHECKS = "torchgauge.suites.conformance.checks"
MODULES = (
    "autoload",
    "device",
    "tensor",
    "storage",
    "operators",
    "errors",
    "autograd",
    "amp",
    "stream",
    "event",
    "allocator",
    "generator",
    "numerics",
    "serialization",
    "data",
    "interop",
    "nn",
    "optim",
    "quantization",
    "profiler",
    "compiler",
    "export",
    "distributed",
)
"""Our modules in the order of a card: that of PyTorch's chapters on integrating an accelerator."""


@dataclass(frozen=True)
class CheckEntry:
    """One check as its source declares it; ``name`` is ``group.function``."""

    name: str
    group: str
    api: str
    doc: str
    module: str
    function: str
    tier: str = "standard"


@cache
def catalogue() -> dict[str, CheckEntry]:
    """All checks by name: ours, then those of installed packages.

    Raises :class:`InfrastructureError` for a module that cannot be read, and for two checks of one name.
    """
    found: dict[str, CheckEntry] = {}
    points = registry.entry_points(ENTRY_POINTS)
    for module in [f"{CHECKS}.{name}" for name in MODULES] + [point.value for point in points.values()]:
        for entry in read_checks(module, source_of(module)):
            if entry.name in found:
                raise InfrastructureError(
                    f"two checks are called {entry.name!r}: in {found[entry.name].module} and in {module}",
                    hint="use a different GROUP in each module",
                )
            found[entry.name] = entry
    return found


def catalogue_digest() -> str:
    """Sixteen hex digits over what the catalogue says."""
    return digest([[e.name, e.api, e.doc, e.tier, e.module] for e in catalogue().values()])


def groups() -> tuple[str, ...]:
    """The names of all groups, in the order of a card."""
    return tuple(dict.fromkeys(entry.group for entry in catalogue().values()))


def source_of(module: str) -> Path:
    """The file of ``module``, found without running any package on the way to it.

    Raises :class:`InfrastructureError` where there is none.
    """
    first, *rest = module.split(".")
    problem = InfrastructureError(
        f"the module {module!r} of checks has no source file", hint="fix or uninstall its package"
    )
    try:
        spec = importlib.util.find_spec(first)
    except (ImportError, ValueError) as error:
        raise problem from error
    if spec is None:
        raise problem
    if not rest:
        if spec.origin is None:
            raise problem
        return Path(spec.origin)
    for folder in map(Path, spec.submodule_search_locations or ()):
        path = folder.joinpath(*rest)
        for candidate in (path.with_name(f"{path.name}.py"), path / "__init__.py"):
            if candidate.is_file():
                return candidate
    raise problem


def read_checks(module: str, path: Path) -> list[CheckEntry]:
    """The checks that the source at ``path`` declares, in its order.

    Raises :class:`InfrastructureError` where it does not parse, has no ``GROUP``, or where a check has no
    docstring or a decorator that is not written out.
    """
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"))
    except (OSError, SyntaxError, ValueError) as error:
        raise InfrastructureError(f"{path}: {error}", hint="fix the module of checks") from error
    group = next((_literal(path, node.value) for node in _group_names(tree)), None)
    found = []
    for node in tree.body:
        if not isinstance(node, ast.FunctionDef):
            continue
        marks = [each for each in node.decorator_list if _is_mark(each)]
        if not marks:
            continue
        if group is None:
            raise _mistake(path, node, "the module has no constant GROUP")
        found.append(_entry(module, path, group, node, marks[0]))
    return found


def _entry(module: str, path: Path, group: str, node: ast.FunctionDef, mark: ast.expr) -> CheckEntry:
    assert isinstance(mark, ast.Call)
    doc = (ast.get_docstring(node) or "").partition("\n")[0]
    if not doc:
        raise _mistake(path, node, f"the check {node.name!r} has no docstring")
    if len(mark.args) != 1:
        raise _mistake(path, node, f"the check {node.name!r} does not name the torch API that it tests")
    tier = next((_literal(path, word.value) for word in mark.keywords if word.arg == "tier"), "standard")
    api = _literal(path, mark.args[0])
    return CheckEntry(f"{group}.{node.name}", group, api, doc, module, node.name, tier)


def _group_names(tree: ast.Module) -> list[ast.Assign]:
    """The statements at the top that say ``GROUP = ...``."""
    return [
        node
        for node in tree.body
        if isinstance(node, ast.Assign) and any(ast.unparse(each) == "GROUP" for each in node.targets)
    ]


def _is_mark(node: ast.expr) -> bool:
    if not isinstance(node, ast.Call):
        return False
    return ast.unparse(node.func).rpartition(".")[2] == "check"


def _literal(path: Path, node: ast.expr) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    raise _mistake(path, node, f"{ast.unparse(node)} is not a string literal")


def _mistake(path: Path, node: ast.stmt | ast.expr, problem: str) -> InfrastructureError:
    return InfrastructureError(f"{path}, line {node.lineno}: {problem}", hint="fix the module of checks")
