"""Kernels of a device that compute on the host without PyTorch's fallback: found by their copies."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from torchgauge.records import Modifier, Result, Status

sys.path.insert(0, str(Path(__file__).parent))
from simulated_run import measure

pytestmark = pytest.mark.torch


def row_with(folder: Path, fault: str, *words: str) -> Result:
    """The row of a small model on a device with ``fault``; it passes, by whichever path it ran."""
    done = measure(folder, fault, "toy/mlp", "--no-calibration", *words)
    row = done.row()
    assert row.status is Status.PASS, done.text
    return row


@pytest.mark.parametrize(
    ("fault", "mode", "names"),
    [
        ("host_kernels=aten::relu", "inference", "aten::relu"),
        (
            "host_kernels=aten::*relu*+aten::threshold_backward",
            "training",
            "aten::relu, aten::threshold_backward",
        ),
    ],
)
def test_kernels_that_compute_on_the_host_are_named(
    tmp_path: Path, fault: str, mode: str, names: str
) -> None:
    """Such a case is degraded, as one that fell back is: it is no pass of the device."""
    row = row_with(tmp_path, fault, "--mode", mode)
    assert Modifier.DEGRADED in row.modifiers
    facts = dict(row.facts)
    assert facts["host_kernels"] == names
    assert "ran on the host" in str(facts["degraded"])
    assert f"kernels of the device that copy to the host and back: {names}" in str(facts["degraded"])


def test_launching_is_no_host_execution(tmp_path: Path) -> None:
    """A step that keeps the host busy and leaves no trace accuses nobody: it cannot be told, in words."""
    row = row_with(tmp_path, "", "--mode", "training")
    assert Modifier.DEGRADED not in row.modifiers
    said = str(dict(row.facts)["host_execution"])
    assert said.startswith("unknown: the host was busy for ")
    assert said.endswith("the profile does not show whether it launched kernels, waited or computed")


def test_a_host_that_waits_did_not_compute(tmp_path: Path) -> None:
    """Where the device takes its time and the host is idle meanwhile, the row says so."""
    row = row_with(tmp_path, "kernel_us=20000")
    told = str(dict(row.facts)["host_execution"])
    assert told.startswith("less than half of the step: the host was busy for ")
