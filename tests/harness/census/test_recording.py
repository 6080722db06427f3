"""Real recordings in children: models that raise, die and hang cost one entry each."""

from __future__ import annotations

import importlib.util
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from torchgauge.devices.discover import find_device, parse_target
from torchgauge.errors import InfrastructureError, UsageError
from torchgauge.harness.census.children import CensusRunner
from torchgauge.harness.census.job import CensusItem
from torchgauge.harness.census.record import Wanted, record
from torchgauge.records import Workload
from torchgauge.suites.census.data import CensusData, installed_versions, read, to_bytes
from torchgauge.suites.census.record import COMPILED, EAGER, ModelCensus

pytestmark = pytest.mark.torch
pytest.importorskip("torch")

PATIENCE_S = 300.0
MODELS = """
import os, time

LINES = {
    "forges_another": b'{"ev": "model", "index": 7, "operators": []}\\n',
    "forges_types": b'{"ev": "model", "index": 2, "operators": 5}\\n',
    "forges_a_loss": b'{"ev": "refused", "problem": "gone"}\\n',
}

def build(workload, recipe):
    if workload.model == "raises":
        raise ValueError(f"cannot be built: {object()}")
    if workload.model == "dies":
        os.abort()
    if workload.model.startswith("forges"):
        report = next(each for each in os.scandir("/proc/self/fd") if "report" in os.readlink(each))
        os.write(int(report.name), LINES[workload.model])
    if workload.model == "hangs":
        time.sleep(3600)
    import torch
    from torchgauge.suites.suite import BuiltWorkload
    return BuiltWorkload(torch.nn.Linear(2, 2), (torch.ones(1, 2),))
"""


def runner(folder: Path, deadline_s: float = PATIENCE_S, **changes: Any) -> CensusRunner:
    """Recordings on the host, of models in ``folder``."""
    (folder / "odd_models.py").write_text(MODELS, encoding="utf-8")
    path = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])
    device = find_device("cpu", sys.executable)
    whole = CensusRunner(
        sys.executable, parse_target("cpu"), device, ("torch",), {"PYTHONPATH": path}, deadline_s
    )
    return replace(whole, **changes)


def item(model: str) -> CensusItem:
    """One eager inference of a model of the test's own."""
    workload = Workload("odd", model)
    scenario = "torchgauge.harness.scenarios.inference_steps"
    return CensusItem(model, workload, EAGER, {}, "odd_models:build", scenario)


def test_a_model_that_raises_or_dies_costs_its_own_entry(tmp_path: Path) -> None:
    """The others are recorded, before it and behind it, and reasons hold nothing that differs next time."""
    wanted = [item(name) for name in ("good", "raises", "dies", "other")]
    found = {each.name: line for each, line in runner(tmp_path).answers(wanted)}
    assert list(found) == ["good", "raises", "dies", "other"]
    assert ["aten::addmm", "float32"] in found["good"]["operators"]
    assert found["other"]["operators"] == found["good"]["operators"]
    assert found["raises"]["problem"] == "ValueError: cannot be built: <object object at 0x...>"
    assert found["dies"]["problem"] == "the recording process ended: signal 6"
    assert found["good"]["versions"].keys() == {"torch"}


def test_a_model_that_writes_into_the_report_costs_its_own_entry(tmp_path: Path) -> None:
    """It answers for no other model, and the device is not lost because a model wrote so."""
    wanted = [item(name) for name in ("good", "forges_another", "forges_types", "forges_a_loss", "other")]
    found = {each.name: line for each, line in runner(tmp_path).answers(wanted)}
    assert list(found) == [each.name for each in wanted]
    assert found["other"]["operators"] == found["good"]["operators"]
    problems = {name: line["problem"] for name, line in found.items() if "problem" in line}
    assert set(problems) == {"forges_another", "forges_types", "forges_a_loss"}
    assert all("the model's process wrote" in problem for problem in problems.values())


def test_a_model_that_hangs_is_ended_at_its_deadline(tmp_path: Path) -> None:
    """Its entry says how long was waited."""
    ((_, line),) = runner(tmp_path, deadline_s=1.0).answers([item("hangs")])
    assert line["problem"] == "no response within 1 s"


def test_a_device_that_is_not_there_is_said_at_once(tmp_path: Path) -> None:
    """It is no model's problem."""
    absent = runner(tmp_path, target=parse_target("cpu.7"))
    with pytest.raises(InfrastructureError, match="cannot be opened"):
        list(absent.answers([item("good")]))


def test_two_recordings_of_toy_models_give_the_same_bytes(tmp_path: Path) -> None:
    """Both paths and both modes are there; a graph holds no in-place operators, eager training does."""
    wanted = Wanted("cpu", suites=("toy",), models=("mlp",), deadline_s=PATIENCE_S)
    first = record(wanted, tmp_path / "first.json.gz")
    second = record(wanted, tmp_path / "second.json.gz")
    assert to_bytes(first) == to_bytes(second)
    assert (tmp_path / "first.json.gz").read_bytes() == (tmp_path / "second.json.gz").read_bytes()
    assert not [each.problem for each in first.models if each.problem]
    assert len(first.models) == 4
    eager, compiled = (first.of("toy", "mlp", "training", path) for path in (EAGER, COMPILED))
    assert eager is not None
    assert compiled is not None
    assert "aten::add_" in eager.names
    assert "aten::add_" not in compiled.names
    assert "aten::mm" in compiled.names
    assert eager.dtypes == ("float32", "int64")


def test_a_second_recording_replaces_its_entries_and_keeps_the_others(tmp_path: Path) -> None:
    """A file of other versions is refused before anything is lost."""
    out = tmp_path / "census.json.gz"
    wanted = Wanted("cpu", suites=("toy",), models=("mlp",), modes=("inference",), paths=(EAGER,))
    kept = ModelCensus("toy", "kept", "inference", "float32", EAGER, frozenset({("aten::sin", "float32")}))
    again = replace(kept, model="mlp", dtype="bfloat16")
    out.write_bytes(to_bytes(CensusData(installed_versions(["torch"]), (kept, again))))
    data = record(replace(wanted, dtypes=("bfloat16",)), out)
    assert [each.model for each in read(out).models] == ["kept", "mlp"]
    assert kept in data.models
    assert again not in data.models
    assert data.models[-1].dtypes == ("bfloat16",)
    out.write_bytes(to_bytes(replace(data, versions={"torch": "1.0"})))
    before = out.read_bytes()
    with pytest.raises(UsageError, match=r"was recorded with torch 1\.0 \(installed: "):
        record(wanted, out)
    assert out.read_bytes() == before


@pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("timm", "expecttest")),
    reason="timm or expecttest is not installed",
)
def test_an_image_model_and_an_operator_are_recorded(tmp_path: Path) -> None:
    """The smallest model of timm, and which entry of the database is evidence for which operator."""
    out = tmp_path / "census.json.gz"
    wanted = Wanted("cpu", suites=("timm",), models=("lcnet_050",), modes=("inference",), paths=(EAGER,))
    data = record(wanted, out)
    found = data.of("timm", "lcnet_050", "inference", EAGER)
    assert found is not None
    assert {"aten::convolution", "aten::hardswish_"} <= set(found.names)
    assert "timm" in data.versions
    data = record(Wanted("cpu", suites=("ops",), models=("nn.functional.gelu",)), out)
    assert data.opinfo["aten::gelu_backward"] == {"nn.functional.gelu"}
    assert data.of("timm", "lcnet_050", "inference", EAGER) == found


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"models": ("mpl",)}, "mpl"),
        ({"paths": ("slow",)}, "--path 'slow' is unknown"),
        ({"device": "fake"}, "does not run torch"),
        ({"suites": ("toys",)}, "toys"),
        ({"modes": ("dreaming",)}, "dreaming"),
    ],
)
def test_names_that_nothing_answers_to_are_refused(
    tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    """Before any child starts, and without a file."""
    out = tmp_path / "census.json.gz"
    with pytest.raises(UsageError, match=message):
        record(replace(Wanted("cpu", suites=("toy",), models=("mlp",)), **change), out)
    assert not out.exists()
