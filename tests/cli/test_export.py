"""``torchgauge results export``: a run of ours for PyTorch's own tools."""

from __future__ import annotations

import csv
import sys
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "results" / "interchange"))

import exchange_store

from torchgauge.records import DeviceTarget


@pytest.fixture(scope="module")
def exchanged(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("export") / "store"
    exchange_store.write(path, exchange_store.everything())
    return path


@pytest.mark.parametrize("name", ["../../out", "/nowhere/out", "a/b", "..", "-rf", "x" * 400])
def test_no_name_of_a_store_leads_out_of_the_folder(invoke, tmp_path, name) -> None:
    """Suites and devices of a foreign store are parts of names of files, and stay that."""
    of = exchange_store.case("resnet18", suite=name)
    exchange_store.write(tmp_path / "store", [exchange_store.passed(replace(of, device=DeviceTarget(name)))])
    out = tmp_path / "deep" / "csv"
    out.parent.mkdir()
    words = ("--format", "dynamo-csv", "--out", str(out), "--store", str(tmp_path / "store"))
    done = invoke("results", "export", "run", *words)
    assert done.exit_code == 0, done.output
    assert sorted(path.name for path in tmp_path.rglob("*.csv")) == sorted(
        path.name for path in out.iterdir()
    )
    assert len(list(out.iterdir())) == 2


@pytest.mark.parametrize("sign", ["=", "+", "-", "@", "\t=", "\r="])
def test_no_cell_of_an_export_is_a_formula(invoke, tmp_path, sign) -> None:
    """A spreadsheet that opens the files runs nothing; numbers stay numbers."""
    exchange_store.write(
        tmp_path / "store", [exchange_store.passed(exchange_store.case(f"{sign}cmd|' /c calc'!A1"))]
    )
    words = ("--format", "dynamo-csv", "--out", str(tmp_path / "csv"), "--store", str(tmp_path / "store"))
    assert invoke("results", "export", "run", *words).exit_code == 0
    for path in (tmp_path / "csv").iterdir():
        (row,) = csv.DictReader(path.read_text().splitlines())
        assert row["name"].startswith("'")
        assert row["batch_size"] == "4"


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("nonsense", "--format", "hud-v3", "--out", "x.json"), 2, "unknown run 'nonsense'"),
        (("run", "--format", "hud-v3", "--out", "."), 2, "is a folder"),
        (("run", "--format", "hud-v3", "--out", "nowhere/x.json"), 2, "its folder is missing"),
        (("run", "--format", "dynamo-csv", "--out", __file__), 2, "is a file"),
        (("run", "--format", "csv", "--out", "x"), 2, "is not one of"),
    ],
)
def test_a_mistake_is_one_message(process, exchanged, words, code, message) -> None:
    """Exit 2 and no traceback; nothing is written."""
    done = process("results", "export", *words, "--store", str(exchanged))
    assert done.returncode == code, done.stderr
    assert message in done.stderr
    assert "Traceback" not in done.stderr
