"""Looking at built sites as files, and making small stores with a long history."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any


def files_of(site: Path) -> dict[str, bytes]:
    """The content of every file by its name relative to the root."""
    return {str(p.relative_to(site)): p.read_bytes() for p in sorted(site.rglob("*")) if p.is_file()}


def generator() -> ModuleType:
    """The generator of the benchmark's store."""
    name = "dashboard_store"
    if name not in sys.modules:
        path = Path(__file__).parents[2] / "benchmarks" / f"{name}.py"
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return sys.modules[name]


def small_shape(**changes: Any) -> Any:
    """A store of a few cases; ``changes`` replace any field of its shape."""
    given = {"nights": 4, "devices": 2, "models": 3, "configurations": 2, "silent": 1, "steps": 2, **changes}
    return generator().Shape(**given)
