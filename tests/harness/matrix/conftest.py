"""A package index in a folder: tiny wheels of any name and version, which pip really installs."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from torchgauge.harness.matrix.pip_tool import Pip


def wheel(folder: Path, name: str, version: str, *, needs: tuple[str, ...] = (), code: str = "",
          bulk: int = 0, size: int = 1) -> Path:  # fmt: skip
    """A wheel of one module called ``name`` that says its version, with ``bulk`` files of ``size`` bytes."""
    info = f"{name}-{version}.dist-info"
    metadata = [f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}"]
    metadata += [f"Requires-Dist: {need}" for need in needs]
    files = {
        f"{name}/__init__.py": code or f"__version__ = {version!r}\n",
        f"{info}/METADATA": "\n".join(metadata) + "\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    files |= {f"{name}/part{at}": "x" * size for at in range(bulk)}
    files[f"{info}/RECORD"] = "".join(f"{path},,\n" for path in (*files, f"{info}/RECORD"))
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for where, text in files.items():
            archive.writestr(where, text)
    return path


@pytest.fixture(scope="session")
def own_pip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The environment of pip, which takes seconds to make and is no different from test to test."""
    folder = tmp_path_factory.mktemp("pip")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PIP_NO_INDEX", "1")
        return Pip.in_folder(folder).python.parents[1]


@pytest.fixture
def folder(tmp_path: Path, own_pip: Path) -> Path:
    """A folder of environments that has its pip already."""
    found = tmp_path / "environments"
    found.mkdir()
    (found / "pip").symlink_to(own_pip)
    return found


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Adds wheels to the only place where pip looks; what torch takes for granted is there."""
    folder = tmp_path / "wheels"
    for name in ("numpy", "setuptools"):
        wheel(folder, name, "1.0")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    return lambda name, version, **more: wheel(folder, name, version, **more)
