"""``torchgauge results triage``: forms, mistakes, and one operator taken from a real device."""

from __future__ import annotations

import csv
import importlib.util
import io
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "results"))

import stored_runs

from torchgauge.errors import UsageError
from torchgauge.records import Failure, Phase, Status
from torchgauge.results.store import Store

needs_device = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("torch", "torchgauge_npusim")),
    reason="torch or the simulated device is not installed",
)
QUICK = (
    "--no-memory-probe --no-calibration --no-accuracy --no-warm-compile --no-fallback-check "
    "--measure-seconds 0.01 --precision 1"
)


@pytest.fixture
def store(tmp_path: Path) -> str:
    """A case that passed on the first night and failed on the second, a day later."""
    kept = Store.open(tmp_path / "store", create=True)
    case = stored_runs.case("mlp")
    message = "Could not run 'aten::gelu'"
    failure = Failure("NotImplementedError", message, "torch.x:1", "aten::gelu", "p")
    later = stored_runs.BEGIN + stored_runs.DAY
    bad = stored_runs.result(
        case, None, status=Status.ERROR, phase=Phase.EAGER, failure=failure, started_at=later
    )
    stored_runs.run(kept, "n0", [stored_runs.result(case)])
    stored_runs.run(kept, "n1", [bad], at=later)
    return str(kept.path)


def test_each_form_holds_the_cluster(invoke, store) -> None:
    """Text for a person, Markdown for an issue, CSV and JSON that parse."""
    words = ("results", "triage", "--store", store)
    done = invoke(*words)
    assert done.exit_code == 0, done.output
    assert "1 failure of 1 case in 1 cluster; since n0 (2026-05-28): 1 new" in done.stdout
    assert "1. aten::gelu is missing" in done.stdout
    assert "torchgauge repro toy/mlp:inference:float32:b1:eager@fake" in done.stdout
    assert "## 1. `aten::gelu is missing` [" in invoke(*words, "--markdown").stdout
    (row,) = csv.DictReader(io.StringIO(invoke(*words, "--csv").stdout))
    assert (row["missing_op"], row["change"], row["first_seen_run"]) == ("aten::gelu", "new", "n1")
    assert json.loads(invoke(*words, "--json").stdout)["clusters"][0]["missing_op"] == "aten::gelu"


@pytest.mark.parametrize(
    ("since", "change"), [("n0", "new"), ("n1", "same"), ("2026-05-29", "new"), ("2031-01-01T06:00", "same")]
)
def test_since_is_a_run_or_a_time(invoke, store, since, change) -> None:
    """Runs after a run, or from a time on, are what is new."""
    done = invoke("results", "triage", "--store", store, "--since", since, "--json")
    assert [each["change"] for each in json.loads(done.stdout)["clusters"]] == [change]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--json", "--csv"], "one of --json, --csv and --markdown"),
        (["--status", "pass"], "unknown failure status 'pass'"),
        (["--status", "infra"], "one of: crash, error"),
        (["--device", "fak"], "did you mean fake"),
        (["--suite", "tyo"], "did you mean toy"),
        (["--since", "n2"], "a run, a date, or days"),
        (["--since", "../n1"], "unknown published run"),
        (["--store", "/no/such/store"], "is not a store"),
    ],
)
def test_mistakes_are_explained(invoke, store, words, said) -> None:
    """Exit 2 with what to try."""
    done = invoke("results", "triage", "--store", store, *words)
    assert isinstance(done.exception, UsageError)
    assert said in str(done.exception)


def test_a_negative_number_of_clusters_is_refused(process, store) -> None:
    """It would leave out the last cluster and say nothing."""
    done = process("results", "triage", "--store", store, "--top", "-1")
    assert done.returncode == 2
    assert "-1 is not in the range" in done.stderr


def test_an_empty_store_and_a_damaged_run(process, store, tmp_path) -> None:
    """Nothing measured is exit 5; a table that cannot be read is named, and exit 3."""
    Store.open(tmp_path / "empty", create=True)
    assert process("results", "triage", "--store", str(tmp_path / "empty")).returncode == 5
    Store.open(store).table_path("results", "n0").write_bytes(b"nothing")
    done = process("results", "triage", "--store", store)
    assert done.returncode == 3
    assert "gap: run n0" in done.stdout
    assert "aten::gelu is missing" in done.stdout


def torchgauge(*words: str, missing: str = "") -> subprocess.CompletedProcess[str]:
    """Run a verb on the simulated device, without one of its operators where ``missing`` names it."""
    variables = {"TORCHGAUGE_NPUSIM_MISSING_OPS": missing, "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [sys.executable, "-m", "torchgauge.cli.main", *words],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=290,
        check=False,
    )


@needs_device
@pytest.mark.torch
def test_an_operator_taken_from_a_device_is_one_cluster_whose_command_shows_it(tmp_path, invoke) -> None:
    """Two models lack it at different places; the command fails alike; fixed, the cluster is gone."""
    store, models = str(tmp_path / "store"), ("--models", "mlp,transformer")
    run = ("run", "toy", "--device", "npusim", *models, "--config", "eager", *QUICK.split(), "--store", store)
    done = torchgauge(*run, missing="aten::addmm")
    assert done.returncode == 1, done.stderr
    (cluster,) = json.loads(invoke("results", "triage", "--store", store, "--json").stdout)["clusters"]
    assert (cluster["missing_op"], cluster["places"]) == ("aten::addmm", 2)
    assert cluster["models"] == ["toy/mlp", "toy/transformer"]

    words = shlex.split(cluster["example"]["command"])
    again = str(tmp_path / "again")
    repeated = torchgauge(*words[1:], "--store", again, missing="aten::addmm")
    assert repeated.returncode == 1, repeated.stderr
    (shown,) = json.loads(invoke("results", "triage", "--store", again, "--json").stdout)["clusters"]
    assert shown["id"] == cluster["id"]

    assert torchgauge(*run).returncode == 0
    later = json.loads(invoke("results", "triage", "--store", store, "--json").stdout)
    assert later["clusters"] == []
    assert [(each["id"], each["left_as"]) for each in later["gone"]] == [(cluster["id"], {"pass": 2})]
