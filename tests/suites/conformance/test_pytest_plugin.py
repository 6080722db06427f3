"""The checks under pytest, as a vendor's own continuous integration runs them."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

import torchgauge

SOURCE = Path(torchgauge.__file__).resolve().parent.parent
pytestmark = pytest.mark.torch


@pytest.fixture
def run(tmp_path: Path):
    """Run ``pytest --pyargs`` in a folder of its own; the plugin is named where it is not installed."""
    if importlib.util.find_spec("torch") is None:
        pytest.skip("torch is not installed")
    (tmp_path / "empty.ini").write_text("[pytest]\n")
    known = any(each.value == "torchgauge.pytest_plugin" for each in metadata.entry_points(group="pytest11"))
    plugin = () if known else ("-p", "torchgauge.pytest_plugin")
    words = ("-m", "pytest", *plugin, "-p", "no:cacheprovider", "-c", "empty.ini", "-rs", "-q")

    def start(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, *words, "--pyargs", "torchgauge.suites.conformance", *arguments],
            env={**os.environ, "PYTHONPATH": str(SOURCE), "OMP_NUM_THREADS": "1"},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=280,
            check=False,
        )

    return start


def test_checks_pass_or_are_skipped_with_their_reason(run) -> None:
    """On the host the checks of tensors pass, and those of streams say why they do not apply."""
    done = run("--torchgauge-device", "cpu", "-k", "tensor. or stream.")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "passed" in done.stdout
    assert "the host runs operators in order and has no streams" in done.stdout


def test_a_device_that_is_not_there_ends_the_run(run) -> None:
    """The run does not pass by skipping everything."""
    done = run("--torchgauge-device", "cpuu", "-k", "tensor.copy")
    assert done.returncode == 4, done.stdout + done.stderr
    assert "unknown device 'cpuu'" in done.stdout + done.stderr


def test_without_a_device_the_checks_are_skipped(run) -> None:
    """Somebody who collects the whole package sees what to pass."""
    done = run("-k", "tensor.copy")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "--torchgauge-device NAME" in done.stdout
