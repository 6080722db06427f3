"""Fixtures of the suites' tests: child processes, because the parent never imports torch."""

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

FOLDER = Path(__file__).parent


@pytest.fixture(scope="session")
def child() -> Callable[..., Any]:
    """A function that runs a script beside the tests in a child, single-threaded, and returns its JSON."""

    def run(script: str, *arguments: str, timeout_s: float = 300) -> Any:
        environment = {
            **os.environ,
            "PYTHONPATH": str(Path(torchgauge.__file__).parents[1]),
            "OMP_NUM_THREADS": "1",
            "MKL_NUM_THREADS": "1",
        }
        done = subprocess.run(
            [sys.executable, str(FOLDER / script), *arguments],
            env=environment,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-4000:]
        return json.loads(done.stdout.splitlines()[-1])

    return run


@pytest.fixture(scope="session")
def fake_torchbench() -> Any:
    """The module that makes a tiny repository laid out like TorchBench."""
    spec = importlib.util.spec_from_file_location("fake_torchbench", FOLDER / "fake_torchbench.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
