"""Rows of full size say what was built, and a model that is not what its name says cannot pose as it."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import pytest

from torchgauge.records import Cause, Modifier, Status
from torchgauge.suites.catalog import declared_parameters, workload_for
from torchgauge.suites.timm.suite import SUITE as TIMM

POSER = """
from pathlib import Path
from torchgauge.suites.catalog import YamlSuite
from torchgauge.suites.suite import BuiltWorkload
SUITE = YamlSuite("poser", "For tests.", Path(__file__).with_name("poser.yaml"), "torchgauge_poser:build")
def build(workload, recipe):
    import torch
    torch.manual_seed(0)
    return BuiltWorkload(module=torch.nn.Linear(8, 4).eval(), args=(torch.randn(workload.batch, 8),))
"""
DATA = """
suite: poser
models:
  - {name: honest, tiers: [smoke], batch: {inference: 2}, sizes: [small, full], parameters: 36}
  - {name: poser, tiers: [smoke], batch: {inference: 2}, sizes: [small, full], parameters: 1000000}
"""


@pytest.fixture
def poser(tmp_path: Path) -> str:
    """A PYTHONPATH entry with a suite one of whose models is smaller than it says."""
    folder = tmp_path / "plugin"
    info = folder / "torchgauge_poser-1.0.dist-info"
    info.mkdir(parents=True)
    (folder / "torchgauge_poser.py").write_text(POSER)
    (folder / "poser.yaml").write_text(DATA)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: torchgauge-poser\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[torchgauge.suites]\nposer = torchgauge_poser:SUITE\n")
    return str(folder)


@pytest.mark.torch
def test_a_small_model_does_not_pose_as_a_full_one(sandbox, poser: str) -> None:
    """Its row passes and is marked, with both counts, and no claim counts it; small ones declare nothing."""
    path = os.pathsep.join([sandbox.environment["PYTHONPATH"], poser])
    words = ("poser", "--device", "cpu", "--config", "eager")
    done = sandbox.measure(*words, "--size", "full", PYTHONPATH=path)
    assert done.returncode == 0, done.stderr
    rows = {row.case.workload.model: row for row in sandbox.rows()}
    assert {row.status for row in rows.values()} == {Status.PASS}
    assert {row.realised.parameters for row in rows.values()} == {36}
    assert {dict(row.facts)["items_per_step"] for row in rows.values()} == {1}  # and their batch is 2
    assert Modifier.OTHER_MODEL not in rows["honest"].modifiers
    assert rows["honest"].other_model == ""
    assert Modifier.OTHER_MODEL in rows["poser"].modifiers
    said = "the model that was built has 36 parameters, but its suite declares 1,000,000"
    assert rows["poser"].other_model == said
    assert f"{rows['poser'].case_id}: {said}" in done.stderr + done.stdout
    assert "1/2 pass: 2 pass (1 not counted)" in done.stderr + done.stdout
    claimed = sandbox.run(
        "results", "claim", "dashboard-pass-rate", "--suite", "poser", "--device", "cpu", "--config", "eager",
        "--tier", "smoke", "--json", "--store", str(sandbox.store_path), PYTHONPATH=path,
    )  # fmt: skip
    assert "the built model is not the named one: the model that was built has 36 " in claimed.stdout, claimed


@pytest.mark.torch
@pytest.mark.skipif(importlib.util.find_spec("timm") is None, reason="timm is not installed")
def test_a_real_full_model_is_what_it_says_and_one_that_does_not_fit_is_oom(sandbox) -> None:
    """One above the memory limit is a row with what it asks for; the next has its declared parameters."""
    done = sandbox.measure(
        "timm", "--models", "cait_m36_384,mobilenetv2_100", "--device", "cpu", "--config", "eager",
        "--size", "full", "--batch-profile", "small", "--no-accuracy", "--memory-limit", str(900_000_000),
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    rows = {row.case.workload.model: row for row in sandbox.rows()}
    declared = {entry.name: entry.parameters for entry in TIMM.models()}
    lost = rows["cait_m36_384"]
    assert (lost.status, lost.cause) == (Status.OOM, Cause.HOST_LIMIT)
    assert "limit 0.90 GB" in lost.reason
    count = declared["cait_m36_384"]
    assert count is not None
    assert lost.reason.endswith(f"its {count:,} parameters alone are {count * 4e-9:.1f} GB in float32")
    row = rows["mobilenetv2_100"]
    assert row.status is Status.PASS
    assert row.realised.parameters == declared["mobilenetv2_100"]
    assert len(row.realised.hash) == 16
    assert Modifier.OTHER_MODEL not in row.modifiers


def test_a_count_is_declared_of_full_random_models_alone() -> None:
    """Small models and published weights have sizes of their own."""
    entry = TIMM.models()[0]
    for size, weights, count in (
        ("full", "random", entry.parameters),
        ("small", "random", None),
        ("full", "pretrained", None),
    ):
        workload = workload_for("timm", entry, "inference", size=size, weights=weights)
        assert declared_parameters(workload, entry) == count
