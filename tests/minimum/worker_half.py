"""The modules of torchgauge that a worker or a probe may import, found from the code's own entry points.

Nothing is imported: the sources are read, so the answer holds for every Python and without torch.
"""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import torchgauge
from torchgauge import registry
from torchgauge.harness.pool import worker_setup
from torchgauge.suites.conformance import catalogue

PACKAGE = Path(torchgauge.__file__).resolve().parent
CHILDREN = (
    "torchgauge.harness.worker.host",
    "torchgauge.harness.interpreter.plugin_child",
    "torchgauge.harness.census.child",
    "torchgauge.devices.probe_child",
)
"""What is started by name in the target interpreter."""
BY_NAME = ("scenarios", "backends")
"""Groups of plugins whose descriptors name the module that does the work."""


def oldest_python() -> str | None:
    """A working Python 3.10 of this machine."""
    named = [shutil.which("python3.10"), *map(str, Path.home().glob(".pyenv/versions/3.10*/bin/python"))]
    return next((python for python in named if python and _works(python)), None)


def _works(python: str) -> bool:
    return not subprocess.run([python, "-c", ""], capture_output=True, check=False).returncode


def worker_half() -> dict[str, Path]:
    """Module name to source file, closed over imports at any depth of a file."""
    found: dict[str, Path] = {}
    queue = list(roots())
    while queue:
        name = queue.pop()
        path = source_of(name)
        if path is None or name in found:
            continue
        found[name] = path
        queue += [*imported(name, path), *parents(name)]
    return dict(sorted(found.items()))


def roots() -> Iterator[str]:
    """Modules that the parent names to a child."""
    yield from CHILDREN
    for reference in (
        *worker_setup.TORCH_MODULES,
        *worker_setup.WORKER_MODULES,
        *worker_setup.TORCH_WORKER_MODULES,
    ):
        yield reference.partition(":")[0]
    groups = ("devices", "session"), ("suites", "builder"), *((each, "implementation") for each in BY_NAME)
    for group, attribute in groups:
        for name, point in registry.entry_points(f"torchgauge.{group}").items():
            if point.dist is None:
                if group in BY_NAME:  # a worker reads the descriptor too
                    yield point.value.partition(":")[0]
                yield getattr(registry.load(f"torchgauge.{group}", name), attribute).partition(":")[0]
    yield from (f"{catalogue.CHECKS}.{name}" for name in catalogue.MODULES)
    probe_child = PACKAGE / "devices" / "probe_child.py"
    for sibling in re.findall(r"_sibling\(\"(\w+)\"\)", probe_child.read_text(encoding="utf-8")):
        yield f"torchgauge.devices.{sibling}"


def source_of(name: str) -> Path | None:
    """The file of a module of ours; None for anything else."""
    first, *rest = name.split(".")
    if first != "torchgauge":
        return None
    path = PACKAGE.joinpath(*rest)
    candidates = (path / "__init__.py", path.with_suffix(".py"))
    return next((file for file in candidates if file.is_file()), None)


def parents(name: str) -> Iterator[str]:
    """The packages above a module, which its import runs first."""
    while "." in name:
        name = name.rpartition(".")[0]
        yield name


def imported(name: str, path: Path) -> Iterator[str]:
    """Modules that the source imports anywhere but for type checkers; names may be attributes as well."""
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for node in run_time_nodes(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package.rsplit(".", node.level - 1)[0] if node.level else ""
            module = ".".join(filter(None, (base, node.module)))
            yield module
            yield from (f"{module}.{alias.name}" for alias in node.names)


def run_time_nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """All nodes but those under ``if TYPE_CHECKING``."""
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            continue
        yield child
        yield from run_time_nodes(child)
