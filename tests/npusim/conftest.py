"""Runs checks on the simulated device in child processes, so that pytest itself never imports torch.

A process can name its backend only once and a crash must not take the other
tests along; and one child runs a whole file of checks, because importing torch
takes seconds.
"""

from __future__ import annotations

import functools
import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

HERE = Path(__file__).parent
CHILD_TIMEOUT_S = 300

RunPython = Callable[..., "subprocess.CompletedProcess[str]"]
RunCheck = Callable[[str, str], None]


def run_child(
    *arguments: str, environment: Mapping[str, str] | None = None, timeout_s: float = CHILD_TIMEOUT_S
) -> subprocess.CompletedProcess[str]:
    """Run this interpreter with no fault but those in `environment`."""
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("TORCHGAUGE_NPUSIM_") and name != "TORCH_DEVICE_BACKEND_AUTOLOAD"
    }
    return subprocess.run(
        [sys.executable, *arguments],
        env={**inherited, "OMP_NUM_THREADS": "1", **(environment or {})},
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )


@functools.cache
def outcomes(group: str) -> tuple[dict[str, str], str]:
    """Run one file of checks once; return the outcome of each ("" is success) and how the child ended."""
    child = run_child(str(HERE / "checks" / "__main__.py"), group)
    lines = [json.loads(line) for line in child.stdout.splitlines() if line.startswith('{"check"')]
    ending = f"the child ended with status {child.returncode}\n{child.stderr[-4000:]}"
    return {line["check"]: line["error"] for line in lines}, ending


@pytest.fixture(scope="session", autouse=True)
def device_installed() -> None:
    """Skip this folder where torch or the simulated device is not installed."""
    for module in ("torch", "torchgauge_npusim"):
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"{module} is not installed")


@pytest.fixture
def python() -> RunPython:
    """Return a function that runs `python -c CODE` with an environment of faults."""
    return lambda code, timeout_s=CHILD_TIMEOUT_S, **environment: run_child(
        "-c", code, environment=environment, timeout_s=timeout_s
    )


@pytest.fixture
def check() -> RunCheck:
    """Return a function that fails the test unless the named check of a group succeeded in its child."""

    def run(group: str, name: str) -> None:
        results, ending = outcomes(group)
        error = results.get(name, f"the check did not report: {ending}")
        if error.startswith("SKIP "):
            pytest.skip(error.removeprefix("SKIP "))
        assert not error, error

    return run


@pytest.fixture
def without_entry() -> Callable[[Path], str]:
    """Return a function that makes a search path on which the device is installed without its entry point.

    What is installed is named by a folder of metadata; the first on the path with a name hides the others.
    """

    def make(folder: Path) -> str:
        information = folder / "torchgauge_npusim-0.1.0.dist-info"
        information.mkdir(parents=True)
        text = "Metadata-Version: 2.1\nName: torchgauge-npusim\nVersion: 0.1.0\n"
        (information / "METADATA").write_text(text, encoding="utf-8")
        inherited = os.environ.get("PYTHONPATH", "")
        return os.pathsep.join([str(folder), *([inherited] if inherited else [])])

    return make


@pytest.fixture
def by_name() -> Callable[[Path], Path]:
    """Return a function that writes an adapter whose session imports the device's package by name."""

    def make(folder: Path) -> Path:
        information = folder / "byname-1.0.dist-info"
        information.mkdir(parents=True)
        (information / "METADATA").write_text("Metadata-Version: 2.1\nName: byname\nVersion: 1.0\n")
        points = "[torchgauge.devices]\nbyname = byname_adapter:DEVICE\n"
        (information / "entry_points.txt").write_text(points, encoding="utf-8")
        (folder / "byname_adapter.py").write_text(
            """
from torchgauge.devices.device import DeviceDescriptor
from torchgauge.devices.privateuse1 import PrivateUse1Session

DEVICE = DeviceDescriptor("byname", "By name", "byname_adapter:open_session", "byname")

def open_session(name, index):
    import torchgauge_npusim
    torchgauge_npusim.autoload()
    return PrivateUse1Session(name, index)
""",
            encoding="utf-8",
        )
        return folder

    return make
