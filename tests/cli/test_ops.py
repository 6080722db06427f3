"""``torchgauge ops judge`` and ``torchgauge ops census``: real runs over a few operators, and mistakes."""

from __future__ import annotations

import csv
import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

needs_database = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("torch", "expecttest")),
    reason="torch or expecttest is not installed",
)
needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")
needs_npusim = pytest.mark.skipif(
    importlib.util.find_spec("torchgauge_npusim") is None, reason="the simulated device is not installed"
)
DTYPES = ("float32", "bfloat16")
ABORTING = """
import importlib.machinery, importlib.util, os, sys
here = os.path.dirname(os.path.abspath(__file__))
path = [p for p in sys.path if os.path.abspath(p or ".") != here]
spec = importlib.machinery.PathFinder.find_spec("expecttest", path)
real = importlib.util.module_from_spec(spec)
spec.loader.exec_module(real)
sys.modules["expecttest"] = real
import torch
torch.erf = lambda *a, **k: os.abort()
"""
"""Stands before the real package: when the database is imported, one of its operators ends the process."""


def torchgauge(verb: str, folder: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a verb of `ops` with a store in ``folder``."""
    command = [
        sys.executable,
        "-m",
        "torchgauge.cli.main",
        "ops",
        verb,
        *words,
        "--store",
        str(folder / "store"),
    ]
    return subprocess.run(
        command,
        env={**os.environ, "OMP_NUM_THREADS": "1", **variables},
        capture_output=True,
        text=True,
        timeout=290,
        check=False,
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "no device was given"),
        (("--device", "cpu", "--variant", "foward"), "unknown variant 'foward'; did you mean forward"),
        (("--script", "toy/mlp:inference:float32:b1:eager@cpu"), "is not a case of suite ops"),
    ],
)
def test_a_mistake_is_a_sentence(tmp_path: Path, words: tuple[str, ...], message: str) -> None:
    """It ends with 2, and nothing is written."""
    done = torchgauge("judge", tmp_path, *words)
    assert done.returncode == 2, done.stderr
    assert message in done.stderr
    assert not (tmp_path / "store" / "runs").exists()


def test_a_script_is_printed_without_a_run(invoke) -> None:
    """It names the operator, the dtype and the device, and is valid Python."""
    done = invoke("ops", "judge", "--script", "ops/add:backward:float32:b1:eager@cpu[samples=8]")
    assert done.exit_code == 0
    compile(done.stdout, "script", "exec")
    assert "'add', 'cpu', torch.float32" in done.stdout


@needs_database
@pytest.mark.torch
def test_operators_become_rows_and_a_matrix(tmp_path: Path) -> None:
    """Each dtype and variant has its counts; what is not judged is skipped; nothing is unexpected."""
    words = ("--device", "cpu", "--ops", "add,empty", "--dtype", "float32,int64", "--samples", "2")
    done = torchgauge("judge", tmp_path, *words, "--variant", "forward,out", "--json")
    assert done.returncode == 0, done.stderr
    data = json.loads(done.stdout)
    assert data["failures"] == []
    rows = {(row["variant"], row["dtype"]): row["counts"] for row in data["matrix"]}
    assert rows["forward", "float32"] == {"pass": 1, "skipped": 1}
    assert rows["out", "int64"]["pass"] == 1
    assert "1/2    pass" in done.stderr


@needs_database
@pytest.mark.torch
def test_an_operator_that_aborts_costs_one_row(tmp_path: Path) -> None:
    """The process dies in one operator: that row is a crash, and those around it are judged."""
    (tmp_path / "expecttest.py").write_text(ABORTING, "utf-8")
    path = os.pathsep.join(filter(None, (str(tmp_path), os.environ.get("PYTHONPATH", ""))))
    words = ("--device", "cpu", "--ops", "add,erf,exp", "--dtype", "float32", "--samples", "1", "--json")
    done = torchgauge("judge", tmp_path, *words, PYTHONPATH=path)
    assert done.returncode == 1, done.stderr
    data = json.loads(done.stdout)
    assert data["counts"] == {"pass": 2, "crash": 1}
    (failure,) = data["failures"]
    assert failure["operators"] == ["erf"]
    assert "SIGABRT" in failure["sample"]


@needs_torch
@pytest.mark.torch
def test_without_the_test_package_every_row_says_what_to_install(
    tmp_path: Path, hide_package: Callable[[str], str]
) -> None:
    """The rows of each dtype and variant are skipped with the line to type; the run ends without results."""
    path = hide_package("expecttest")
    words = ("--device", "cpu", "--ops", "add,exp", "--dtype", ",".join(DTYPES), "--json")
    words += ("--variant", "forward,backward")
    done = torchgauge("judge", tmp_path, *words, PYTHONPATH=path, XDG_CACHE_HOME=str(tmp_path / "cache"))
    assert done.returncode == 3, done.stderr
    shown = json.loads(done.stdout)
    assert shown["counts"] == {"skipped": 8}
    rows = {(row["variant"], row["dtype"]): row["planned"] for row in shown["matrix"]}
    assert rows == {(variant, dtype): 2 for variant in ("forward", "backward") for dtype in DTYPES}
    assert "pip install expecttest" in done.stderr


@needs_database
@needs_npusim
@pytest.mark.torch
def test_a_missing_operator_is_named_with_a_script(tmp_path: Path) -> None:
    """Failures are grouped by the operator that the device lacks; the row holds a script that shows it."""
    words = ("--device", "npusim", "--ops", "erf,add", "--dtype", "float32,bfloat16", "--samples", "1")
    done = torchgauge("judge", tmp_path, *words, "--json", TORCHGAUGE_NPUSIM_MISSING_OPS="aten::erf")
    assert done.returncode == 1, done.stderr
    (failure,) = json.loads(done.stdout)["failures"]
    assert failure["missing_op"].startswith("aten::erf")
    assert len(failure["cases"]) == 2
    (journal,) = tmp_path.glob("store/runs/*/journal.jsonl")
    assert "sample_inputs(" in journal.read_text("utf-8")


@needs_torch
@pytest.mark.torch
def test_the_static_census_counts_every_overload(tmp_path: Path) -> None:
    """The host has kernels of its own for a thousand and more; the table has one line per overload."""
    done = torchgauge("census", tmp_path, "--static", "--device", "cpu", "--csv")
    assert done.returncode == 0, done.stderr
    rows = {row["operator"]: row["kind"] for row in csv.DictReader(done.stdout.splitlines())}
    assert rows["aten::add.Tensor"] == "native" or rows["aten::add.out"] == "native"
    assert rows["aten::linear"] == "composite"
    assert rows["aten::cudnn_convolution"] == "missing"
    assert sum(kind == "native" for kind in rows.values()) > 900
    (kept,) = tmp_path.glob("store/census/static-cpu-*.json")
    assert json.loads(kept.read_text("utf-8"))["counts"]["native"] > 900


@needs_torch
@needs_npusim
@pytest.mark.torch
def test_a_fallback_is_named_in_the_census(tmp_path: Path) -> None:
    """A backend with a fallback lacks nothing and owns little, and the census says both."""
    done = torchgauge("census", tmp_path, "--static", "--device", "npusim", "--json")
    assert done.returncode == 0, done.stderr
    (found,) = json.loads(done.stdout)
    assert found["fallback"]
    assert found["counts"]["missing"] == 0
    assert found["counts"]["fallback"] > found["counts"]["native"]
    assert found["operators"]["aten::as_strided"] == "native"


def test_a_census_of_a_dispatcher_needs_a_device(invoke) -> None:
    """It is said with what to type."""
    assert "no device was given" in str(invoke("ops", "census", "--static").exception)


@needs_database
@needs_npusim
@pytest.mark.torch
def test_a_device_that_is_not_there_is_said_once(tmp_path: Path) -> None:
    """Not in a row for each operator; nothing is written."""
    done = torchgauge(
        "judge", tmp_path, "--device", "npusim.5", "--ops", "add", "--dtype", "float32", "--json"
    )
    assert done.returncode == 3, done.stderr
    assert done.stderr.startswith("error: device 'npusim' has no index 5 here: it has 1 device\n  try: ")
    assert not [*tmp_path.rglob("runs")]
