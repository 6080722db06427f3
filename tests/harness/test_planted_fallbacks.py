"""No silent degradation: every planted fallback is found with evidence, and none of their clean twins."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from torchgauge.records import Modifier, Result, Status

PLUGIN = Path(__file__).resolve().parents[1] / "faults_plugin"
sys.path.insert(0, str(PLUGIN))
from torchgauge_faults.planted.suite import SUITE  # noqa: E402

sys.path.remove(str(PLUGIN))  # tests of other files must not find its suites

QUICK = (
    "--measure-seconds",
    "0.02",
    "--no-calibration",
    "--no-memory-probe",
    "--no-warm-compile",
    "--threads",
    "1",
)
pytestmark = pytest.mark.torch
MODELS = {
    model.name: model
    for model in SUITE.models()
    if all(importlib.util.find_spec(package) for package in model.packages)
}
PLANTS = [(name, each) for name, model in MODELS.items() for each in model.configurations if each != "eager"]
EVIDENCE = {
    "planted-disabled-model": "captured no graph",
    "planted-disabled-body": "of the step ran in compiled code",
    "planted-skipped-file": "of the step ran in compiled code",
    "planted-scripted-body": "of the step ran in compiled code",
    "planted-other-thread": "of the step ran in compiled code",
    "planted-opaque-operator": "of the step ran in compiled code",
    "planted-backward-in-eager": "of the step ran in compiled code",
    "planted-refused-operators": "of the step ran in compiled code",
    "planted-break-in-loop": "of the step ran in compiled code",
    "planted-recompile-limit": "hit config.recompile_limit (8)",
    "planted-eager-on-recompile": "2 steps entered the code of aot_eager 1 time",
    "planted-switched-off": "captured no graph",
    "planted-forced-eager": "captured no graph",
    "planted-suppressed-errors": "RuntimeError('this operator has no shape before it has run",
    "planted-suppressed-nothing": "changed: dynamo.suppress_errors = True instead of False",
    "planted-cache-disabled": "the filled compile cache had no hit",
    "planted-autograd-uncaptured": "compiled autograd captured nothing",
    "planted-tuned-nothing": "max-autotune tuned nothing",
    "planted-no-device-graphs": "device graphs were requested, but inductor skipped them",
    "planted-not-frozen": "freezing folded no parameter",
    "planted-package-of-python": "Python called 8 torch functions in a step of the package: linear x4",
    "planted-regions-apart": "graphs where 1 would do",
    "planted-regions-inlined": "0 of 3 blocks call a region that is compiled once",
    "planted-flex-by-sdpa": "the model that flex_form() returns never calls flex_attention",
    "planted-flex-half": "1 of 2 attention calls are scaled_dot_product_attention",
    "planted-cpp-calls-python": "it calls Python for torchgauge_planted::half",
    "planted-attention-by-hand": "never calls scaled_dot_product_attention",
    "planted-attention-forced-math": "flash attention was requested, but math ran",
    "planted-attention-mixed": "flash attention was requested, but math ran",
    "planted-unquantised-products": "1 of 1 linear layers are quantised, with 25% of the weights",
    "planted-undelegated": "0 of 1 operator were delegated to it",
}

NOT_RUN = {
    "planted-disabled-model",
    "planted-switched-off",
    "planted-forced-eager",
    "planted-eager-on-recompile",
}
"""Plants of which some steps enter no compiled code."""


@pytest.fixture(scope="module")
def rows(make_sandbox: Callable[[], Any]) -> dict[tuple[str, str], Result]:
    """Runs of the whole suite on the host, by model and configuration; warm starts only where they matter."""
    found = {}
    cached = ("--models", "planted-cache-disabled,clean-layers", "--config", "eager,inductor")
    for quick, arguments in ((QUICK, ()), ([each for each in QUICK if each != "--no-warm-compile"], cached)):
        sandbox = make_sandbox()
        store = ("--store", str(sandbox.store_path))
        done = sandbox.run("run", "planted", "--device", "cpu", *quick, *arguments, *store)
        assert done.returncode == (0 if arguments else 1), done.stderr
        found.update({(row.case.workload.model, row.case.configuration.name): row for row in sandbox.rows()})
    return found


def test_there_are_enough_of_both() -> None:
    """At least twenty plants, as many clean cases beside eager's own, and evidence for each plant."""
    plants = {name for name, _ in PLANTS if name.startswith("planted-")}
    assert plants == set(EVIDENCE) & MODELS.keys()
    assert len(plants) >= 20
    assert sum(name.startswith("clean-") for name, _ in PLANTS) >= len(plants)


@pytest.mark.parametrize(("model", "configuration"), PLANTS)
def test_what_ran_by_another_path_is_told_and_nobody_else(
    rows: dict[tuple[str, str], Result], model: str, configuration: str
) -> None:
    """A plant that ran in part is a degraded pass, one that did not run is an error; its twin is neither."""
    row = rows[model, configuration]
    if model in NOT_RUN:
        assert (row.status, row.reason[:29]) == (Status.ERROR, "the configuration did not run")
        assert EVIDENCE[model] in row.reason
        return
    assert row.status is Status.PASS, row.reason
    assert any(each.metric == "latency" and each.samples for each in row.measurements)
    degraded = model.startswith("planted-")
    assert (Modifier.DEGRADED in row.modifiers) is degraded, row.degraded
    assert EVIDENCE.get(model, "") in row.degraded


@pytest.mark.parametrize("model", MODELS)
def test_eager_is_what_was_asked_for(rows: dict[tuple[str, str], Result], model: str) -> None:
    """The same model as written is never degraded: the compiler's doings do not touch it."""
    row = rows[model, "eager"]
    assert row.status is Status.PASS, row.reason
    assert Modifier.DEGRADED not in row.modifiers, row.degraded


def test_one_plant_is_told_from_its_twin(sandbox: Any) -> None:
    """Two of the models, in short: the night runs all of them."""
    sandbox.measure(
        "planted",
        "--models",
        "planted-disabled-body,clean-layers",
        "--config",
        "eager,inductor",
        "--device",
        "cpu",
    )
    degraded = {
        (row.case.workload.model, row.case.configuration.name): row.degraded for row in sandbox.rows()
    }
    assert EVIDENCE["planted-disabled-body"] in degraded.pop(("planted-disabled-body", "inductor"))
    assert list(degraded.values()) == [""] * 3


@pytest.mark.skipif(importlib.util.find_spec("torchgauge_npusim") is None, reason="no simulated device")
def test_an_operator_on_the_host_is_found_in_either_configuration(make_sandbox: Callable[[], Any]) -> None:
    """The clean model of the suite on a device that lacks one of its operators, and on one that does not."""
    arguments = ("planted", "--models", "clean-layers", "--device", "npusim", "--config", "eager,aot_eager")
    for fault, text in (("fallback_ops=aten::gelu", "ran on the host: aten::gelu"), ("", "")):
        sandbox = make_sandbox()
        sandbox.measure(*arguments, TORCHGAUGE_NPUSIM_FAULT=fault)
        told = [row.degraded for row in sandbox.rows()]
        assert len(told) == 2
        assert all(text in each and bool(each) is bool(text) for each in told), told
