"""Channels-last as a configuration: what is checked and timed has the layout that the row names."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.torch

BOTH = "eager-channels-last,inductor-channels-last"
UPSTREAM = """
import torch
from torchbenchmark.util.model import BenchmarkModel


class Model(BenchmarkModel):
    DEFAULT_TRAIN_BSIZE = 2
    DEFAULT_EVAL_BSIZE = 2

    def __init__(self, test, device, batch_size=None, extra_args=()):
        super().__init__(test, device, batch_size, extra_args)
        self.model = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.Flatten()).to(device).train()
        self.example_inputs = (torch.randn(self.batch_size, 3, 8, 8, device=device),)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1, momentum=0.9)
        self.steps = 0

    def from_some_step_on(self):
        self.steps += 1
        if self.steps > 6:
            self.example_inputs[0].data = self.example_inputs[0].data.contiguous()
        return self.example_inputs[0]

    def train(self):
        self.optimizer.zero_grad()
        self.model({inputs}).square().sum().backward()
        self.optimizer.step()
"""
"""A model of upstream's own step, over inputs that it holds, makes in each step, or lays out anew later."""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A small checkout of TorchBench with three convolutions that train themselves."""
    source = Path(__file__).parents[1] / "suites" / "fake_torchbench.py"
    spec = importlib.util.spec_from_file_location("fake_torchbench", source)
    assert spec is not None
    assert spec.loader is not None
    fake = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(fake)
    folder = tmp_path / "checkout"
    models = {
        "dcgan": "*self.example_inputs",
        "phlippe_densenet": "self.example_inputs[0].clone().contiguous()",
        "phlippe_resnet": "self.from_some_step_on()",
    }
    for name, inputs in models.items():
        fake.MODELS[name] = UPSTREAM.replace("{inputs}", inputs)
    fake.write(folder)
    return folder


def rows_of(sandbox: Any, *words: str) -> dict[str, Any]:
    """Run models, and return the rows by model, mode and configuration."""
    done = sandbox.measure(*words, "--device", "cpu")
    assert done.returncode in {0, 1, 3}, done.stderr
    cases = [(row.case, row) for row in sandbox.rows()]
    return {f"{one.workload.model} {one.workload.mode} {one.configuration.name}": row for one, row in cases}


@pytest.mark.parametrize("mode", ["inference", "training"])
def test_it_is_held_to_contiguous_tensors_and_timed_beside_its_own_eager(sandbox: Any, mode: str) -> None:
    """Eager and compiled pass over images, the second with a speed-up over the first."""
    rows = rows_of(sandbox, "toy", "--models", "convnet", "--mode", mode, "--config", BOTH)
    assert {row.status.value for row in rows.values()} == {"pass"}, rows
    compiled = rows[f"convnet {mode} inductor-channels-last"]
    assert any(each.metric == "speedup" for each in compiled.measurements)
    eager = rows[f"convnet {mode} eager-channels-last"]
    assert eager.accuracy.reference == "float64 on the host"
    assert eager.accuracy.max_abs_error > 0.0
    assert {row.case.configuration.memory_format for row in rows.values()} == {"channels_last"}


@pytest.mark.parametrize(
    ("model", "why"),
    [
        (
            "mlp",
            "channels_last changes nothing: no input and no parameter of four dimensions has another layout",
        ),
        ("sum", "the workload does not use torch and has no memory format"),
    ],
)
def test_a_model_without_images_is_not_measured_as_if_it_had_them(sandbox: Any, model: str, why: str) -> None:
    """It is unsupported, with the reason."""
    rows = rows_of(sandbox, "toy", "--models", model, "--config", "eager-channels-last")
    assert [(row.status.value, row.reason) for row in rows.values()] == [("unsupported", why)]


def test_the_timed_step_hands_over_channels_last_tensors(sandbox: Any) -> None:
    """By the profiler's own word: channels are next to each other in the image and in the weight."""
    path = sandbox.store_path.parent / "trace.json"
    case = "toy/convnet:inference:float32:b8:eager-channels-last@cpu"
    done = sandbox.run(
        "repro", case, "--trace", str(path), *sandbox.quick, "--store", str(sandbox.store_path)
    )
    assert done.returncode == 0, done.stderr
    events = json.loads(path.read_text())["traceEvents"]
    strides = [each["args"]["Input Strides"][:2] for each in events if each["name"] == "aten::conv2d"]
    assert len(strides) == 6
    assert strides[0] == [[768, 1, 48, 3], [27, 1, 9, 3]]
    assert {stride[1] for pair in strides for stride in pair} == {1}


@pytest.mark.parametrize(
    ("model", "status", "said"),
    [
        ("dcgan", "pass", ""),
        (
            "phlippe_densenet",
            "error",
            "the configuration did not run: the layout of args.0 is not channels_last",
        ),
        (
            "phlippe_resnet",
            "error",
            "the configuration did not run: the layout of example_inputs.0 is not channels_last",
        ),
    ],
)
def test_upstreams_own_step_is_watched(
    sandbox: Any, checkout: Path, model: str, status: str, said: str
) -> None:
    """What upstream's object holds has the layout; contiguous inputs are found in whichever step."""
    words = ("--models", model, "--mode", "training", "--config", BOTH, "--torchbench", str(checkout))
    rows = rows_of(sandbox, "torchbench", *words)
    assert {row.status.value for row in rows.values()} == {status}, rows
    assert all(row.reason.endswith(said) for row in rows.values())
    assert len(rows) == 2


def test_a_backend_that_nobody_watches_takes_no_memory_format(sandbox: Any, tmp_path: Path) -> None:
    """A program of its own may hold its weights in any layout."""
    named = tmp_path / "own.yaml"
    named.write_text(
        "configurations:\n  - {name: mine, doc: x, backend: executorch, memory_format: channels_last}\n"
    )
    done = sandbox.run("validate", str(named))
    assert done.returncode == 2
    assert "backend executorch takes no memory_format" in done.stderr + done.stdout
