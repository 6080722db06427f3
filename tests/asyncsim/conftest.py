"""Runs checks on the asynchronous device in child processes, so that pytest itself never imports torch."""

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


def variables_of_a_child(**variables: str) -> dict[str, str]:
    """The variables of a process that has the device, with no fault or plan but those given."""
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("TORCHGAUGE_ASYNCSIM_", "TORCHGAUGE_NPUSIM_"))
        and name != "TORCH_DEVICE_BACKEND_AUTOLOAD"
    }
    chosen = {"TORCHGAUGE_SIMULATED_DEVICE": "asyncsim", "OMP_NUM_THREADS": "1"}
    return {**inherited, **chosen, **variables}


def run_child(
    *arguments: str, variables: Mapping[str, str] | None = None, timeout_s: float = CHILD_TIMEOUT_S
) -> subprocess.CompletedProcess[str]:
    """Run this interpreter with the device."""
    return subprocess.run(
        [sys.executable, *arguments],
        env=variables_of_a_child(**(variables or {})),
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
    """Skip this folder where torch or the device, which has to be compiled, is not installed."""
    for module in ("torch", "torchgauge_asyncsim"):
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"{module} is not installed")


@pytest.fixture(scope="session")
def environment() -> Callable[..., dict[str, str]]:
    """Return a function that gives the variables of a process with the device, and others."""
    return variables_of_a_child


@pytest.fixture(scope="session")
def child() -> RunPython:
    """Return a function that runs this interpreter with these arguments and the device."""
    return run_child


@pytest.fixture
def python() -> RunPython:
    """Return a function that runs `python -c CODE` with the device and an environment of faults."""
    return lambda code, timeout_s=CHILD_TIMEOUT_S, **variables: run_child(
        "-c", code, variables=variables, timeout_s=timeout_s
    )


@pytest.fixture
def check() -> RunCheck:
    """Return a function that fails the test unless the named check of a group succeeded in its child."""

    def run(group: str, name: str) -> None:
        results, ending = outcomes(group)
        error = results.get(name, f"the check did not report: {ending}")
        assert not error, error

    return run
