"""What young back ends get wrong is found and named by `check` and `ops`; a healthy twin is not accused."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from test_planted_faults import Planted, assert_named, deviations, run_check

pytestmark = pytest.mark.torch

SIX = "own_events,copy_drops_tail=h2d,wrong_autocast_dtype,ignored_index,oom_is_runtime_error"
TOGETHER = {
    f"{SIX},after_fork=wrong": (
        Planted(
            "tensor.copy_large", "error", "131,075 elements, host to device, is incomplete: element 131072"
        ),
        Planted(
            "device.index", "error", "npu:1 was requested, but the tensor is on npu:0: the index is ignored"
        ),
        Planted("errors.no_such_index", "error", "npu:9 gave a tensor on npu:0: the index is ignored"),
        Planted("errors.out_of_memory", "error", "out of memory raises RuntimeError instead of torch.OutOf"),
        Planted("errors.shared_over_fork", "error", "gets wrong values without an error"),
        Planted("amp.bfloat16", "error", "to bfloat16 returns torch.float16"),
        Planted("amp.available", "error", "to bfloat16 returns torch.float16"),
    ),
    "own_event_query_never,copy_drops_tail=d2h,after_fork=hang": (
        Planted("event.own", "error", "torch.npu.Event.query() is False after synchronize()"),
        Planted("tensor.copy_large", "error", "131,075 elements, device to host, is incomplete"),
        Planted("errors.shared_over_fork", "error", "uses a tensor of its parent hangs"),
    ),
    "own_events,copy_drops_tail=d2d,after_fork=crash": (
        Planted("tensor.copy_large", "error", "131,075 elements, device to device, is incomplete"),
        Planted("errors.shared_over_fork", "error", "uses a tensor of its parent ends with -6"),
    ),
}
"""Faults that do not hide each other, with what must be said of them."""
CHECKS = ",".join(sorted({each.check for found in TOGETHER.values() for each in found}))


@pytest.mark.parametrize("faults", TOGETHER)
def test_faults_are_found_and_named(tmp_path: Path, faults: str) -> None:
    """Each has a row that says what is wrong, and nothing else deviates unexpectedly."""
    done, data = run_check(tmp_path, "--device", "npu", "--checks", CHECKS, faults=faults)
    found = deviations(data)
    for planted in TOGETHER[faults]:
        assert_named(found, planted)
    named = {each.check for each in TOGETHER[faults]}
    wrong = {check for check, (status, _) in found.items() if status != "unsupported"}
    assert wrong - named <= {"amp.float16"}
    assert done.returncode == 1, done.stderr


def test_a_healthy_twin_is_not_accused(tmp_path: Path) -> None:
    """Also one with events of its own, and one that refuses a forked child."""
    faults = "own_events,after_fork=refuse"
    done, data = run_check(tmp_path, "--device", "npu", "--checks", CHECKS, faults=faults)
    assert (done.returncode, deviations(data)) == (0, {}), done.stderr


OPERATORS = "nn.functional.gelu,exp,sqrt,erf,tensor_split,narrow"
SPOILED = "changes_input=aten::gelu,ignores_expanded=aten::exp,drops_tail=aten::sqrt,fallback_ops=aten::erf"


def run_ops(folder: Path, faults: str) -> tuple[int, dict[str, dict[str, Any]]]:
    """Exit code, and status, reason and facts of each case by `operator:variant`."""
    inherited = {name: text for name, text in os.environ.items() if not name.startswith("TORCHGAUGE_NPUSIM_")}
    fixed = ("--dtype", "float32", "--samples", "4", "--store", str(folder / "store"), "--threads", "1")
    done = subprocess.run(
        [
            *(sys.executable, "-m", "torchgauge", "ops", "judge", "--device", "npu", "--ops", OPERATORS),
            *("--variant", "forward,expanded,large", *fixed),
        ],
        env={
            **inherited,
            "OMP_NUM_THREADS": "1",
            "TORCHGAUGE_NPUSIM_NAME": "npu",
            "TORCHGAUGE_NPUSIM_FAULT": faults,
        },
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    (journal,) = (folder / "store" / "runs").glob("*/journal.jsonl")
    results = [each for each in map(_result, journal.read_text("utf-8").splitlines()) if each]
    assert results, done.stderr
    rows = {
        f"{each['case']['workload']['model']}:{each['case']['workload']['mode']}": {
            "status": each["status"],
            "reason": each["reason"],
            **dict(each["facts"]),
        }
        for each in results
    }
    return done.returncode, rows


def _result(line: str) -> dict[str, Any] | None:
    found = next((value for value in json.loads(line).values() if isinstance(value, dict)), {})
    return found if "case" in found and "status" in found else None


def test_operators_that_go_wrong_are_named(tmp_path: Path) -> None:
    """An input that was changed, one that was misread, and a tail that is missing; their script shows it."""
    code, rows = run_ops(tmp_path, SPOILED)
    assert code == 1
    changed = rows["nn.functional.gelu:forward"]
    assert changed["status"] == "fail_accuracy"
    assert "changes input tensor 0, but the host does not" in changed["reason"]
    assert rows["exp:forward"]["status"] == "pass"
    assert rows["exp:expanded"]["status"] == "fail_accuracy"
    assert rows["sqrt:expanded"]["status"] == "pass"
    tail = rows["sqrt:large"]
    assert tail["status"] == "fail_accuracy"
    assert "at [" in tail["reason"]
    for row in (changed, rows["exp:expanded"], tail):
        done = subprocess.run(
            [sys.executable, "-c", row["script"]],
            env={**os.environ, "TORCHGAUGE_NPUSIM_NAME": "npu", "TORCHGAUGE_NPUSIM_FAULT": SPOILED},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 1
        assert "AssertionError" in done.stderr, done.stderr


def test_healthy_operators_pass_and_say_whose_kernel_ran(tmp_path: Path) -> None:
    """Large and expanded inputs, too; what the database makes on the host as an index stays there."""
    code, rows = run_ops(tmp_path, "fallback_ops=aten::erf")
    assert code == 0
    assert {row["status"] for row in rows.values()} == {"pass"}
    assert rows["sqrt:large"]["samples"] == 2
    assert rows["erf:forward"]["kernel"] == "native"
    assert rows["exp:forward"]["kernel"] == "fallback"
    split = rows["tensor_split:forward"]
    assert (split["kernel"], "kernel_parts" in split) == ("composite", True)
