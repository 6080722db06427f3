"""Models that processes compute together are held to what one process computes from the whole batch."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from torchgauge.records import Status

pytestmark = pytest.mark.torch
CHILD = Path(__file__).with_name("child_parallel.py")


def test_every_way_trains_as_one_process_does_and_a_wrong_one_is_found(tmp_path: Path) -> None:
    """Losses, gradients and changes of two steps; a process that trains alone has other gradients."""
    words = [sys.executable, "-W", "ignore", str(CHILD)]
    ranks = [
        subprocess.Popen([*words, str(rank), "2", str(tmp_path / "meet")], stdout=subprocess.PIPE)
        for rank in range(2)
    ]
    said = [json.loads(each.communicate(timeout=120)[0]) for each in ranks]
    assert len(said) == 2
    for each in said:
        assert (each["ddp"], each["fsdp2"], each["tensor_parallel"], each["forward"]) == ("", "", "", "")
        assert "iteration0.grad" in each["alone"]
        assert each["share"] == pytest.approx(0.5, abs=0.01)


@pytest.mark.long
def test_a_model_in_shards_is_a_case_with_the_peak_of_its_processes(sandbox: Any) -> None:
    """Timed as any other; a number of processes that the batch cannot be shared among is no error."""
    words = ("distributed", "--device", "cpu", "--models", "parallel-fsdp2")
    done = sandbox.measure(*words)
    assert done.returncode == 0, done.stderr
    (row,) = sandbox.rows()
    assert row.status is Status.PASS, row.reason
    (peak,) = (each for each in row.measurements if each.metric == "peak_memory")
    assert peak.samples
    assert "process that needs most" in peak.provenance
