"""``torchgauge ab`` and a build that computes something else: an operator is wrong by one per cent."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import torchgauge

SOURCE = Path(torchgauge.__file__).resolve().parent.parent
PLANT = """
import importlib.abc, os, sys

WRONG = os.environ.get("WRONG", "")

def plant(torch):
    functional, real, seed = torch.nn.functional, torch.nn.functional.linear, torch.manual_seed

    def scaled(*given):
        result = real(*given)
        if WRONG == "everywhere" or result.dtype is torch.float32:
            if WRONG != "gradient":
                return result * 1.01
            if result.requires_grad:
                result.register_hook(lambda gradient: gradient * 1.01)
        return result

    if WRONG == "start":
        torch.manual_seed = lambda number: seed(number + 1)
    else:
        functional.linear = scaled

class Patch(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name == "torch.accelerator" and WRONG:
            sys.meta_path.remove(self)
            import torch
            plant(torch)

sys.meta_path.insert(0, Patch())
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder from which each process takes the plant that its variable names."""
    folder = tmp_path_factory.mktemp("library")
    (folder / "sitecustomize.py").write_text(PLANT)
    return folder


def ab(library: Path, store: Path, *words: str, mode: str = "inference") -> tuple[int, str, dict[str, Any]]:
    """Compare head with base; return exit code, what stood on the terminal, and verdicts by metric."""
    given = ("toy", "--models", "mlp", "--device", "cpu", "--config", "eager", "--mode", mode)
    bounds = ("--threads", "1", "--max-launches", "3", "--seed", "1", "--measure-seconds", "0.2")
    done = subprocess.run(
        [sys.executable, "-m", "torchgauge.cli.main", "ab", *given, *bounds, *words, "--no-control",
         "--store", str(store), "--json"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(library), str(SOURCE)])},
        capture_output=True, text=True, timeout=280, check=False,
    )  # fmt: skip
    verdicts = json.loads(done.stdout)["verdicts"]
    return done.returncode, done.stderr, {each["metric"]: each for each in verdicts}


@pytest.mark.parametrize(
    ("wrong", "mode"), [("float32", "inference"), ("gradient", "training"), ("everywhere", "inference")]
)
def test_an_operator_that_is_one_per_cent_off_fails_the_comparison(
    library: Path, tmp_path: Path, wrong: str, mode: str
) -> None:
    """It passes every check of its own build; both errors are said, and it has no ratio of times."""
    code, said, verdicts = ab(library, tmp_path, "--head-env", f"WRONG={wrong}", mode=mode)
    status = verdicts["status"]
    assert (code, status["verdict"]) == (1, "outputs_differ"), said
    assert "from base's reference (limit" in status["reason"]
    assert "Regression: 1 with other outputs" in said
    assert "status: outputs differ" in said
    assert (verdicts["latency"]["verdict"], verdicts["latency"]["ratio"]) == ("not_comparable", None)


def test_a_build_that_rounds_otherwise_is_not_accused(library: Path, tmp_path: Path) -> None:
    """Other kernels, without vectors, sum in another order."""
    _, said, verdicts = ab(library, tmp_path, "--head-env", "ATEN_CPU_CAPABILITY=default", mode="training")
    assert (verdicts["status"]["verdict"], verdicts["status"]["reason"]) == ("unchanged", ""), said
    assert verdicts["latency"]["ratio"]


def test_sides_with_other_weights_are_not_compared_and_it_says_so(library: Path, tmp_path: Path) -> None:
    """Nobody is accused of what the seed explains."""
    _, said, verdicts = ab(library, tmp_path, "--head-env", "WRONG=start")
    reason = "outputs were not compared: base and head begin with different weights or inputs"
    assert (verdicts["status"]["verdict"], verdicts["status"]["reason"]) == ("unchanged", reason), said
    assert reason in said
    assert verdicts["latency"]["ratio"]
