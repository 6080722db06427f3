"""``torchgauge ops blockers``: mistakes, and one real device without two operators."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "results"))

import stored_runs

from torchgauge.errors import UnknownNameError, UsageError
from torchgauge.records import Case, Configuration, DeviceTarget, Failure, Status, Workload
from torchgauge.results.store import Store
from torchgauge.suites.census.data import CensusData, to_bytes
from torchgauge.suites.census.record import ModelCensus

needs_device = pytest.mark.skipif(
    any(
        importlib.util.find_spec(name) is None
        for name in ("torch", "timm", "expecttest", "torchgauge_npusim")
    ),
    reason="torch, timm, expecttest or the simulated device is not installed",
)
QUICK = (
    "--no-memory-probe --no-calibration --no-accuracy --no-warm-compile --measure-seconds 0.01 --precision 1"
)


@pytest.fixture
def words(tmp_path: Path) -> tuple[str, ...]:
    """A store with a float32 model that lacks an operator, operators in two dtypes, and a census."""
    store = Store.open(tmp_path / "store", create=True)
    case = Case(Workload("toy", "mlp"), Configuration("eager", "eager"), DeviceTarget("d"))
    failure = Failure("NotImplementedError", "Could not run 'aten::gelu'", missing_op="aten::gelu")
    row = stored_runs.result(case, None, status=Status.ERROR, failure=failure)
    works = (Workload("ops", "nn.functional.relu", "forward", dtype) for dtype in ("bfloat16", "float32"))
    judged = [stored_runs.result(replace(case, workload=each)) for each in works]
    stored_runs.run(store, "r1", [row, *judged], stored_runs.environment("d"))
    needs = frozenset({("aten::gelu", "float32")})
    models = tuple(
        ModelCensus("toy", name, "inference", "float32", "eager", needs) for name in ("mlp", "other")
    )
    census = tmp_path / "census.json.gz"
    census.write_bytes(to_bytes(CensusData({"torch": "2.9.0"}, models, {})))
    return ("ops", "blockers", "--device", "d", "--store", str(store.path), "--census", str(census))


@pytest.mark.parametrize(
    ("more", "kind", "message"),
    [
        (("--json", "--csv"), UsageError, "several output formats"),
        (("--suite", "tyo"), UnknownNameError, "toy"),
        (("--device", "e"), UnknownNameError, "device of the store"),
    ],
)
def test_a_mistake_says_what_to_type(invoke, words, more, kind, message) -> None:
    """Forms exclude each other; unknown names are answered with known ones."""
    done = invoke(*words, *more)
    assert isinstance(done.exception, kind)
    assert message in str(done.exception)


def test_dtypes_are_those_of_the_models(invoke, words) -> None:
    """An operator matrix in more dtypes adds no ranking of models that nobody runs so; --dtype does."""
    asked = ((), ("--dtype", "bfloat16"), ("--dtype", "bfloat16,float32"))
    shown = [json.loads(invoke(*words, *more, "--json").stdout) for more in asked]
    assert [[each["dtype"] for each in found] for found in shown] == [
        ["float32"],
        ["bfloat16"],
        ["bfloat16", "float32"],
    ]


def test_a_device_must_be_named(invoke, words) -> None:
    """Blockers are always those of a device."""
    assert "no device was given" in str(invoke(*words[:2], *words[4:]).exception)


def torchgauge(store: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a verb on the simulated device without two of its operators."""
    variables = {"TORCHGAUGE_NPUSIM_MISSING_OPS": "aten::gelu,aten::hardswish_", "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [sys.executable, "-m", "torchgauge.cli.main", *words, "--store", str(store)],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=290,
        check=False,
    )


@needs_device
@pytest.mark.torch
def test_operators_taken_from_a_device_are_found(tmp_path: Path, invoke) -> None:
    """One is named by the matrix, one by a model's own failure; each unblocks what was seen to lack it."""
    device = ("--device", "npusim")
    entries = "add,nn.functional.gelu,nn.functional.linear,nn.functional.relu"
    torchgauge(tmp_path, "ops", "census", "--static", *device)
    torchgauge(tmp_path, "ops", "judge", *device, "--ops", entries, "--dtype", "float32", "--samples", "2")
    models = "toy/mlp,toy/transformer,timm/lcnet_050"
    done = torchgauge(
        tmp_path, "run", "toy", "timm", *device, "--models", models, "--config", "eager", *QUICK.split()
    )
    assert done.returncode == 1, done.stderr
    shown = invoke("ops", "blockers", *device, "--store", str(tmp_path), "--json")
    assert shown.exit_code == 0, shown.output
    (found,) = json.loads(shown.stdout)
    by_operator = {step["operators"][0]: step for step in found["steps"] if len(step["operators"]) == 1}
    assert by_operator["aten::gelu"]["observed"] == ["toy/transformer:inference"]
    assert by_operator["aten::hardswish_"]["observed"] == ["timm/lcnet_050:inference"]
    assert found["clusters"] == []
    lines = {f"{line['suite']}/{line['model']}:{line['mode']}": line for line in found["models"]}
    assert lines["toy/mlp:inference"]["forecast"] == "will run"
    assert lines["toy/transformer:inference"]["forecast"] == "blocked"
    assert lines["timm/resnet18:inference"]["lacks"] == []
    never = [line for line in found["models"] if not line["status"] and line["lacks"] == ["aten::hardswish_"]]
    assert never, "no model that was never run is predicted from another one's failure"
