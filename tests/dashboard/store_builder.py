"""A small builder of real stores: records in, journal and Parquet out, by the package's own API."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from torchgauge.records import (
    METRICS,
    Accuracy,
    Calibration,
    Case,
    Cause,
    Configuration,
    DeviceTarget,
    Environment,
    Failure,
    Group,
    Measurement,
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
from torchgauge.results.journal import End, Kind, RunState
from torchgauge.results.stats import summarise
from torchgauge.results.store import Store

NOW = 1_767_268_800.0
"""2026-01-01 12:00 UTC."""

DAY = 86_400.0
EAGER = Configuration("eager", "eager")
INDUCTOR = Configuration("inductor", "inductor")
CPU, NPU = DeviceTarget("cpu"), DeviceTarget("npusim")


@dataclass
class RunBuilder:
    """Collects results of one run and publishes it; ``at`` is when it was planned."""

    run_id: str
    at: float
    results: list[Result] = field(default_factory=list)
    environments: list[Environment] = field(default_factory=list)
    calibrations: list[Calibration] = field(default_factory=list)

    def plan(self) -> Plan:
        tolerance = Tolerance(1e-3, 1e-3, 2.0, "test")
        groups = tuple(
            Group(f"g{index}", (PlannedCase(result.case, tolerance),))
            for index, result in enumerate(self.results)
        )
        return Plan(self.run_id, self.at, ("torchgauge", "run"), RunSettings(), groups)

    def write(self, path: Path, *, results: Iterable[Result] | None = None, publish: bool = True) -> None:
        """Journal ``results`` (all, unless given) and publish the run."""
        store = Store.open(path, create=True)
        folder = store.begin(self.plan())
        with folder.open_journal() as journal:
            journal.append(Kind.ENVIRONMENT, self.environments)
            journal.append(Kind.CALIBRATION, self.calibrations)
            journal.append(Kind.RESULT, list(self.results if results is None else results))
            if publish:
                journal.append(Kind.END, [End(RunState.COMPLETE, self.at + 3_600)])
        if publish:
            store.finish(self.run_id)


def environment(device: str) -> Environment:
    identity = (
        ("cpu", "AMD EPYC 9V74 80-Core Processor"),
        ("driver", "none" if device == "cpu" else "1.2.0"),
        ("machine", "x86_64, 2 cores, 8 GiB"),
        ("python", "3.12.4"),
        ("system", "Linux"),
        ("torch", "2.13.0+cpu"),
        ("torch_commit", "9ab1b31d2f7c"),
        ("transformers", "5.1.0"),
    )
    return Environment(
        device, identity, (("governor", "performance"), ("load_1min", 0.42)), ("shared machine",)
    )


def result(
    run: RunBuilder,
    case: Case,
    status: Status = Status.PASS,
    *,
    started: float | None = None,
    measurements: Sequence[Measurement] = (),
    **changes: object,
) -> Result:
    """A result of ``case``, added to ``run``; ``changes`` replace any field of the record."""
    never = status is Status.NOT_RUN
    base = Result(
        run_id=run.run_id,
        case_id=case.id,
        case=case,
        status=status,
        phase=Phase.DONE if status is Status.PASS else Phase.START if never else Phase.COMPILE,
        expected=None,
        measurements=tuple(measurements),
        summaries=tuple(summarise(m, METRICS[m.metric]) for m in measurements),
        environment_id="" if never else environment(case.device.name).id,
        started_at=0.0 if never else (run.at + 60 if started is None else started),
        duration_s=0.0 if never else 12.3,
        reproduce=f"torchgauge run {case.workload.suite} --case '{case.id}'",
    )
    made = replace(base, **changes)  # type: ignore[arg-type]
    run.results.append(made)
    return made


def timings(rng: random.Random, base_s: float, speedup: float | None, device: str) -> list[Measurement]:
    """Plausible measurements of one case: ``base_s`` is the eager latency in seconds."""
    factor = speedup or 1.0
    blocks = tuple(range(15))
    walls = tuple(base_s / factor * rng.lognormvariate(0, 0.01) for _ in blocks)
    stopped = "interval narrower than 1 %"
    found = [
        Measurement("latency", "s", walls, blocks, "perf_counter", stopped),
        Measurement("latency_cpu", "s", tuple(1.9 * wall for wall in walls), blocks, "process_time"),
        Measurement("latency_device", "s", absent="the device has no working timing events"),
        Measurement("throughput", "1/s", tuple(8 / wall for wall in walls), blocks, "perf_counter"),
        Measurement("flops", "FLOP", (3.6e9,), provenance="counted by operator"),
        Measurement("flops_rate", "FLOP/s", tuple(3.6e9 / wall for wall in walls), blocks, "perf_counter"),
        Measurement(
            "peak_memory",
            "B",
            (rng.uniform(0.5e8, 9e8),),
            provenance="rss_high_water_mark" if device == "cpu" else "device_allocator",
        ),
    ]
    if speedup is None:
        return found
    ratios = tuple(speedup * rng.lognormvariate(0, 0.01) for _ in blocks)
    return [
        *found,
        Measurement("speedup", "ratio", ratios, blocks, "paired by round", stopped),
        Measurement("compile_cold", "s", (rng.uniform(5, 60),), provenance="first call, empty cache"),
        Measurement("compile_warm", "s", (rng.uniform(0.5, 6),), provenance="first call, filled cache"),
        Measurement("graph_count", "count", (1.0,), provenance="dynamo counters"),
        Measurement("graph_breaks", "count", (0.0,), provenance="dynamo counters"),
    ]


ACCURACY = Accuracy("float64 copy", 3.1e-6, 4.2e-7, 3.9e-7, 1.08, 0.0, None, "")

MODELS = (
    ("timm", "resnet18"), ("timm", "resnet50"), ("timm", "mobilenetv3_small_100"),
    ("timm", "efficientnet_b0"),
    ("timm", "vit_tiny_patch16_224"), ("timm", "convnext_tiny"), ("timm", "regnety_002"),
    ("huggingface", "bert_base"), ("huggingface", "distilgpt2"), ("huggingface", "t5_small"),
    ("huggingface", "opt_125m"), ("toy", "mlp"),
)  # fmt: skip


def workloads() -> list[Workload]:
    """Twenty-four workloads: every model in inference and in training."""
    found = []
    for suite, model in MODELS:
        shape = (("seq", 128),) if suite == "huggingface" else ()
        found.append(Workload(suite, model, "inference", batch=8, shape=shape))
        found.append(Workload(suite, model, "training", batch=4, shape=shape))
    return found


def failure(message: str = "aten::_fused_sdp is not implemented") -> Failure:
    trace = (
        'Traceback (most recent call last):\n  File "torch/_inductor/graph.py", line 812, in call\n    raise'
    )
    return Failure("NotImplementedError", message, "torch/_inductor/graph.py:call", "aten::_fused_sdp",
                   "5f2d0a9c11aa07e3", f"{trace}\nNotImplementedError: {message}")  # fmt: skip


_ENDINGS: dict[int, tuple[Status, dict[str, object]]] = {
    3: (Status.FAIL_ACCURACY, {"cause": Cause.TOLERANCE, "reason": "RMSE ratio 7.2 exceeds 2",
                               "accuracy": replace(ACCURACY, rmse_ratio=7.2, detail="output 0")}),
    8: (Status.ERROR, {"failure": failure(), "log": "logs/x.log",
                       "log_excerpt": "compiling ...\nNotImplementedError"}),
    11: (Status.OOM, {"cause": Cause.DEVICE, "reason": "tried to allocate 2.1 GiB"}),
    17: (Status.TIMEOUT, {"reason": "compile took longer than 1200 s"}),
    19: (Status.CRASH, {"cause": Cause.SIGNAL, "reason": "SIGSEGV", "exit": "signal 11",
                        "log_excerpt": "Segmentation fault"}),
    20: (Status.UNSUPPORTED, {"reason": "float32 embedding bags are not supported by the device"}),
    21: (Status.SKIPPED, {"cause": Cause.DECLARED, "reason": "hangs, see https://example.invalid/1",
                          "expected": Status.SKIPPED, "modifiers": (Modifier.EXPECTED,)}),
    22: (Status.INFRA, {"cause": Cause.LOST_WORKER, "reason": "the worker's machine went away"}),
    23: (Status.NOT_RUN, {"cause": Cause.BUDGET, "reason": "the budget of the run ended first"}),
}  # fmt: skip


def realistic_store(path: Path) -> None:
    """Two devices, two configurations, 24 workloads, all ten statuses, an older and an unfinished run."""
    old, new = (
        RunBuilder("20251229T020000Z-aaaaaaaa", NOW - 3 * DAY),
        RunBuilder("20260101T100000Z-bbbbbbbb", NOW - 7_200),
    )
    rng = random.Random(7)
    for run in (old, new):
        for device in ("cpu", "npusim"):
            run.environments.append(environment(device))
            run.calibrations += [Calibration(device, "start", 1.42e11, 1.13e10, 2.1e-6),
                                 Calibration(device, "end", 1.39e11, 1.12e10, 2.2e-6)]  # fmt: skip
        for index, workload in enumerate(workloads()):
            for device in (CPU, NPU):
                for configuration in (EAGER, INDUCTOR):
                    _realistic(run, rng, index, Case(workload, configuration, device), run is old)
    old.write(path)
    new.write(path)
    open_run = RunBuilder("20260101T115500Z-cccccccc", NOW - 300)
    for workload in workloads()[:4]:
        result(open_run, Case(workload, EAGER, CPU))
    open_run.write(path, results=open_run.results[:1], publish=False)


def _realistic(run: RunBuilder, rng: random.Random, index: int, case: Case, old: bool) -> None:
    device, compiled = case.device.name, case.configuration.compiled
    hit = (
        index in _ENDINGS and (compiled if device == "cpu" else True) and not (device == "cpu" and index < 17)
    )
    if hit and not old:
        status, changes = _ENDINGS[index]
        result(run, case, status, **changes)
        return
    speedup = rng.uniform(0.95, 1.9) if compiled else None
    base = 0.002 * (1 + index) * (1 if device == "cpu" else 0.4)
    modifiers = (
        (Modifier.DEGRADED,)
        if compiled and index == 5
        else (Modifier.FLAKY,)
        if index == 9 and compiled
        else ()
    )
    result(
        run, case, measurements=timings(rng, base, speedup, device), modifiers=modifiers, accuracy=ACCURACY,
        realised=Realised("0123456789abcdef", 11_689_512, 9_620, "float32[8,3,224,224]"),
        facts=(("kernels", 41), ("cache", "cold")),
    )  # fmt: skip
