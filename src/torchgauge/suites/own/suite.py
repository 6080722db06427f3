"""A Python file as a suite: each of its functions that returns a module with its inputs is a model.

``torchgauge run mine.py`` lists the functions from the syntax tree; only workers import the file. A suite is
named by the path of its file below the repository's root, with dots between the folders, so that a series
goes on wherever the command is typed. Selections and plans hold the path itself.
"""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from torchgauge.errors import UsageError
from torchgauge.records import Group
from torchgauge.suites.model_code import MODEL_CODE, builder_file, code_digest, package_root
from torchgauge.suites.own.revision import repository_of, state_of, tree_of
from torchgauge.suites.suite import ModelEntry, Unavailable

TAKEN = ("batch", "dtype", "device", "seed")
"""What a function may take, by name."""
LOSS = "loss"
"""The function of a file that maps the output and the inputs to a loss."""
TIERS = ("smoke", "standard", "full")
EXAMPLE = "def model(): return torch.nn.Linear(8, 8), (torch.randn(2, 8),)"
INSTALLED = ("site-packages", "dist-packages")
_MODULE = re.compile(r"([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*):([A-Za-z_]\w*)")
RESERVED = re.compile(r"[^\w.+-]")
"""Characters that separate the parts of a case id, or stand for others in a pattern."""


def is_own(word: str) -> bool:
    """Return whether ``word`` names a file or an importable module, and not a suite by its name."""
    path = word.endswith((".py", ".ipynb", "/")) or word.startswith((".", "/", "~"))
    return path or "::" in word or ".py:" in word or bool(_MODULE.fullmatch(word))


def word_of(group: Group) -> str:
    """Return the word that loads the suite of ``group``: the path of its file, or its name."""
    recipe = group.recipe
    if not is_own(group.workload.suite):
        return str(recipe.get("word", group.workload.suite))
    if "tree" in recipe:
        return str(
            Path(str(recipe["repository"]), Path(str(recipe["file"])).relative_to(str(recipe["tree"])))
        )
    return str(recipe["file"])


def resolve(word: str) -> tuple[OwnSuite, str]:
    """Return the suite of the file that ``word`` names, and the model in it; empty for all models.

    ``word`` is ``FILE.py``, ``FILE.py::function``, ``package.module:function`` or the name of such a suite.
    Raises :class:`UsageError` where there is no such file, or it defines no such function.
    """
    text, _, function = word.rpartition("::") if not word.endswith(".py") and "::" in word else (word, "", "")
    if not text:
        raise UsageError(f"{word}: no file name before the colons", hint=f"mine.py{word}")
    path, colon, named = word.rpartition(".py:")
    if colon and "::" not in word and Path(f"{path}.py").is_file():
        raise UsageError(f"{word}: `::` must separate file and function", hint=f"{path}.py::{named}")
    if module := _MODULE.fullmatch(word):
        text, function = module[1], module[2]
        file = _module_file(text)
        if file is None:
            raise UsageError(
                f"{word}: module {text} was not found in this folder or in this environment",
                hint="use the path of the file, for example src/acme/models.py::encoder",
            )
    else:
        file = _file(text)
    suite = OwnSuite(file)
    names = [model.name for model in suite._functions[0]]
    if function and function not in names:
        why = dict(suite.others).get(function, f"{text} does not define it")
        hint = f"{text}{'::' if module is None else ':'}{names[0]}" if names else EXAMPLE
        raise UsageError(f"{word}: {function} is not a model: {why}", hint=hint)
    return suite, function


@dataclass(frozen=True)
class OwnSuite:
    """The functions of ``file``, which is read and never imported in this process.

    As one side of a comparison of revisions it lies in ``tree``, which holds a revision of ``repository``.
    """

    file: Path
    tree: Path | None = None
    repository: Path | None = None
    state: str = ""
    builder: str = "torchgauge.suites.own.models:build"
    preload: tuple[str, ...] = ()
    install_hint: str = "pip install the packages that the file imports"
    unavailable: Unavailable | None = None
    environment: dict[str, str] = field(default_factory=dict)

    @cached_property
    def name(self) -> str:
        """Return the path of the file below the root of its repository or packages, with dots for slashes."""
        tops = (folder for folder in self.file.parents if _is_top(folder))
        top = self.tree or next(tops, package_root(self.file))
        return RESERVED.sub("_", ".".join(self.file.relative_to(top).parts))

    @property
    def doc(self) -> str:
        """Return one sentence for ``torchgauge suites``."""
        return f"The functions of {self.file}."

    @cached_property
    def digest(self) -> str:
        """Sixteen hex digits over the file and the local modules that it imports."""
        # The digest covers the file and the local modules that it imports, directly or not.
        found: dict[Path, None] = {}
        waiting = [self.file]
        while waiting:
            source = waiting.pop()
            for folder, name in _imports(source):
                base = folder.joinpath(*name.split(".")) if name else folder
                for candidate in (base.with_suffix(".py"), base / "__init__.py", base.parent / "__init__.py"):
                    if candidate.is_file() and candidate != self.file and candidate not in found:
                        found[candidate] = None
                        waiting.append(candidate)
        return code_digest([self.file, *sorted(found)])

    @property
    def notes(self) -> tuple[str, ...]:
        """Return which public functions are not models, and why."""
        others = [f"{self.file.name}: {name} is not a model: {why}" for name, why in self.others]
        return (*((self.state,) if self.state else ()), *others)

    def at(self, commit: str) -> OwnSuite:
        """Return the suite of the same file in ``commit`` of its repository; empty for the files as they are.

        Raises :class:`UsageError` where the file is in no repository, or ``commit`` does not have it.
        """
        root = repository_of(self.file)
        tree, path = tree_of(root, commit) if commit else root, self.file.relative_to(root)
        if not (tree / path).is_file():
            hint = f"git -C {root} log --oneline -- {path}"
            raise UsageError(f"{path} is not in revision {commit[:12]} of {root}", hint=hint)
        state = "" if commit else state_of(root)
        text = (
            f"{root} is measured with its uncommitted changes ({state}); revisions contain only tracked files"
            if state
            else ""
        )
        return replace(self, file=tree / path, tree=tree, repository=root, state=text)

    def models(self) -> tuple[ModelEntry, ...]:
        """Return an entry for each function that can be called; raises :class:`UsageError` for none."""
        if not self._functions[0]:
            found = (
                "; ".join(f"{name}: {why}" for name, why in self.others)
                or "it defines no function at its top level"
            )
            raise UsageError(
                f"{self.file}: no model: {found}",
                hint=EXAMPLE,
            )
        return self._functions[0]

    @property
    def others(self) -> tuple[tuple[str, str], ...]:
        """Return the name of each public function that is not a model, and why."""
        return self._functions[1]

    def code(self, model: str, recipe: dict[str, object], builder: str) -> dict[str, str]:
        """Return the fact that names the code of each model: the file with its local imports."""
        return {MODEL_CODE: self.digest}

    @property
    def _place(self) -> dict[str, object]:
        return {"tree": str(self.tree), "repository": str(self.repository)} if self.tree else {}

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
        pairs: list[tuple[ast.arg, ast.expr | None]] = [
            *zip(reversed(named), reversed(arguments.defaults), strict=False),
            *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True),
        ]
        for argument, default in pairs:
            value = getattr(default, "value", None)
            if argument.arg == "batch" and isinstance(value, int) and value > 0:
                batch = value
        taken = [argument.arg for argument in (*named, *arguments.kwonlyargs) if argument.arg in TAKEN]
        return ModelEntry(
            name=node.name,
            tiers=TIERS,
            batch={"inference": batch, "training": batch},
            recipe={"file": str(self.file), "function": node.name, "takes": taken, **self._place},
        )


def _file(text: str) -> Path:
    """Return the file that ``text`` names: a path, or the name of a suite of this kind."""
    path = Path(text).expanduser()
    if path.is_dir():
        files = sorted(file.name for file in path.glob("*.py") if file.is_file())
        hint = f"torchgauge run {path / files[0]}" if files else "use the path of a Python file"
        raise UsageError(f"{text} is a folder{'' if files else ' without Python files'}", hint=hint)
    if path.is_file() and path.suffix != ".py":
        raise UsageError(f"{text} is not a Python file", hint="use a file whose name ends in .py")
    if path.is_file():
        return path.resolve()
    here = Path.cwd()
    pattern = text.removesuffix(".py").replace(".", "/").replace("_", "?") + ".py"
    for start in dict.fromkeys((here, next(filter(_is_top, here.parents), here))):
        for file in start.glob(pattern.lstrip("/")):
            if OwnSuite(file).name == text:
                return file.resolve()
    if (installed := _module_file(text.removesuffix(".py"))) and OwnSuite(installed).name == text:
        return installed
    files = [file.name for file in path.parent.glob("*.py")]
    near = difflib.get_close_matches(path.with_suffix(".py").name, files, n=1, cutoff=0.75)
    hint = f"torchgauge run {path.parent / near[0]}" if near else f"ls {path.parent}"
    raise UsageError(f"{text}: there is no such file", hint=hint)


def _is_top(folder: Path) -> bool:
    """Return whether names of suites are relative to ``folder``: it holds a repository, or packages."""
    return (folder / ".git").exists() or folder.name in INSTALLED


def _module_file(module: str) -> Path | None:
    """Return the source of ``module`` in this folder or in the environment, without importing it."""
    here = Path.cwd().joinpath(*module.split("."))
    for file in (here.with_suffix(".py"), here / "__init__.py"):
        if file.is_file():
            return file.resolve()
    try:
        found = builder_file(f"{module}:")
    except (ImportError, ValueError):
        return None
    return found.resolve() if found is not None and found.suffix == ".py" else None


def _tree(file: Path) -> ast.Module:
    try:
        return ast.parse(file.read_bytes(), str(file))
    except SyntaxError as error:
        place = f"{file}, line {error.lineno}" if error.lineno else str(file)
        raise UsageError(f"{place}: {error.msg}", hint=f"python {file}, which shows the line") from error
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
        return f"it requires {', '.join(unknown)}; a model may require only {', '.join(TAKEN)}"
    if isinstance(node, ast.AsyncFunctionDef):
        return "it is a coroutine"
    own: list[ast.AST] = [*node.body]
    while own:  # statements of this function, without those of functions in it
        part = own.pop()
        if isinstance(part, ast.Return) and part.value is not None:
            return ""
        if isinstance(part, (ast.Yield, ast.YieldFrom)):
            return "it is a generator"
        if not isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            own += ast.iter_child_nodes(part)
    return "it returns nothing"


def _imports(source: Path) -> Iterator[tuple[Path, str]]:
    """Yield folder and dotted name of each module that ``source`` may import from its own folders."""
    roots = [source.parent, package_root(source)]
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
