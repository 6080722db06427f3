"""``torchgauge results import``: other tools' results as an ordinary run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

HEADER = "dev,name,batch_size,speedup,abs_latency"
NAME = "inductor_no_cudagraphs_timm_models_float32_inference_fake_performance.csv"


@pytest.fixture
def performance(tmp_path) -> Path:
    path = tmp_path / NAME
    path.write_text(f"{HEADER}\nfake,a,2,1.5,3.25\nfake,b,0,0.0,0.0\n")
    return path


def test_an_imported_run_is_shown_and_exported_like_any_other(invoke, performance, tmp_path) -> None:
    """Import, show, dashboard and export: the numbers of the file are there at the end."""
    store = ("--store", str(tmp_path / "store"))
    done = invoke("results", "import", str(performance), *store)
    assert done.exit_code == 0, done.output
    run_id = done.stdout.strip()
    shown = invoke("results", "show", run_id, "--json", *store)
    rows = {row["case"]["workload"]["model"]: row for row in json.loads(shown.stdout)}
    assert (rows["a"]["status"], rows["b"]["status"]) == ("pass", "error")
    assert rows["a"]["case_id"] == "timm/a:inference:float32:b2:inductor@fake[size=full]"
    built = invoke("dashboard", "build", str(tmp_path / "store"), "--out", str(tmp_path / "site"))
    assert built.exit_code == 0, built.output
    words = ("--format", "dynamo-csv", "--out", str(tmp_path / "csv"))
    assert invoke("results", "export", run_id, *words, *store).exit_code == 0
    lines = (tmp_path / "csv" / NAME).read_text().splitlines()
    assert [line.split(",")[:5] for line in lines[1:]] == [
        ["fake", "a", "2", "1.500000", "3.250000"],
        ["fake", "b", "0", "0.0", "0.0"],
    ]


def test_the_format_of_json_is_found_by_looking(invoke, tmp_path) -> None:
    """HUD's records and TorchBench's metrics share an ending."""
    store = ("--store", str(tmp_path / "store"))
    record = {
        "benchmark": {"name": "x", "mode": "inference", "dtype": "float32", "extra_info": {"device": "fake"}},
        "model": {"name": "a", "backend": "inductor", "origins": ["timm_models"]},
        "metric": {"name": "speedup", "benchmark_values": [1.5]},
    }
    (tmp_path / "hud.json").write_text(json.dumps(record))
    key = "model=a, test=eval, device=fake, bs=1, extra_args=[], metric=latencies"
    (tmp_path / "metrics.json").write_text(json.dumps({"name": "x", "environ": {}, "metrics": {key: 1.5}}))
    assert invoke("results", "import", str(tmp_path / "hud.json"), *store).exit_code == 0
    assert (
        invoke("results", "import", str(tmp_path / "metrics.json"), "--dtype", "float32", *store).exit_code
        == 0
    )
    listed = json.loads(invoke("results", "list", "--json", *store).stdout)
    assert [run["counts"] for run in listed] == [{"pass": 1}, {"pass": 1}]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"{HEADER}\nfake,a,2,inf,3\n", ":2 at `speedup`: 'inf' is not a finite number"),
        (f"{HEADER}\nfake,a,1e30,1.5,3\n", "at `line 2`: a value cannot be stored"),
        (f"{HEADER},colour\nfake,a,2,1,3,red\n", "--ignore-columns colour"),
        ("", "is empty"),
    ],
)
def test_a_mistake_in_a_file_writes_nothing(process, performance, tmp_path, text, message) -> None:
    """Exit 2, the place and what to try; there is no store afterwards."""
    performance.write_text(text)
    done = process("results", "import", str(performance), "--store", str(tmp_path / "store"))
    assert (done.returncode, "Traceback" in done.stderr) == (2, False)
    assert message in done.stderr
    assert not (tmp_path / "store").exists()


def test_a_file_of_no_known_kind_is_refused(process, tmp_path) -> None:
    """The message lists the formats."""
    (tmp_path / "x.txt").write_text("x")
    done = process("results", "import", str(tmp_path / "x.txt"), "--store", str(tmp_path / "store"))
    assert done.returncode == 2
    assert "dynamo-csv|hud-v3|torchbench-json" in done.stderr
