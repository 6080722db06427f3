"""Third-party packages that take part in a compilation, with lowerings, passes, code generators or back ends.

Inductor's cache keys contain the graph and torch's own files, but nothing of these packages. So a cache that
outlives a version of such a package would return code of the old version.
"""

from __future__ import annotations

import hashlib
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from types import CellType, FunctionType, MethodType
from typing import Any

from torchgauge.devices.library import library

_TABLES = {
    "torch._inductor.lowering": ("lowerings",),
    "torch._inductor.decomposition": ("decompositions",),
    "torch._inductor.codegen.common": ("device_codegens", "custom_backend_passes"),
}
"""Tables of inductor, by module, in which third-party packages register parts of a compiler."""
_PASSES = "torch._inductor.fx_passes"
"""The package whose modules contain tables of patterns, which third-party packages extend."""
_DESCENDED = frozenset({"PatternMatcherPass", "PatternEntry", "DeviceCodegen"})
"""Classes of inductor whose objects hold functions of other packages."""
_TORCHS = frozenset({"torch", "functorch", "triton", "sympy", "numpy", *sys.stdlib_module_names})
"""Packages that inductor's cache keys cover, or that generate no code."""
_MAIN = "__main__"
_LARGE_BYTES = 4 << 20
"""Size of a file from which on its size and time are compared instead of its contents, to save time."""


class UntellableError(Exception):
    """A function that is registered with the compiler comes from no file."""


def compiler_parts(backend: str) -> str:
    """Return name, version and digest of each package that takes part when ``backend`` compiles.

    Raises :class:`UntellableError` for code that lies in no file.
    """
    roots = {_package(module) for module in _modules(_registered(backend))}
    return "; ".join(sorted(roots))


def _registered(backend: str) -> Iterator[Any]:
    """Yield what packages have registered with dynamo and inductor, as far as these are imported."""
    common = sys.modules.get("torch._inductor.codegen.common")
    with suppress(Exception):  # a device whose generator cannot be made has none
        if common is not None:
            common.init_backend_registration()
    for name, tables in _TABLES.items():
        yield [getattr(sys.modules.get(name), table, None) for table in tables]
    for name in [name for name in sys.modules if name.startswith(_PASSES)]:
        yield [value for value in vars(sys.modules[name]).values() if not callable(value)]
    config = sys.modules.get("torch._inductor.config")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # settings that are deprecated
        yield [getattr(config, name, None) for name in getattr(config, "_config", {})]
    registry = sys.modules.get("torch._dynamo.backends.registry")
    with suppress(Exception):  # compilation itself reports an unknown back end
        if registry is not None:
            yield registry.lookup_backend(backend)


def _modules(parts: Iterable[Any]) -> set[str]:
    """Return the modules of all functions and classes among and below ``parts``, except torch's."""
    pending, seen, modules = list(parts), set[int](), set[str]()
    while pending:
        part = pending.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        kind = type(part)
        if isinstance(part, Mapping):
            pending += part.values()
        elif isinstance(part, (list, tuple, set, frozenset)):
            pending += part
        elif isinstance(part, partial):
            pending += [part.func, *part.args, *part.keywords.values()]
        elif isinstance(part, MethodType):
            pending += [part.__func__, part.__self__]
        elif isinstance(part, FunctionType):
            modules |= {part.__module__} - {None}  # torch writes functions of its own without one
            pending += [cell.cell_contents for cell in part.__closure__ or () if cell != CellType()]
            pending.append(vars(part).get("__wrapped__"))
        else:
            modules |= {base.__module__ for base in (part if isinstance(part, type) else kind).__mro__}
            if _DESCENDED.intersection(base.__name__ for base in kind.__mro__):
                pending += vars(part).values()
    return {name for name in modules if name.partition(".")[0] not in _TORCHS}


@cache
def _package(module: str) -> str:
    """Return name, version and digest of the package that ``module`` belongs to."""
    parts = module.split(".")
    for count in range(1, len(parts) + 1):
        name = ".".join(parts[:count])
        file = getattr(sys.modules.get(name), "__file__", None)
        if name != _MAIN and file is not None:
            break
    else:
        raise UntellableError(f"module {module} has no file")
    distribution = library(parts[0])
    source = Path(file).parent if hasattr(sys.modules[name], "__path__") else Path(file)
    files = sorted(source.rglob("*")) if source.is_dir() else [source]
    text = hashlib.sha256()
    for path in files:
        if path.is_file() and "__pycache__" not in path.parts:
            status = path.stat()
            small = status.st_size < _LARGE_BYTES
            contents = path.read_bytes() if small else f"{status.st_size} {status.st_mtime_ns}".encode()
            text.update(f"{path.relative_to(source.parent)}\0{len(contents)}\0".encode() + contents)
    return " ".join(filter(None, (name, distribution and distribution.version, text.hexdigest()[:12])))
