"""Builds stores of nightly runs by the package's own API: one value per case and night."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from torchgauge.records import (
    METRICS,
    Case,
    Configuration,
    DeviceTarget,
    Environment,
    Group,
    Measurement,
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
from torchgauge.results.journal import End, Kind, RunState
from torchgauge.results.stats import summarise
from torchgauge.results.store import Store

BEGIN = 1_780_000_000.0
DAY = 86_400.0


def case(model: str = "noop") -> Case:
    return Case(Workload("toy", model), Configuration("eager", "eager"), DeviceTarget("fake"))


def environment(version: str, machine: str = "big") -> Environment:
    return Environment("fake", (("machine", machine), ("torch.version", version)), (), ())


def night(
    path: Path,
    number: int,
    values: dict[str, float | None],
    *,
    version: str = "",
    python: str = "",
    machine: str = "big",
    name: str = "night",
    code: str = "",
    built: str = "",
) -> str:
    """One published run at night ``number``; a value of None is a case that failed."""
    version = version or f"2.{number}"
    where = environment(version, machine)
    at, run_id = BEGIN + number * DAY, f"{name}-{number:03d}"
    tolerance = Tolerance(1e-3, 1e-3, 2.0, "test")
    cases = {model: case(model) for model in values}
    groups = tuple(Group(model, (PlannedCase(each, tolerance),)) for model, each in cases.items())
    plan = Plan(run_id, at, ("torchgauge", "run"), RunSettings(), groups, python=python)
    store = Store.open(path, create=True)
    folder = store.begin(plan)
    results = []
    for model, value in values.items():
        measured = () if value is None else (Measurement("latency", "s", (value,) * 3),)
        results.append(
            Result(
                run_id=run_id,
                case_id=cases[model].id,
                case=cases[model],
                status=Status.ERROR if value is None else Status.PASS,
                phase=Phase.COMPILE if value is None else Phase.DONE,
                expected=None,
                measurements=measured,
                summaries=tuple(summarise(each, METRICS[each.metric]) for each in measured),
                environment_id=where.id,
                started_at=at + 60,
                duration_s=1.0,
                facts=(("model_code", code),) if code else (),
                realised=Realised(built, 6, 0, "") if built and value is not None else None,
                reproduce="torchgauge run",
            )
        )
    with folder.open_journal() as journal:
        journal.append(Kind.ENVIRONMENT, [where])
        journal.append(Kind.RESULT, results)
        journal.append(Kind.END, [End(RunState.COMPLETE, at + 120)])
    store.finish(run_id)
    return run_id


def history(path: Path, values: Sequence[float | None], model: str = "noop", **more: str) -> None:
    """One run per value."""
    for number, value in enumerate(values):
        night(path, number, {model: value}, **more)
