"""Runs the command in this process where nothing else matters, and as a process where its ending does."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from torchgauge.cli.main import cli


@pytest.fixture(scope="session")
def invoke() -> Callable[..., Any]:
    """Run one command in this process."""
    runner = CliRunner()
    return lambda *arguments: runner.invoke(cli, list(arguments))


@pytest.fixture(scope="session")
def process() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run one command as a process of its own."""

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "torchgauge.cli.main", *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)

    return run


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory, process: Callable[..., Any]) -> Path:
    """A store with one run on the fake device."""
    path = tmp_path_factory.mktemp("cli") / "store"
    words = ("--device", "fake", "--config", "eager", "--models", "noop", "--measure-seconds", "0.1")
    done = process("run", "toy", *words, "--store", str(path), "--no-calibration")
    assert done.returncode == 0, done.stderr
    return path
