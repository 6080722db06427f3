"""Builders of plans and results that fill every field that a store keeps."""

from __future__ import annotations

from dataclasses import replace

import pytest

from torchgauge.records import (
    Accuracy,
    Better,
    Calibration,
    Case,
    Cause,
    Configuration,
    DeviceTarget,
    Environment,
    Failure,
    Group,
    Measurement,
    Metric,
    Modifier,
    Phase,
    Plan,
    PlannedCase,
    Realised,
    Result,
    RunSettings,
    Status,
    Tolerance,
    Workload,
)
from torchgauge.results.stats import summarise
from torchgauge.results.store import Store

LATENCY = Metric("latency", "s", Better.LOWER, "wall time of one step")
MEMORY = Metric("peak_memory", "B", Better.LOWER, "peak memory")
CREATED_AT = 1_760_000_000.0
ENVIRONMENT = Environment(
    "fake",
    (("machine", "test"), ("torch", "2.9.0"), ("cores", 2)),
    (("load", 0.5),),
    ("clock not readable",),
)
CALIBRATION = Calibration("fake", "start", 1e9, 2e9, None, "no launch on this device")


class Build:
    """Plans, cases and results by short arguments."""

    latency, memory = LATENCY, MEMORY
    created_at, environment, calibration = CREATED_AT, ENVIRONMENT, CALIBRATION

    def case(self, model: str = "linear", configuration: str = "eager", device: str = "fake") -> Case:
        """A toy case."""
        workload = Workload("toy", model, batch=8, shape=(("seq", 16),))
        return Case(workload, Configuration(configuration, configuration), DeviceTarget(device))

    def plan(self, run_id: str = "run-1", models: tuple[str, ...] = ("linear", "conv"), **changes) -> Plan:
        """A plan of one eager case per model."""
        tolerance = Tolerance(1e-4, 1e-4, 2.0, "test")
        groups = tuple(
            Group(model, (PlannedCase(self.case(model), tolerance),), {"class": model}) for model in models
        )
        plan = Plan(run_id, CREATED_AT, ("torchgauge", "run", "toy"), RunSettings(), groups)
        return replace(plan, **changes)

    def result(
        self, run_id: str = "run-1", model: str = "linear", samples=(0.25, 0.125, 0.5), **changes
    ) -> Result:
        """A result that passed, with two metrics of which one is absent."""
        case = changes.pop("case", None) or self.case(model)
        measurements = (
            Measurement("latency", "s", tuple(samples), tuple(range(len(samples))), "steady", "precise"),
            Measurement("peak_memory", "B", absent="the device has no counter"),
        )
        result = Result(
            run_id=run_id,
            case_id=case.id,
            case=case,
            status=Status.PASS,
            phase=Phase.DONE,
            expected=None,
            measurements=measurements,
            summaries=(summarise(measurements[0], LATENCY), summarise(measurements[1], MEMORY)),
            realised=Realised("00ff00ff00ff00ff", 72, 0, "float32[8, 16]", ("tied weights",)),
            accuracy=Accuracy("float64", 1e-6, 1e-7, 1e-7, 1.0, 0.0),
            facts=(("threads", 1),),
            environment_id=ENVIRONMENT.id,
            started_at=CREATED_AT + 10,
            duration_s=1.5,
            log="logs/linear.log",
        )
        return replace(result, **changes)

    def crashed(self, run_id: str = "run-1", model: str = "conv", **changes) -> Result:
        """A result that crashed while it was compiled and has no measurements."""
        failure = Failure("RuntimeError", "no kernel", "aten/conv.py:7", "aten::conv2d", "aabb", "Traceback")
        return self.result(
            run_id,
            model,
            status=Status.CRASH,
            cause=Cause.SIGNAL,
            phase=Phase.COMPILE,
            reason="killed by signal 11",
            failure=failure,
            modifiers=(Modifier.DEGRADED, Modifier.FLAKY),
            measurements=(),
            summaries=(),
            realised=None,
            accuracy=None,
            facts=(),
            **changes,
        )

    def published(self, store: Store, run_id: str = "run-1", results=None, **plan_changes) -> None:
        """A finished run of a passing and a crashed case, in the tables of ``store``."""
        from torchgauge.results.journal import End, Kind, RunState

        folder = store.begin(self.plan(run_id, **plan_changes))
        with folder.open_journal() as journal:
            journal.append(Kind.ENVIRONMENT, [ENVIRONMENT])
            journal.append(Kind.CALIBRATION, [CALIBRATION])
            journal.append(Kind.RESULT, results or [self.result(run_id), self.crashed(run_id)])
            journal.append(Kind.END, [End(RunState.COMPLETE, CREATED_AT + 60)])
        store.finish(run_id)


@pytest.fixture(scope="session")
def build() -> Build:
    """The builders of records."""
    return Build()


@pytest.fixture
def store(tmp_path) -> Store:
    """An empty store."""
    return Store.open(tmp_path / "store", create=True)
