"""Runs to exchange: real stores with numbers that no format can hold by chance."""

from __future__ import annotations

from pathlib import Path

from torchgauge.harness.planning.configurations import bundled
from torchgauge.records import (
    METRICS,
    Accuracy,
    Case,
    Cause,
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
from torchgauge.results.interchange.imported_run import Known
from torchgauge.results.journal import End, Kind, RunState
from torchgauge.results.journal import results as journal_results
from torchgauge.results.stats import summarise
from torchgauge.results.store import Store

KNOWN = Known(METRICS, {name: each.configuration for name, each in bundled().items()})
ENVIRONMENT = Environment("fake", (("device.model", "Fake 9000"), ("torch.version", "2.13.0")))
AT = 1_780_000_000.0
BLOCKS = (0, 1, 2)


def case(model: str, configuration: str = "inductor", suite: str = "timm", **workload) -> Case:
    known: Configuration = KNOWN.configurations[configuration]
    return Case(Workload(suite, model, **{"batch": 4, **workload}), known, DeviceTarget("fake"))


def passed(of: Case, scale: float = 1.0) -> Result:
    walls = tuple(scale * value for value in (0.0123456789, 0.0123123, 0.0125))
    measurements = [Measurement("latency", "s", walls, BLOCKS, "clock")]
    if of.configuration.compiled:
        measurements += [
            Measurement("speedup", "ratio", (1.2345678, 1.3, 1.25), BLOCKS, "paired"),
            Measurement("compile_cold", "s", (31.25,)),
            Measurement("graph_count", "count", (2.0,)),
            Measurement("graph_breaks", "count", (1.0,)),
        ]
    measurements.append(Measurement("peak_memory", "B", (scale * 123_456_789.0,)))
    measurements.append(Measurement("latency_device", "s", absent="no events"))
    return result(of, Status.PASS, Phase.DONE, measurements)


def result(of: Case, status: Status, phase: Phase, measurements=(), *, cause=None, reason="") -> Result:
    return Result(
        "run",
        of.id,
        of,
        status,
        phase,
        None,
        cause=cause,
        reason=reason,
        measurements=tuple(measurements),
        summaries=tuple(summarise(each, METRICS[each.metric]) for each in measurements),
        accuracy=Accuracy("float64 copy", 1e-6) if status is Status.PASS else None,
        realised=Realised("0123456789abcdef", 10, 0, "float32[4]") if status is Status.PASS else None,
        environment_id=ENVIRONMENT.id,
        started_at=AT + 1,
    )


ENDINGS = {
    "accuracy": (Status.FAIL_ACCURACY, Phase.ACCURACY, Cause.TOLERANCE),
    "differs": (Status.FAIL_ACCURACY, Phase.EAGER, Cause.NONDETERMINISTIC_EAGER),
    "error": (Status.ERROR, Phase.COMPILE, None),
    "eager_error": (Status.ERROR, Phase.EAGER, None),
    "build_error": (Status.ERROR, Phase.BUILD, None),
    "oom": (Status.OOM, Phase.COMPILE, Cause.DEVICE),
    "eager_oom": (Status.OOM, Phase.EAGER, Cause.DEVICE),
    "timeout": (Status.TIMEOUT, Phase.MEASURE, None),
    "unsupported": (Status.UNSUPPORTED, Phase.BUILD, None),
    "infra": (Status.INFRA, Phase.START, None),
}
"""Model to an ending for which the CSV files have a word of its own."""

UNWORDED = {
    "crash": (Status.CRASH, Phase.COMPILE, Cause.SIGNAL),
    "skipped": (Status.SKIPPED, Phase.START, Cause.DECLARED),
    "not_run": (Status.NOT_RUN, Phase.START, Cause.BUDGET),
}
"""Model to an ending for which they have none."""


def everything() -> list[Result]:
    """Two models that passed with their eager side, two suites, and every ending."""
    found = [passed(case(model, each)) for model in ("resnet18", "vit") for each in ("eager", "inductor")]
    found.append(passed(case("meta-llama/Llama-3.2-1B", suite="huggingface", shape=(("seq", 128),)), 3.0))
    for name, (status, phase, cause) in {**ENDINGS, **UNWORDED}.items():
        found.append(result(case(name), status, phase, cause=cause, reason=f"because of {name}"))
    return found


def write(path: Path, results: list[Result]) -> tuple[Store, str]:
    """A store with one published run of ``results``."""
    store = Store.open(path, create=True)
    groups = tuple(
        Group(each.case.key, (PlannedCase(each.case, Tolerance(1e-3, 1e-3, 2.0, "test")),))
        for each in results
    )
    folder = store.begin(Plan("run", AT, ("torchgauge", "run"), RunSettings(), groups))
    with folder.open_journal() as journal:
        journal.append(Kind.ENVIRONMENT, [ENVIRONMENT])
        journal.append(Kind.RESULT, results)
        journal.append(Kind.END, [End(RunState.COMPLETE, AT + 60)])
    store.finish("run")
    return store, "run"


def rows(store: Store, run_id: str) -> dict[tuple[str, ...], Result]:
    """Results of a run by suite, model, mode, dtype, batch, configuration and device."""
    found = {}
    for each in journal_results(store.run(run_id).journal_path):
        work = each.case.workload
        run_as = (str(work.batch), each.case.configuration.name, str(each.case.device))
        found[(work.suite, work.model, work.mode, work.dtype, *run_as)] = each
    return found


def medians(row: Result) -> dict[str, float]:
    return {each.metric: each.median for each in row.summaries if each.median is not None}
