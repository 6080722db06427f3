"""What inductor does once in a process is part of each cold compilation, whichever case comes first."""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import Any

import pytest

from torchgauge.harness.backends import compiler_start as module
from torchgauge.harness.backends.prepared import BackendSession

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch
FACT = "compiler_start"


def metric(row: Any, name: str) -> float:
    """The one sample of a measurement of ``row``."""
    (sample,) = next(each.samples for each in row.measurements if each.metric == name)
    return float(sample)


def test_each_configuration_is_charged_with_the_same_start(sandbox):
    sandbox.measure(
        "toy", "--models", "mlp", "--device", "cpu", "--cold-compile", "all",
        "--config", "eager,inductor,inductor-simd1,aot_eager",
    )  # fmt: skip
    rows = {row.case.configuration.name: row for row in sandbox.rows()}
    starts = {name: dict(row.facts).get(FACT) for name, row in rows.items()}
    assert starts["eager"] is None
    assert starts["aot_eager"] is None  # another compiler: nothing of inductor's is its
    assert starts["inductor"] == starts["inductor-simd1"] > 0
    for name in ("inductor", "inductor-simd1"):
        assert metric(rows[name], "compile_cold") > starts[name]
        assert metric(rows[name], "compile_cold_cpu") > 0


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch's own, as its compiler is imported
def test_it_is_spent_once_and_leaves_the_caches_of_the_case_alone(monkeypatch, tmp_path):
    monkeypatch.setattr(module, "_SPENT", {})
    monkeypatch.setenv(module.CACHE, str(tmp_path))
    session = BackendSession(SimpleNamespace(torch_device=torch.device("cpu")), step=lambda call: call)
    first = module.compiler_start(session)
    assert first[0] > 0
    assert first[1].own > 0
    assert module.compiler_start(session) is first
    assert os.environ[module.CACHE] == str(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_compiler_that_cannot_start_is_told_by_the_case(monkeypatch):
    monkeypatch.setattr(module, "_SPENT", {})

    def refuse(*_: Any, **__: Any) -> None:
        raise RuntimeError("no compiler here")

    monkeypatch.setattr(torch, "compile", refuse)
    session = BackendSession(SimpleNamespace(torch_device=torch.device("cpu")), step=lambda call: call)
    assert module.compiler_start(session)[0] == 0.0
