"""Models that processes compute together are held to what one process computes from the whole batch."""

from __future__ import annotations

import json
import os
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
    alone = {**os.environ, "OMP_NUM_THREADS": "1"}  # threads of two processes that wait for each other spin
    ranks = [
        subprocess.Popen([*words, str(rank), "2", str(tmp_path / "meet")], stdout=subprocess.PIPE, env=alone)
        for rank in range(2)
    ]
    said = [json.loads(each.communicate(timeout=120)[0]) for each in ranks]
    assert len(said) == 2
    assert [list(each["wrong"]) for each in said] == [["ddp", "fsdp2", "tensor_parallel"]] * 2
    for each in said:
        assert (each["ddp"], each["fsdp2"], each["tensor_parallel"], each["forward"]) == ("", "", "", "")
        for way, names in each["wrong"].items():
            for kind in ("grad", "change"):
                missed = [name for name in each["parameters"] if f"iteration0.{kind}.{name}" not in names]
                assert missed == [], (way, kind)
        assert each["share"] == pytest.approx(0.5, abs=0.01)


def test_each_parameter_has_a_gradient_that_rounding_does_not_reach() -> None:
    """And an update that its own rounding does not swallow; both are others for half of the batch."""
    import torch

    from torchgauge.harness.scenarios.training_steps import CHECKED_RATE
    from torchgauge.suites.distributed.parallel import network
    from torchgauge.suites.losses import TargetLoss

    sizes = {"blocks": 2, "width": 64, "heads": 4, "seq": 32}

    def gradients(dtype: Any, items: int) -> dict[str, Any]:
        module = network(sizes, seed=0).to(dtype)
        batch = torch.randn(4, sizes["seq"], sizes["width"], generator=torch.Generator().manual_seed(0))
        TargetLoss(0)(module(batch[:items].to(dtype))).backward()
        return {name: each.grad.double() for name, each in module.named_parameters()}

    exact, single, half = (
        gradients(torch.float64, 4),
        gradients(torch.float32, 4),
        gradients(torch.float64, 2),
    )
    weights = dict(network(sizes, seed=0).named_parameters())
    assert len(exact) > 8
    for name, gradient in exact.items():
        size = gradient.norm()
        assert (single[name] - gradient).norm() < 1e-4 * size, name
        assert (half[name] - gradient).norm() > 0.05 * size, name
        assert CHECKED_RATE * size > 100 * torch.finfo(torch.float32).eps * weights[name].norm(), name


def test_a_model_in_shards_is_a_case_with_the_peak_of_its_processes(sandbox: Any) -> None:
    """Timed as any other; a number of processes that the batch cannot be shared among is no error."""
    words = ("distributed", "--device", "cpu", "--models", "parallel-fsdp2")
    done = sandbox.measure(*words)
    assert done.returncode == 0, done.stderr
    (row,) = sandbox.rows()
    assert row.status is Status.PASS, row.reason
    (peak,) = (each for each in row.measurements if each.metric == "peak_memory")
    assert peak.samples
    assert "process with the highest peak" in peak.provenance
