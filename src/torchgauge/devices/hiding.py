"""Makes installed packages invisible to this process, as if they had never been installed.

Worker side, standard library only: the probe's child loads this file by its path.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from importlib import metadata
from importlib.abc import MetaPathFinder
from typing import Any

# Relative, as the probe's child loads this file under another package name.
from . import installed


def hide(packages: Iterable[str]) -> None:
    """Hide distributions: their metadata (thus their entry points) and whatever they can import.

    To be called before they are imported, in a process that serves for nothing else.
    """
    names = {installed.plain(name) for name in packages}
    modules = {module for name in names for module in _modules(name)}
    # Two packages may name the same function: an editable copy beside an installed one.
    names |= {
        installed.plain(item["package"])
        for item in installed.extensions()
        if item["value"].partition(":")[0].partition(".")[0] in modules
    }
    discover = metadata.Distribution.discover

    def visible(_cls: type[metadata.Distribution], /, **search: Any) -> Iterator[metadata.Distribution]:
        return (
            each for each in discover(**search) if installed.plain(each.metadata["Name"] or "") not in names
        )

    metadata.Distribution.discover = classmethod(visible)  # type: ignore[assignment]
    sys.meta_path.insert(0, _Nowhere(modules))


class _Nowhere(MetaPathFinder):
    """Says for the hidden modules what Python says for any that is not there."""

    def __init__(self, modules: set[str]) -> None:
        self._modules = modules

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: Any = None) -> None:
        if fullname.partition(".")[0] in self._modules:
            raise ModuleNotFoundError(f"No module named {fullname!r} (it is hidden)", name=fullname)


def _modules(package: str) -> set[str]:
    """Names of the top-level modules of a distribution, editable ones included."""
    try:
        distribution = metadata.distribution(package)
    except metadata.PackageNotFoundError:
        return set()
    points = {point.value.partition(":")[0].partition(".")[0] for point in distribution.entry_points}
    files = {file.parts[0] for file in distribution.files or () if file.suffix == ".py"}
    return {name.removesuffix(".py") for name in (points | files) if not name.startswith("_")}
