"""A real run on the asynchronous device shows what was planned; a busy machine makes no number smaller."""

from __future__ import annotations

import sys
from pathlib import Path
from statistics import median

import pytest

from torchgauge.records import Status

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

import asyncsim_truth  # noqa: E402

pytestmark = pytest.mark.torch

MODELS, CONFIGURATIONS = ("one-1ms", "two-10ms"), ("eager", "aot_eager")
TIMES_TOO_LONG = 3.0
"""What a busy machine may add; a wrong unit is more or less."""


@pytest.fixture(scope="module")
def rows(tmp_path_factory, environment):
    """The rows of one run of a chain on one stream and one on two, eager and compiled."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment().items():
            patch.setenv(name, value)
        folder = tmp_path_factory.mktemp("planned")
        found = asyncsim_truth.measure(folder, ",".join(MODELS), ",".join(CONFIGURATIONS), 0.2)
    return {(row.case.workload.model, row.case.configuration.name): row for row in found}


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("configuration", CONFIGURATIONS)
def test_measured_is_what_was_planned(rows, model, configuration):
    """Wall and device time are no shorter than planned, agree, and are not several times as long."""
    from planned_models import planned_s

    row = rows[model, configuration]
    assert row.status is Status.PASS, row.reason
    samples = {each.metric: each.samples for each in row.measurements}
    planned = planned_s(model)
    for metric in ("latency", "latency_device"):
        assert min(samples[metric]) >= planned - 1e-6, metric
        assert median(samples[metric]) < TIMES_TOO_LONG * planned, metric
    assert -asyncsim_truth.ABSOLUTE_S <= median(samples["launch_overhead"]) < planned
