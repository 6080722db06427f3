"""The suite of operators judges as PyTorch's own test class does."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

REFEREE = Path(__file__).resolve().parents[2] / "benchmarks" / "ops_referee.py"
NEEDED = ("torch", "expecttest", "torchgauge_npusim")


@pytest.mark.full
@pytest.mark.torch
@pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in NEEDED), reason=f"needs {', '.join(NEEDED)}"
)
def test_two_hundred_entries_have_the_referees_verdict() -> None:
    """Entries drawn by the stated seed on the simulated device: each verdict is upstream's."""
    done = subprocess.run(
        [sys.executable, str(REFEREE), "--device", "npusim", "--entries", "200", "--threads", "1"],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=580,
        check=False,
    )
    assert done.stdout, done.stderr
    found = json.loads(done.stdout)
    assert found["different"] == []
    assert found["equal"] == found["entries"] == 200
    assert found["referee"]["pass"] > 100
    assert found["referee"]["fail"] >= 1
