"""``torchgauge ops census``: the census that ships, one of the reader's own, and mistakes."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from torchgauge.suites.census.data import CensusData, to_bytes
from torchgauge.suites.census.record import COMPILED, EAGER, ModelCensus


def entry(model: str, *names: str, path: str = EAGER, problem: str = "") -> ModelCensus:
    """A model of the toy suite that dispatches ``names`` in float32."""
    pairs = frozenset((name, "float32") for name in names)
    return ModelCensus("toy", model, "inference", "float32", path, pairs, problem, "somewhere", pairs)


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A census of a torch that nobody has installed."""
    models = (
        entry("one", "aten::addmm", "aten::relu"),
        entry("two", "aten::addmm.out", "aten::mul.Tensor"),
        entry("two", "aten::mm", path=COMPILED),
        entry("three", problem="RuntimeError: no memory"),
    )
    path = tmp_path / "own.json.gz"
    path.write_bytes(to_bytes(CensusData({"torch": "99.1"}, models)))
    return path


def test_operators_are_ranked_by_the_models_that_need_them(invoke: Callable[..., Any], own: Path) -> None:
    """Overloads of one operator count as one; a model that could not be recorded says why."""
    found = invoke("ops", "census", "--data", str(own), "--path", "eager")
    assert found.exit_code == 0, found.output
    (line,) = [line for line in found.output.splitlines() if "toy/three inference float32 eager" in line]
    assert line.endswith("  not recorded: RuntimeError: no memory")
    ranked = [line.split()[:2] for line in found.output.splitlines() if "aten::" in line]
    assert ranked == [["2", "aten::addmm"], ["1", "aten::mul"], ["1", "aten::relu"]]
    assert "of 2 models" in found.output


def test_other_installed_versions_are_warned_of(invoke: Callable[..., Any], own: Path) -> None:
    """The warning names both versions and how to record one's own."""
    found = invoke("ops", "census", "--data", str(own))
    assert "warning: the census was recorded with torch 99.1 (installed: " in found.stderr
    assert "census --record" in found.stderr
    assert "warning" not in found.stdout


def test_csv_has_one_line_per_operator(invoke: Callable[..., Any], own: Path) -> None:
    """And one for a problem."""
    found = invoke("ops", "census", "--data", str(own), "--models", "t*", "--csv")
    rows = list(csv.DictReader(io.StringIO(found.stdout)))
    assert [(row["model"], row["level"], row["operator"]) for row in rows] == [
        ("three", "", ""),
        ("two", "operator", "aten::mm"),
        ("two", "received", "aten::mm"),
        ("two", "operator", "aten::addmm.out"),
        ("two", "operator", "aten::mul.Tensor"),
        ("two", "received", "aten::addmm.out"),
        ("two", "received", "aten::mul.Tensor"),
    ]
    assert rows[0]["problem"] == "RuntimeError: no memory"


def test_json_holds_models_and_the_whole_ranking(invoke: Callable[..., Any], own: Path) -> None:
    """Machine output is alone on stdout."""
    found = json.loads(invoke("ops", "census", "--data", str(own), "--model", "two", "--json").stdout)
    assert found["versions"] == {"torch": "99.1"}
    assert found["differing"]["torch"][0] == "99.1"
    assert [each["path"] for each in found["models"]] == ["compiled", "eager"]
    assert [need["operator"] for need in found["ranking"]] == ["aten::addmm", "aten::mm", "aten::mul"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--record", "--out", "x"), "no device was given"),
        (("--record", "--device", "cpu"), "requires an output file"),
        (("--record", "--device", "cpu,fake", "--out", "x"), "exactly one device"),
        (("--record", "--static", "--device", "cpu"), "both given"),
        (("--static",), "no device was given"),
        (("--suite", "tom"), "tom"),
        (("--model", "resnet1888"), "resnet1888"),
        (("--mode", "sleeping"), "sleeping"),
        (("--data", "/nowhere/x.json.gz"), "is not a census"),
    ],
)
def test_mistakes_say_what_and_what_to_try(
    process: Callable[..., Any], words: tuple[str, ...], message: str
) -> None:
    """No traceback, and an exit code that is not success."""
    done = process("ops", "census", *words)
    assert done.returncode in {2, 3, 5}, done.stderr
    assert message in done.stderr
    assert "Traceback" not in done.stderr
