"""Write which names the oldest supported torch has, from the sources in its wheel, without importing them.

    pip download torch==2.5.0 --no-deps --only-binary=:all: --platform macosx_11_0_arm64 --python-version 3.11
    python tests/minimum/torch_inventory.py torch-2.5.0-*.whl

The wheel for macOS is the smallest one (64 MB); names are the same on every system. Kept are the
public modules below ``torch`` and those on the way to what the worker half uses.
"""

from __future__ import annotations

import ast
import sys
import zipfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import torch_use  # noqa: E402
import worker_half  # noqa: E402

DATA = HERE / "data" / "torch-2.5.txt"
ALWAYS = (
    "torch",
    "torch._C",
    "torch._dynamo.config",
    "torch._dynamo.utils",
    "torch._inductor.config",
    "torch._inductor.utils",
)


class Wheel:
    """The sources of one wheel by module name."""

    def __init__(self, path: Path) -> None:
        self.archive = zipfile.ZipFile(path)
        self.files = set(self.archive.namelist())
        self.version = path.name.split("-")[1]

    def sources(self, module: str) -> Iterator[ast.Module]:
        """The module's code and its stub, as far as there are any."""
        base = module.replace(".", "/")
        for name in (f"{base}.py", f"{base}/__init__.py", f"{base}.pyi", f"{base}/__init__.pyi"):
            if name in self.files:
                yield ast.parse(self.archive.read(name))

    def exists(self, module: str) -> bool:
        """Whether it is a module."""
        return any(True for _ in self.sources(module))

    def submodules(self, module: str) -> set[str]:
        """Names of the modules right below it."""
        start = module.replace(".", "/") + "/"
        below = {name.removeprefix(start).partition("/") for name in self.files if name.startswith(start)}
        files = {
            head.partition(".")[0] for head, slash, _ in below if not slash and head.endswith((".py", ".pyi"))
        }
        folders = {head for head, slash, _ in below if slash and self.exists(f"{module}.{head}")}
        return (files | folders) - {"__init__"}

    @cache  # noqa: B019  one wheel lives as long as the process
    def names(self, module: str) -> frozenset[str]:
        """Everything that the module binds at its top level, what a star import brings included."""
        found: set[str] = set()
        for tree in self.sources(module):
            package = module if self.submodules(module) else module.rpartition(".")[0]
            found |= set(self._bound(tree.body, package))
        hidden = {name for name in found if name.startswith("__") and name != "__version__"}
        return frozenset(found - hidden)

    def _bound(self, body: list[ast.stmt], package: str) -> Iterator[str]:
        for node in body:
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                yield node.name
            elif isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                yield from (
                    name.id for each in targets for name in ast.walk(each) if isinstance(name, ast.Name)
                )
            elif isinstance(node, ast.Import):
                yield from (alias.asname or alias.name.partition(".")[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                base = package.rsplit(".", node.level - 1)[0] if node.level else ""
                module = ".".join(filter(None, (base, node.module)))
                for alias in node.names:
                    if alias.name != "*":
                        yield alias.asname or alias.name
                    elif module.startswith("torch"):
                        yield from (name for name in self.names(module) if not name.startswith("_"))
            for part in ("body", "orelse", "finalbody"):
                if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                    yield from self._bound(getattr(node, part, []), package)
            for handler in getattr(node, "handlers", []):
                yield from self._bound(handler.body, package)


def wanted() -> set[str]:
    """Every module on the way to a name that the worker half uses."""
    found: set[str] = set()
    sources = (path.read_text(encoding="utf-8") for path in worker_half.worker_half().values())
    used = (use.path for source in sources for use in torch_use.uses_of(source))
    for path in (*ALWAYS, *used):
        parts = path.split(".")
        found |= {".".join(parts[:count]) for count in range(1, len(parts) + 1)}
    return found


def main(path: str) -> None:
    """Write the data file from the wheel at ``path``."""
    wheel = Wheel(Path(path))
    public = {f"torch.{name}" for name in wheel.submodules("torch") if not name.startswith("_")}
    lines = [
        f"# Names of torch {wheel.version}, made by {Path(__file__).name}.",
        "# On each line a module and its names; those with a trailing dot are modules.",
    ]
    for module in sorted(wanted() | public):
        if wheel.exists(module):
            names = wheel.names(module) | {f"{name}." for name in wheel.submodules(module)}
            lines.append(" ".join([module, *sorted(names)]))
    DATA.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
