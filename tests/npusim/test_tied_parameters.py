"""Weights that `.to()` unties on a device out of PyTorch's tree: measured as what they then are, and said."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from torchgauge.records import Status

sys.path.insert(0, str(Path(__file__).parent))
from simulated_run import deviation, measure

pytestmark = pytest.mark.torch
DATA = "suite: tied\nmodels:\n  - {name: gpt2, tiers: [smoke], batch: {training: 2}}\n"
SUITE = '''
"""A tiny GPT-2 of transformers, whose head is its embedding."""

from pathlib import Path

from torchgauge.suites.catalog import YamlSuite

DATA = Path(__file__).parent / "tied.yaml"
SUITE = YamlSuite(name="tied", doc="Tied.", data=DATA, builder="tied_suite:build")


def build(workload, recipe):
    """Two layers, sixty words."""
    import torch
    from torchgauge.suites.suite import BuiltWorkload
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(workload.seed)
    none = dict(resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, use_cache=False)
    small = GPT2Config(vocab_size=60, n_positions=16, n_embd=16, n_layer=2, n_head=2, **none)
    model, words = GPT2LMHeadModel(small), torch.randint(0, 60, (2, 8))
    assert model.lm_head.weight is model.transformer.wte.weight
    inputs = {"input_ids": words, "labels": words}
    return BuiltWorkload(model, kwargs=inputs, loss=lambda found: found.loss, items_per_step=2)
'''
POINTS = "[torchgauge.suites]\ntied = tied_suite:SUITE\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with an installed suite of one model with tied weights."""
    if not __import__("importlib.util").util.find_spec("transformers"):
        pytest.skip("transformers is not installed")
    information = tmp_path / "tied-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: tied\nVersion: 1.0\n", encoding="utf-8"
    )
    (information / "entry_points.txt").write_text(POINTS, encoding="utf-8")
    (tmp_path / "tied.yaml").write_text(DATA, encoding="utf-8")
    (tmp_path / "tied_suite.py").write_text(SUITE, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("fault", "untied"), [("", "lm_head.weight: `.to()` created new parameters"), ("keeps_parameters", None)]
)
def test_a_model_with_tied_weights_trains(folder: Path, fault: str, untied: str | None) -> None:
    """Where `.to()` unties, the reference is untied as well, and the row says which weights are."""
    done = measure(
        folder, fault, "tied/gpt2", "--mode", "training", "--no-calibration", "--no-fallback-check"
    )
    row = done.row()
    assert row.status is Status.PASS, row.reason
    assert row.accuracy is not None
    assert "float64" in row.accuracy.reference
    assert dict(row.facts).get("untied_parameters") == untied


@pytest.mark.parametrize(("fault", "status"), [("", "unsupported"), ("keeps_parameters", "pass")])
def test_the_check_of_a_device_says_what_moving_a_model_does(tmp_path: Path, fault: str, status: str) -> None:
    """`torchgauge check` says what is lost and what to do; a device that keeps parameters is left alone."""
    found, reason = deviation(tmp_path, fault, "nn.parameters_stay")
    assert found == status, reason
    said = "tied weights are no longer tied and an earlier optimizer no longer updates the model"
    assert (said in reason) is (status == "unsupported")
