"""A real run on the asynchronous device shows what was planned, or that its clocks contradict each other."""

from __future__ import annotations

import sys
from pathlib import Path
from statistics import median

import pytest

from torchgauge.records import STEP_TIMES, Cause, Status

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

import asyncsim_truth  # noqa: E402

pytestmark = pytest.mark.torch

MODELS, CONFIGURATIONS = ("one-1ms", "two-10ms"), ("eager", "aot_eager")
TIMES_TOO_LONG = 100.0
"""What a busy machine may add, and never takes away; a wrong unit is more or less."""


def measure(folder, models, configurations, variables):
    """The rows of one run of chains of planned kernels."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(name, value)
        return asyncsim_truth.measure(folder, ",".join(models), ",".join(configurations), 0.2)


@pytest.fixture(scope="module")
def rows(tmp_path_factory, environment):
    """The rows of one run of a chain on one stream and one on two, eager and compiled."""
    found = measure(tmp_path_factory.mktemp("planned"), MODELS, CONFIGURATIONS, environment())
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
    assert -asyncsim_truth.ABSOLUTE_S <= median(samples["launch_overhead"]) < TIMES_TOO_LONG * planned


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("sync-returns-early", "synchronize does not wait: it returned"),
        pytest.param("clocks-lie-together", "synchronize does not wait: it returned", marks=pytest.mark.full),
        ("events-in-microseconds", "events contradict the host's clock: events gave"),
        pytest.param("events-zero", "events gave 0.0 s for work that took", marks=pytest.mark.full),
    ],
)
def test_clocks_that_lie_end_the_run_without_a_time(tmp_path, environment, fault, words):
    """The row says what was seen, in place of a number."""
    variables = environment(TORCHGAUGE_ASYNCSIM_FAULT=fault)
    (row,) = measure(tmp_path, ["one-1ms"], ["eager"], variables)
    assert (row.status, row.cause) == (Status.INFRA, Cause.CLOCK_CONTRADICTION), row.reason
    assert words in row.reason
    assert not {each.metric for each in row.measurements} & STEP_TIMES
