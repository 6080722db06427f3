"""What must be equal wherever groups of one plan are measured, and how two places differ in it."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path

import torchgauge
from torchgauge.records import Plan, from_plain

PLUGINS = "torchgauge."
"""How the groups of entry points of third parties' plugins begin."""


def facts() -> dict[str, str]:
    """What this interpreter is: Python, torch, torchgauge to the byte, and the plugins beside it."""
    return {
        "python": platform.python_version(),
        "torch": _version("torch"),
        "torchgauge": f"{torchgauge.__version__} ({package_digest()})",
        "plugins": ", ".join(_plugins()) or "none",
    }


def package_digest(root: Path = Path(torchgauge.__file__).parent) -> str:
    """Sixteen hex digits over every file of the package that a run may read."""
    found = hashlib.sha256()
    for path in sorted(root.rglob("*")):
        if path.is_file() and path.suffix != ".pyc":
            found.update(f"{path.relative_to(root)}\0{path.stat().st_size}\0".encode())
            found.update(path.read_bytes())
    return found.hexdigest()[:16]


def plan_digest(plain: Mapping[str, object]) -> str:
    """The digest that this torchgauge has for the plan ``plain``."""
    return from_plain(Plan, plain).digest


def differences(there: Mapping[str, str], here: Mapping[str, str]) -> list[str]:
    """``torch 2.12.0 instead of 2.13.0`` for each fact of ``here`` that is another one ``there``."""
    return [
        f"{name} {there.get(name, 'unknown')} instead of {value}"
        for name, value in here.items()
        if there.get(name) != value
    ]


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "none"


def _plugins() -> list[str]:
    found: dict[str, str] = {}
    for each in metadata.distributions():  # the first of a name is the one that is imported
        if any(point.group.startswith(PLUGINS) for point in each.entry_points):
            found.setdefault(each.name, each.version)
    return [f"{name} {version}" for name, version in sorted(found.items())]
