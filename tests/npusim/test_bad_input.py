"""What a person or a vendor's package gets wrong ends in a status or a sentence with the reason and the fix.

Elsewhere: an extension without an entry point, one that raises, a hang (test_planted_faults.py);
operators that abort, a generator of samples that raises, a missing test package (tests/cli/test_ops.py,
tests/suites/ops).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.torch


def torchgauge(folder: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a verb with a store in ``folder``."""
    inherited = {name: text for name, text in os.environ.items() if not name.startswith("TORCHGAUGE_NPUSIM_")}
    store = ("--store", str(folder / "store"))
    return subprocess.run(
        [sys.executable, "-m", "torchgauge.cli.main", *words, *store, "--threads", "1"],
        env={**inherited, "OMP_NUM_THREADS": "1", **variables},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )


def test_a_misspelt_device_is_suggested_and_costs_one_probe(tmp_path: Path) -> None:
    """Exit 2 with the name that was meant; nothing is planned or written."""
    done = torchgauge(tmp_path, "check", "--device", "npusin", "--checks", "tensor.copy")
    assert done.returncode == 2, done.stderr
    assert "unknown device 'npusin'; did you mean npusim" in done.stderr
    assert not (tmp_path / "store").exists()


def test_a_misspelt_device_under_a_package_that_raises_says_both(tmp_path: Path) -> None:
    """The probe could not look for other devices; the root cause and the way around it are said."""
    done = torchgauge(
        tmp_path, "check", "--device", "gpu", "--tier", "smoke", TORCHGAUGE_NPUSIM_FAULT="raise_on_import"
    )
    assert done.returncode == 2, done.stderr
    assert "OSError: libnpusim_driver.so: cannot open shared object file" in done.stderr
    assert "TORCH_DEVICE_BACKEND_AUTOLOAD=0" in done.stderr


@pytest.mark.parametrize(
    ("device", "said"),
    [("npu", "device 'npu' is absent here: package "), ("npusim.3", "has no index 3 here: it has 1 device")],
)
def test_a_device_that_is_not_here_is_said_once_with_a_fix(tmp_path: Path, device: str, said: str) -> None:
    """There is nothing to examine: no row, and the exit code that nothing was checked."""
    done = torchgauge(tmp_path, "check", "--device", device, "--checks", "tensor.copy,device.index", "--json")
    assert done.returncode == 3, done.stderr
    assert said in done.stderr
    assert "try: " in done.stderr
    assert not [*tmp_path.rglob("runs")]


@pytest.mark.parametrize(
    ("words", "case"),
    [
        (("check", "--checks", "tensor.copy,numerics.pointwise_bfloat16,device.index"), "pointwise_bfloat16"),
        (("ops", "judge", "--ops", "abs,sigmoid,sign", "--dtype", "float32", "--samples", "2"), "sigmoid"),
    ],
)
def test_an_operator_that_ends_the_process_costs_one_row(
    tmp_path: Path, words: tuple[str, ...], case: str
) -> None:
    """It is a crash with its signal, and what stands beside it is judged."""
    done = torchgauge(
        tmp_path, *words, "--device", "npusim", "--json", TORCHGAUGE_NPUSIM_FAULT="abort_ops=aten::sigmoid"
    )
    assert done.returncode == 1, done.stderr
    data = json.loads(done.stdout)
    assert data["counts"] == {"pass": 2, "crash": 1}, done.stderr
    (unexpected,) = data["unexpected"]
    assert case in unexpected["case"]
    assert "SIGABRT" in unexpected["reason"]
