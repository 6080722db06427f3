"""Public names of a module that are imported when they are used first (PEP 562).

Why: importing torchgauge alone costs no torch and no pandas, and a worker that imports one name of the plugin
module needs no library of the parent's half.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_names(
    module: dict[str, Any], places: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` for a module with these globals.

    ``places`` maps each name to ``module:attribute``.
    """

    def getter(name: str) -> Any:
        if name not in places:
            raise AttributeError(f"module {module['__name__']!r} has no attribute {name!r}")
        place, _, attribute = places[name].partition(":")
        value = module[name] = getattr(import_module(place), attribute)
        return value

    return getter, lambda: sorted({*module, *places})
