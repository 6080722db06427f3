"""Which code a model is built from: digests of its files, as rows, plans and trends name it.

Model code is a part of the environment that has no version of its own. Data folders and weights are not code.
Standard library only.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from torchgauge.records import Group
from torchgauge.suites.lending import as_lender_knows, lender
from torchgauge.suites.suite import Suite

MODEL_CODE, CHECKOUT = "model_code", "checkout"
"""Facts of a row: the digest of the model's files, and the commit of the checkout, where there is one."""
LIBRARY, SHADOWED = "library.", "shadowed"
"""Facts of a row: each imported library's version, digest and place, and modules that hide other copies."""
KINDS = (".py", ".yaml", ".yml", ".json", ".txt", ".cfg")
LARGEST_BYTES = 1 << 18
"""A larger file is data, unless it is Python."""


def code_of(suite: Suite, group: Group) -> dict[str, str]:
    """Return the facts that name the code of the model of ``group``, which ``suite`` lists."""
    suite = lender(group.recipe) or suite
    workload, recipe = as_lender_knows(group.workload, group.recipe)
    file = getattr(suite, "source", "") or builder_file(suite.builder)
    builder = _builder_code(file) if file else ""
    code = getattr(suite, "code", lambda *_: {MODEL_CODE: builder})
    facts: dict[str, str] = code(workload.model, recipe, builder)
    return facts


def named_code(facts: Mapping[str, object]) -> str:
    """Return the digest of a row's model code and the libraries of that model; empty where it has none."""
    own = [f"{LIBRARY}{name}" for name in ("diffusers", "timm", "torchaudio", "torchvision", "transformers")]
    return " ".join(str(facts[name]) for name in (MODEL_CODE, *own) if name in facts)


def digests_of(suites: Iterable[Suite], groups: Sequence[Group]) -> dict[str, str]:
    """Return the digest of the data of each suite and lender by name, and of the code by ``suite/model``."""
    named = {each.name: each for each in suites}
    lenders = [each for group in groups if (each := lender(group.recipe)) is not None]
    models = {f"{group.workload.suite}/{group.workload.model}": group for group in groups}
    return {each.name: each.digest for each in (*lenders, *named.values())} | {
        model: code_of(named[group.workload.suite], group).get(MODEL_CODE, "")
        for model, group in models.items()
        if group.workload.suite in named
    }


@cache
def builder_file(builder: str) -> Path | None:
    """Return the source of the module of ``builder`` without importing it; None where there is none."""
    top, *rest = builder.partition(":")[0].split(".")
    spec = find_spec(top) if top else None
    if spec is None or not rest:
        return None if spec is None or spec.origin is None else Path(spec.origin)
    places = [Path(root, *rest) for root in spec.submodule_search_locations or ()]
    files = [file for place in places for file in (place.with_suffix(".py"), place / "__init__.py")]
    return next((file for file in files if file.is_file()), None)


@cache  # a host imports it once for all models
def _builder_code(file: str | Path) -> str:
    return code_digest([Path(file)])


def package_root(file: Path) -> Path:
    """Return the folder from which ``file`` is imported: the first above it without ``__init__.py``."""
    return next(folder for folder in file.parents if not (folder / "__init__.py").exists())


def code_digest(roots: Iterable[Path], *more: str) -> str:
    """Return sixteen hex digits over ``more`` and the code in ``roots``, which are files or folders."""
    hasher = hashlib.sha256(repr(more).encode())
    for root in roots:
        for file in [root] if root.is_file() else _files(root):
            hasher.update(f"{file.relative_to(root.parent)}\0{file.stat().st_size}\0".encode())
            hasher.update(file.read_bytes())
    return hasher.hexdigest()[:16]


def _files(root: Path) -> list[Path]:
    """Return the files of code in ``root``; of folders called data and hidden ones, Python files alone."""
    files = []
    for folder, inner, names in os.walk(root):
        inner[:] = [name for name in inner if name not in {".git", "__pycache__"}]
        parts = Path(folder).relative_to(root).parts
        kinds = KINDS[:1] if any(part == "data" or part[0] == "." for part in parts) else KINDS
        files += [Path(folder, name) for name in names if name.endswith(kinds)]
    return sorted(file for file in files if file.suffix == ".py" or file.stat().st_size <= LARGEST_BYTES)
