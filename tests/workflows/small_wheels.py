"""Wheels of one module, which pip installs without a network."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

_BACKEND = """\
import zipfile
def build_wheel(folder, *_):
    name = "project-1.0-py3-none-any.whl"
    about = "project-1.0.dist-info"
    with zipfile.ZipFile(f"{folder}/{name}", "w") as wheel:
        wheel.writestr("project.py", "")
        wheel.writestr(f"{about}/METADATA", "Metadata-Version: 2.1\\nName: project\\nVersion: 1.0\\n")
        wheel.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr(f"{about}/RECORD", "")
    return name
"""
PROJECT_FILES = MappingProxyType(
    {
        "backend.py": _BACKEND,
        "pyproject.toml": '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n',
    }
)
"""The files of a project of one module, which pip builds and installs without a network."""


def wheel(
    folder: Path,
    name: str,
    needs: str = "",
    more: Mapping[str, str] = MappingProxyType({}),
    version: str = "1.0",
) -> Path:
    """A wheel with one module, or with the files ``more`` by their paths in it."""
    path = folder / f"{name}-{version}-py3-none-any.whl"
    about = f"{name}-{version}.dist-info"
    needed = f"Requires-Dist: {needs}\n" if needs else ""
    files = {
        f"{about}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needed}",
        f"{about}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    files |= {place.replace("ABOUT", about): text for place, text in (more or {f"{name}.py": ""}).items()}
    with zipfile.ZipFile(path, "w") as archive:
        for file, text in {**files, f"{about}/RECORD": "".join(f"{file},,\n" for file in files)}.items():
            archive.writestr(file, text)
    return path
