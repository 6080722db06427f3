"""``repro --trace``: what the profiler records of the steps that a row names."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.torch

CASE = "toy/convnet:{mode}:float32:b8:{configuration}@cpu"
MARKS = {f"ProfilerStep#{number}" for number in (1, 2, 3)}


def traced(sandbox: Any, case: str, name: str) -> list[dict[str, Any]]:
    """Return the complete events of a trace that ``repro`` writes of ``case``."""
    path = sandbox.store_path.parent / name
    words = ("--trace", str(path), *sandbox.quick, "--store", str(sandbox.store_path))
    done = sandbox.run("repro", case, *words)
    assert done.returncode == 0, done.stderr
    assert f"trace in {path}" in done.stderr
    text = gzip.decompress(path.read_bytes()) if name.endswith(".gz") else path.read_bytes()
    events = json.loads(text)["traceEvents"]
    assert [each.name for each in path.parent.glob("*.json*")] == [name], "a file was left aside"
    return [event for event in events if event["ph"] == "X"]


def test_a_trace_holds_the_steps_of_an_eager_case(sandbox: Any) -> None:
    """Three marked steps, each with the operators of the model in forward and backward."""
    events = traced(sandbox, CASE.format(mode="training", configuration="eager"), "eager.json")
    names = [event["name"] for event in events]
    assert {name for name in names if name.startswith("ProfilerStep")} == MARKS
    assert names.count("aten::conv2d") == 2 * len(MARKS)
    assert names.count("ConvolutionBackward0") == 2 * len(MARKS)
    assert not any("Compiled" in name for name in names)


def test_a_trace_holds_the_compiled_call_and_is_packed(sandbox: Any) -> None:
    """The case beside eager is the one that is traced; the name of the file says that it is packed."""
    events = traced(sandbox, CASE.format(mode="inference", configuration="inductor"), "compiled.json.gz")
    names = [event["name"] for event in events]
    assert {name for name in names if name.startswith("ProfilerStep")} == MARKS
    assert sum(name.startswith("Torch-Compiled Region") for name in names) == len(MARKS)
    assert "aten::conv2d" not in names
    assert any(name.startswith("aten::") for name in names)


def test_a_trace_replaces_no_file(sandbox: Any, tmp_path: Path) -> None:
    """A second trace into the file is refused before any run, and the row's command writes none."""
    case = CASE.format(mode="inference", configuration="eager")
    traced(sandbox, case, "first.json")
    (row,) = sandbox.rows()
    assert (row.case_id, row.status.value) == (case, "pass")
    assert "--trace" not in row.reproduce
    path = sandbox.store_path.parent / "first.json"
    before = path.read_bytes()
    done = sandbox.run("repro", case, "--trace", str(path), "--store", str(tmp_path / "other"))
    assert (done.returncode, path.read_bytes()) == (2, before)
    assert "exists" in done.stderr
    assert not (tmp_path / "other").exists()


def test_a_case_that_fails_has_no_trace_and_says_so(sandbox: Any) -> None:
    """The exit code follows the refused case; eager beside it passes."""
    path = sandbox.store_path.parent / "none.json"
    case = "toy/sum:inference:float32:b1:inductor@cpu"
    words = ("--trace", str(path), *sandbox.quick, "--store", str(sandbox.store_path))
    done = sandbox.run("repro", case, *words)
    assert (done.returncode, path.exists()) == (3, False), done.stderr
    assert f"no trace of {case}: status unsupported" in done.stderr
