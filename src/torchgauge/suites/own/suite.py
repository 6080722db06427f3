"""A Python file as a suite: each of its functions that returns a module with its inputs is a model.

``torchgauge run mine.py`` lists the functions from the syntax tree; only workers import the file. A suite is
named by the path of its file below the repository's root, with dots between the folders, so that a series
goes on wherever the command is typed. :data:`VARIABLE` tells child processes the files of these names.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from torchgauge.errors import UsageError
from torchgauge.suites.model_code import MODEL_CODE, builder_file, code_digest
from torchgauge.suites.suite import ModelEntry, Unavailable

VARIABLE = "TORCHGAUGE_FILES"
"""The variable with the files that were named on the command line, a path in each line."""
TAKEN = ("batch", "dtype", "device", "seed")
"""What a function may take, by name."""
LOSS = "loss"
"""The function of a file that maps the output and the inputs to a loss."""
TIERS = ("smoke", "standard", "full")
_MODULE = re.compile(r"([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*):([A-Za-z_]\w*)")
_RESERVED = re.compile(r"[:@\[\]=,/\s]")
"""Characters that separate the parts of a case id."""


def is_own(word: str) -> bool:
    """Return whether ``word`` names a file or an importable module, and not a suite by its name."""
    return word.partition("::")[0].endswith(".py") or bool(_MODULE.fullmatch(word))


def resolve(word: str) -> tuple[OwnSuite, str]:
    """Return the suite of the file that ``word`` names, and the model in it; empty for all models.

    ``word`` is ``FILE.py``, ``FILE.py::function``, ``package.module:function`` or the name of such a suite.
    Raises :class:`UsageError` where there is no such file, or it defines no such function.
    """
    text, _, function = word.partition("::")
    if module := _MODULE.fullmatch(word):
        text, function = module[1], module[2]
        file = _module_file(text)
        if file is None:
            raise UsageError(
                f"{word}: there is no module {text} in this folder or in this environment",
                hint="the path of the file, for example src/acme/models.py::encoder",
            )
    else:
        file = _file(text)
    suite = OwnSuite(file)
    names = [model.name for model in suite.models()]
    if function and function not in names:
        why = dict(suite.others).get(function, f"it is not defined in {file.name}")
        raise UsageError(f"{word}: {function} is no model: {why}", hint=f"{file.name}::{names[0]}")
    return suite, function


def name_to_children(suite: OwnSuite) -> None:
    """Add the file of ``suite`` to those that child processes find by name; raise for two of one name."""
    files = [file for file in os.environ.get(VARIABLE, "").splitlines() if file]
    for other in map(Path, files):
        if other != suite.file and OwnSuite(other).name == suite.name:
            raise UsageError(
                f"{suite.file} and {other} are both called {suite.name}", hint="rename one of the files"
            )
    os.environ[VARIABLE] = "\n".join(dict.fromkeys([*files, str(suite.file)]))


@dataclass(frozen=True)
class OwnSuite:
    """The functions of ``file``, which is read and never imported in this process."""

    file: Path
    builder: str = "torchgauge.suites.own.models:build"
    preload: tuple[str, ...] = ()
    install_hint: str = "pip install what the file imports"
    unavailable: Unavailable | None = None
    environment: dict[str, str] = field(default_factory=dict)

    @cached_property
    def name(self) -> str:
        """The path of the file below the repository's root, or its name outside one; dots for slashes."""
        root = next((folder for folder in self.file.parents if (folder / ".git").exists()), self.file.parent)
        return _RESERVED.sub("_", ".".join(self.file.relative_to(root).parts))

    @property
    def doc(self) -> str:
        """One sentence for ``torchgauge suites``."""
        return f"The functions of {self.file}."

    @cached_property
    def digest(self) -> str:
        """Sixteen hex digits over the file and the local modules that it imports."""
        return code_digest([self.file, *_imported(self.file)])

    @property
    def notes(self) -> tuple[str, ...]:
        """Return which public functions are no models, and why."""
        return tuple(f"{self.file.name}: {name} is no model: {why}" for name, why in self.others)

    def models(self) -> tuple[ModelEntry, ...]:
        """Return an entry for each function that can be called; raises :class:`UsageError` for none."""
        if not self._functions[0]:
            found = "; ".join(f"{name}: {why}" for name, why in self.others) or "it defines no function"
            raise UsageError(
                f"{self.file}: no model: {found}",
                hint="def model(): return torch.nn.Linear(8, 8), (torch.randn(2, 8),)",
            )
        return self._functions[0]

    @property
    def others(self) -> tuple[tuple[str, str], ...]:
        """Name of each public function that is no model, and why."""
        return self._functions[1]

    def code(self, model: str, recipe: dict[str, object], builder: str) -> dict[str, str]:  # noqa: ARG002
        """Return the fact that names the code of each model: the file with its local imports."""
        return {MODEL_CODE: self.digest}

    @cached_property
    def _functions(self) -> tuple[tuple[ModelEntry, ...], tuple[tuple[str, str], ...]]:
        models, others = [], []
        for node in _tree(self.file).body:
            if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) or node.name[0] == "_":
                continue
            if node.name == LOSS:
                continue
            if why := _odd(node):
                others.append((node.name, why))
            else:
                models.append(self._entry(node))
        return tuple(models), tuple(others)

    def _entry(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> ModelEntry:
        """Return the entry of a function; its ``batch`` is the default of that argument, else 1."""
        arguments, batch = node.args, 1
        named = [*arguments.posonlyargs, *arguments.args]
        pairs = [*zip(reversed(named), reversed(arguments.defaults), strict=False)]
        pairs += zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        for argument, default in pairs:
            value = getattr(default, "value", None)
            if argument.arg == "batch" and isinstance(value, int) and value > 0:
                batch = value
        taken = [argument.arg for argument in (*named, *arguments.kwonlyargs) if argument.arg in TAKEN]
        return ModelEntry(
            name=node.name,
            tiers=TIERS,
            batch={"inference": batch, "training": batch},
            recipe={"file": str(self.file), "function": node.name, "takes": taken},
        )


def _file(text: str) -> Path:
    """Return the file that ``text`` names: a path, or the name of a suite of this kind."""
    path = Path(text).expanduser()
    if path.is_dir():
        raise UsageError(f"{text} is a folder", hint="name a file in it, for example model.py")
    if path.is_file():
        return path.resolve()
    for file in map(Path, os.environ.get(VARIABLE, "").splitlines()):
        if file.is_file() and OwnSuite(file).name == text:
            return file
    here = Path.cwd()
    root = next((folder for folder in (here, *here.parents) if (folder / ".git").exists()), here)
    parts = text.removesuffix(".py").split(".")
    for start in (here, root):
        if (file := start.joinpath(*parts).with_suffix(".py")).is_file():
            return file.resolve()
    raise UsageError(f"{text}: there is no such file", hint=f"ls {path.parent}")


def _module_file(module: str) -> Path | None:
    """Return the source of ``module`` in this folder or in the environment, without importing it."""
    here = Path.cwd().joinpath(*module.split("."))
    for file in (here.with_suffix(".py"), here / "__init__.py"):
        if file.is_file():
            return file
    try:
        found = builder_file(f"{module}:")
    except (ImportError, ValueError):
        return None
    return found.resolve() if found is not None and found.suffix == ".py" else None


def _tree(file: Path) -> ast.Module:
    try:
        return ast.parse(file.read_bytes(), str(file))
    except SyntaxError as error:
        raise UsageError(
            f"{file}, line {error.lineno}: {error.msg}", hint=f"python {file}, which shows the line"
        ) from error
    except (OSError, ValueError) as error:
        raise UsageError(f"{file} cannot be read: {error}", hint=f"python {file}") from error


def _odd(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    """Return why a function is no model; empty for one that can be called and returns something."""
    arguments = node.args
    named = [*arguments.posonlyargs, *arguments.args]
    needed = named[: len(named) - len(arguments.defaults)]
    needed += [
        argument
        for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        if default is None
    ]
    unknown = [argument.arg for argument in needed if argument.arg not in TAKEN]
    if unknown:
        return f"it takes {', '.join(unknown)}; a model takes nothing, or {', '.join(TAKEN)}"
    if isinstance(node, ast.AsyncFunctionDef):
        return "it is a coroutine"
    own = [*node.body]
    while own:  # statements of this function, without those of functions in it
        part = own.pop()
        if isinstance(part, ast.Return) and part.value is not None:
            return ""
        if isinstance(part, (ast.Yield, ast.YieldFrom)):
            return "it is a generator"
        if not isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            own += ast.iter_child_nodes(part)
    return "it returns nothing"


def _imported(file: Path) -> list[Path]:
    """Return the local modules that ``file`` imports, and those that they import, in a fixed order."""
    found: dict[Path, None] = {}
    waiting = [file]
    while waiting:
        source = waiting.pop()
        for folder, name in _imports(source):
            base = folder.joinpath(*name.split(".")) if name else folder
            for candidate in (base.with_suffix(".py"), base / "__init__.py", base.parent / "__init__.py"):
                if candidate.is_file() and candidate != file and candidate not in found:
                    found[candidate] = None
                    waiting.append(candidate)
    return sorted(found)


def _imports(source: Path) -> Iterator[tuple[Path, str]]:
    """Yield folder and dotted name of each module that ``source`` may import from its own folders."""
    roots = [source.parent, _package_root(source)]
    for node in ast.walk(_tree(source)):
        if isinstance(node, ast.Import):
            yield from ((root, alias.name) for alias in node.names for root in roots)
        elif isinstance(node, ast.ImportFrom):
            bases = [source.parents[node.level - 1]] if 0 < node.level <= len(source.parents) else roots
            for base in bases:
                if node.module:
                    yield base, node.module
                for alias in node.names:
                    yield base, f"{node.module}.{alias.name}" if node.module else alias.name


def _package_root(file: Path) -> Path:
    """Return the folder from which ``file`` is imported: the first above it without ``__init__.py``."""
    return next(folder for folder in file.parents if not (folder / "__init__.py").exists())
