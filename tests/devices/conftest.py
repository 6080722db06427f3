"""Device extensions of every temper, made on the spot and loaded by real interpreters."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import torchgauge
from torchgauge.devices.probe import ProbeReport, probe

SOURCE = Path(torchgauge.__file__).resolve().parent.parent
NPUSIM = Path(__file__).resolve().parents[2] / "packages" / "npusim" / "src"


@pytest.fixture(autouse=True)
def _torch_or_skip(request: pytest.FixtureRequest) -> None:
    if request.node.get_closest_marker("torch") and importlib.util.find_spec("torch") is None:
        pytest.skip("torch is not installed")


def write_extension(folder: Path, name: str, body: str, target: str = "") -> Path:
    """A package whose entry point `import torch` loads; ``body`` is what its autoload function does."""
    folder.mkdir(parents=True, exist_ok=True)
    module = f"{name}_extension"
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    (folder / f"{module}.py").write_text(f"def autoload():\n{lines}\n", encoding="utf-8")
    information = folder / f"torch_{name}-1.2.3.dist-info"
    information.mkdir(exist_ok=True)
    (information / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: torch-{name}\nVersion: 1.2.3\n", encoding="utf-8"
    )
    value = target or f"{module}:autoload"
    (information / "entry_points.txt").write_text(f"[torch.backends]\n{name} = {value}\n", encoding="utf-8")
    return folder


@pytest.fixture(scope="session")
def make_extension() -> Callable[..., Path]:
    """Write an extension into a folder that a test puts on a search path."""
    return write_extension


@pytest.fixture
def extension(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], Path]:
    """Install an extension for the child interpreters of one test."""

    def install(name: str, body: str) -> Path:
        folder = write_extension(tmp_path / "site", name, body)
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(folder), str(SOURCE)]))
        return folder

    return install


@pytest.fixture(scope="session")
def npusim_path(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A search path on which the simulated accelerator is installed."""
    if not (NPUSIM / "torchgauge_npusim" / "__init__.py").exists():
        pytest.skip("the simulated accelerator is not in this checkout")
    folder = tmp_path_factory.mktemp("npusim")
    write_extension(folder, "npusim", "pass", target="torchgauge_npusim:autoload")
    return os.pathsep.join([str(folder), str(NPUSIM), str(SOURCE)])


@pytest.fixture(scope="session")
def npusim_report(npusim_path: str) -> ProbeReport:
    """A deep probe that found the simulated accelerator."""
    return probe(sys.executable, deep=True, environment={"PYTHONPATH": npusim_path})


@pytest.fixture(scope="session")
def worker() -> Callable[..., Any]:
    """Run a script in a process of its own; gives the JSON that it prints last."""

    def run(script: str, *arguments: str, path: str = str(SOURCE), **variables: str) -> Any:
        found = subprocess.run(
            [sys.executable, "-c", script, *arguments],
            env={**os.environ, "PYTHONPATH": path, **variables},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert found.returncode == 0, found.stderr
        return json.loads(found.stdout.splitlines()[-1])

    return run
