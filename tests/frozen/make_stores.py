"""Makes the three stores beside it anew: ``PYTHONPATH=src python tests/frozen/make_stores.py [--measure]``.

``demo`` and ``forty_nights`` are drawn from seeds, so that equal code writes equal files. ``bringup`` was
measured once on the simulated device, is kept, and is only written again in today's schema; ``--measure``
measures it anew, in two minutes. A store is committed as plans and journals; its tables are made of them
where it is read.
"""

from __future__ import annotations

import json
import math
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from torchgauge.records import (
    METRICS,
    SCHEMA_VERSION,
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
    Outcome,
    Phase,
    Plan,
    PlannedCase,
    Realised,
    Result,
    RunSettings,
    Status,
    Tolerance,
    Workload,
    from_plain,
)
from torchgauge.records.comparison import Block, ComparisonPlan, Launch, Pair, Side, SideSpec
from torchgauge.results.comparing.comparison_store import begin_comparison
from torchgauge.results.comparing.judgement import Judge
from torchgauge.results.comparing.noise import NoiseHistory
from torchgauge.results.comparing.policy import Policy
from torchgauge.results.journal import End, Kind, PlanStamp, RunState
from torchgauge.results.journal_record import PAYLOADS
from torchgauge.results.matrix.state import CellState, MatrixState, write_state
from torchgauge.results.stats import summarise
from torchgauge.results.store import Store

STORES = Path(__file__).parent / "stores"
FIRST_NIGHT = 1_777_604_400.0
"""2026-05-01 03:00 UTC; the last night is 2026-06-09."""
DAY = 86_400.0
EAGER, INDUCTOR = Configuration("eager", "eager"), Configuration("inductor", "inductor")
CPU, NPU = DeviceTarget("cpu"), DeviceTarget("npusim")
TOLERANCE = Tolerance(1e-3, 1e-3, 2.0, "test")
ACCURACY = Accuracy("float64 copy", 3.1e-6, 4.2e-7, 3.9e-7, 1.08, 0.0, 0.9999, "")
COMMAND = ("torchgauge", "run")


def environment(device: str, torch: str, commit: str) -> Environment:
    """Return a machine of two cores with ``torch``."""
    identity = {
        "cpu.cores_available": 2,
        "cpu.model": "Frozen CPU",
        "device.model": f"Frozen {device}",
        "host.system": "Linux",
        "python.version": "3.12.4",
        "torch.commit": commit,
        "torch.version": torch,
    }
    return Environment(device, tuple(sorted(identity.items())), (("load_1min", 0.42),), ("shared machine",))


def measurements(
    rng: random.Random, case: Case, seconds: float, noise: float, blocks: int, *, faster: float = 1.37
) -> tuple[Measurement, ...]:
    """Return plausible metrics of a case that passed, each number with six digits."""

    def around(value: float) -> tuple[float, ...]:
        return tuple(float(f"{value * rng.lognormvariate(0, noise):.6g}") for _ in range(blocks))

    order, stopped = tuple(range(blocks)), "interval narrower than 1 %"
    rows = [
        Measurement("latency", "s", around(seconds), order, "perf_counter", stopped),
        Measurement("peak_memory", "B", (float(round(seconds * 4e9)),), (), "device_allocator"),
    ]
    if case.device == NPU:
        rows.append(Measurement("latency_device", "s", absent="the device has no working events"))
    if case.configuration.compiled:
        rows += [
            Measurement("speedup", "ratio", around(faster), order, "paired by round", stopped),
            Measurement("compile_cold", "s", (float(f"{seconds * 900:.6g}"),), (), "first call, empty cache"),
            Measurement("graph_breaks", "count", (1.0,), (), "dynamo counters"),
        ]
    return tuple(rows)


def result(
    case: Case, rows: tuple[Measurement, ...] = (), status: Status = Status.PASS, **changes: Any
) -> Result:
    """Return a row of ``case``; a run adds its own id, environment and time."""
    passed = status is Status.PASS
    row = Result(
        run_id="",
        case_id=case.id,
        case=case,
        status=status,
        phase=Phase.DONE if passed else Phase.COMPILE,
        expected=None,
        measurements=rows,
        summaries=tuple(summarise(each, METRICS[each.metric]) for each in rows),
        realised=Realised("0123456789abcdef", 11_689_512, 9_620, "float32[8,3,224,224]") if passed else None,
        accuracy=ACCURACY if passed else None,
        duration_s=12.5,
        reproduce=f"torchgauge run --case '{case.id}'",
    )
    return replace(row, **changes)


def write_run(
    store: Store,
    run_id: str,
    at: float,
    rows: list[Result],
    *,
    where: list[Environment],
    state: RunState = RunState.COMPLETE,
) -> None:
    """Write plan and journal of a run of ``rows``."""
    of = {each.device: each.id for each in where}
    groups = tuple(
        Group(f"g{number}", (PlannedCase(row.case, TOLERANCE),)) for number, row in enumerate(rows)
    )
    folder = store.begin(Plan(run_id, at, COMMAND, RunSettings(), groups))
    with folder.open_journal() as journal:
        journal.append(Kind.ENVIRONMENT, where)
        journal.append(
            Kind.CALIBRATION,
            [Calibration(each.device, "start", 1.42e11, 1.13e10, 2.1e-6) for each in where],
        )
        journal.append(
            Kind.RESULT,
            [
                replace(row, run_id=run_id)
                if row.status is Status.NOT_RUN
                else replace(row, run_id=run_id, environment_id=of[row.case.device.name], started_at=at + 60)
                for row in rows
            ],
        )
        journal.append(Kind.END, [End(state, at + 1_800)])


FAILURE = Failure(
    "NotImplementedError",
    "aten::_fused_sdp is not implemented for 'npusim'",
    "torch/_inductor/graph.py:call",
    "aten::_fused_sdp",
    "5f2d0a9c11aa07e3",
    'Traceback (most recent call last):\n  File "torch/_inductor/graph.py", line 812, in call\n    raise\n'
    "NotImplementedError: aten::_fused_sdp is not implemented for 'npusim'",
)
ENDINGS: dict[tuple[str, Configuration], tuple[Status, dict[str, Any]]] = {
    ("vit_tiny_patch16_224", EAGER): (
        Status.CRASH,
        {"cause": Cause.SIGNAL, "reason": "SIGSEGV", "exit": "signal 11", "phase": Phase.EAGER},
    ),
    ("vit_tiny_patch16_224", INDUCTOR): (Status.ERROR, {"failure": FAILURE}),
    ("efficientnet_b0", EAGER): (Status.UNSUPPORTED, {"reason": "float32 embedding bags are not supported"}),
    ("efficientnet_b0", INDUCTOR): (Status.ERROR, {"failure": FAILURE}),
    ("bert_base", EAGER): (Status.OOM, {"cause": Cause.DEVICE, "reason": "tried to allocate 2.1 GiB"}),
    ("bert_base", INDUCTOR): (Status.TIMEOUT, {"reason": "compile took longer than 1200 s"}),
    ("distilgpt2", EAGER): (
        Status.SKIPPED,
        {
            "cause": Cause.DECLARED,
            "reason": "hangs, see https://example.org/1",
            "expected": Status.SKIPPED,
            "modifiers": (Modifier.EXPECTED,),
        },
    ),
    ("distilgpt2", INDUCTOR): (
        Status.FAIL_ACCURACY,
        {
            "cause": Cause.TOLERANCE,
            "reason": "RMSE ratio 7.2 exceeds 2",
            "accuracy": replace(ACCURACY, rmse_ratio=7.2, detail="output 0"),
        },
    ),
    ("mlp", EAGER): (Status.INFRA, {"cause": Cause.LOST_WORKER, "reason": "the worker's machine went away"}),
    ("mlp", INDUCTOR): (
        Status.NOT_RUN,
        {"cause": Cause.BUDGET, "reason": "the budget of the run ended first", "duration_s": 0.0},
    ),
}  # fmt: skip
"""How cases of the simulated device end in the second stage: with its passes, in all ten statuses."""
MODELS = (
    ("timm", "resnet18", 8),
    ("timm", "vit_tiny_patch16_224", 8),
    ("timm", "efficientnet_b0", 4),
    ("huggingface", "bert_base", 4),
    ("huggingface", "distilgpt2", 1),
    ("toy", "mlp", 32),
    ("features", "attention.sdpa-causal", 2),
    ("features", "compile.regional-stack4", 2),
)


def make_demo(path: Path) -> None:
    """Write a demo in two stages: two models on the host, then all models on both devices."""
    store, rng = Store.open(path, create=True), random.Random(7)
    where = [environment(each.name, "2.13.0+cpu", "9ab1b31d2f7c") for each in (CPU, NPU)]
    passes = []
    for place, (suite, model, batch) in enumerate(MODELS):
        faster = 1.1 + 0.3 * place  # each model by another factor, so that kinds of means differ
        for configuration in (EAGER, INDUCTOR):
            for device in (CPU, NPU):
                shape = (("seq", 128),) if suite == "huggingface" else ()
                case = Case(
                    Workload(suite, model, "inference", batch=batch, shape=shape), configuration, device
                )
                seconds = (
                    0.0023
                    * (1 + place)
                    * (0.4 if device == NPU else 1)
                    / (faster if configuration.compiled else 1)
                )
                degraded = (model, configuration, device) == ("efficientnet_b0", INDUCTOR, CPU)
                modifiers = (Modifier.DEGRADED,) if degraded else ()
                passes.append(
                    result(
                        case, measurements(rng, case, seconds, 0.01, 6, faster=faster), modifiers=modifiers
                    )
                )
    first = [
        row
        for row in passes
        if row.case.device == CPU and row.case.workload.model in ("resnet18", "distilgpt2")
    ]
    write_run(store, "20260610T100000Z-aaaaaaaa", FIRST_NIGHT + 40 * DAY, first, where=where[:1])
    second = []
    for row in passes:
        ending = ENDINGS.get((row.case.workload.model, row.case.configuration))
        if row in first or (row.case.device == NPU and ending):
            if row not in first:
                second.append(result(row.case, (), ending[0], **ending[1]))
            continue
        second.append(row)
    write_run(
        store,
        "20260610T101000Z-bbbbbbbb",
        FIRST_NIGHT + 40 * DAY + 600,
        second,
        where=where,
        state=RunState.OUT_OF_BUDGET,
    )


NIGHTS = 40
STEP, FAILS, LOST, ABSENT, RETIRED = 24, 30, 20, 33, 28
"""Nights: a case is 8 % slower, one fails, a device is lost, there is none, a model is measured no more."""


def make_nights(path: Path) -> None:
    """Write forty nights of two devices, of each night's own torch, and A/B runs among them."""
    store, rng = Store.open(path, create=True), random.Random(11)
    for night in range(NIGHTS):
        if night == ABSENT:
            continue
        at = FIRST_NIGHT + night * DAY
        month, day = divmod(night, 31)
        where = [
            environment(
                each.name,
                f"2.14.0.dev2026{5 + month:02d}{day + 1:02d}+cpu",
                f"{night:02d}ab1b31d2f7c{night:02d}",
            )
            for each in (CPU, NPU)
        ]
        rows = [
            _nightly(rng, night, case, seconds)
            for case, seconds in NIGHTLY
            if case.workload.model != "rnn" or night < RETIRED
        ]
        for width, case in DRIFTS.items():
            seconds = 0.0031 * walk(width)[night]
            rows.append(result(case, measurements(random.Random(night), case, seconds, 0.001, 5)))
        write_run(store, f"2026{5 + month:02d}{day + 1:02d}T030000Z-{night:08x}", at, rows, where=where)
    for number in range(4):
        write_comparison(
            store, f"2026060{1 + number // 3}T{12 + number % 3:02d}0000Z-{number:08x}", number, 0.0, rng
        )
    write_comparison(store, "20260606T120000Z-0000aaaa", 40, 0.0, rng)
    write_comparison(store, "20260606T130000Z-0000bbbb", 41, 0.09, rng)
    rng = random.Random(13)  # what was drawn above stays as it is
    three = ("mlp", "convnet", "tinyformer")
    write_comparison(store, "20260606T140000Z-0000cccc", 42, 0.09, rng, models=three)
    for number in range(2):  # as many suspicions that do not repeat as put a case into quarantine
        run_id = f"20260606T15{number}000Z-{number:04x}dddd"
        write_comparison(store, run_id, 43 + number, 0.03, rng, models=("rnn", "gru"), fades=True)
    write_matrix(store)


def write_matrix(store: Store) -> None:
    """Write a version matrix of three versions of torch, two of which were measured against the first."""
    cells = (("2.12", ""), ("2.13", "20260606T130000Z-0000bbbb"), ("2.14", "20260606T140000Z-0000cccc"))
    state = MatrixState(
        "20260606T125000Z-0000eeee",
        FIRST_NIGHT + 36 * DAY,
        ("torchgauge", "matrix"),
        tuple(
            CellState(label, "base/bin/python", f"{label}.0+cpu", "9ab1b31d2f7c", (), "", run, True)
            for label, run in cells
        ),
        "2.12",
    )
    write_state(store, state)


NIGHTLY = (
    (Case(Workload("timm", "resnet18", batch=8), EAGER, CPU), 0.031),
    (Case(Workload("timm", "resnet18", batch=8), INDUCTOR, CPU), 0.022),
    (Case(Workload("timm", "resnet18", batch=8), INDUCTOR, NPU), 0.0088),
    (Case(Workload("toy", "mlp", batch=32), INDUCTOR, NPU), 0.00071),
    (Case(Workload("toy", "rnn", batch=8), EAGER, CPU), 0.0042),
)
DRIFTS = {
    0.032: Case(Workload("toy", "walks", batch=8), EAGER, CPU),
    0.0245: Case(Workload("toy", "strolls", batch=8), EAGER, CPU),
}
"""Cases whose latency goes by such steps, without a change: in all by more and by less than 5 %."""


def walk(width: float) -> list[float]:
    """Return levels of latency of all nights, each a step of ``width`` (log ratio) from the last."""
    rng, levels = random.Random(14), [1.0]
    for _ in range(NIGHTS):
        levels.append(levels[-1] * rng.lognormvariate(0, width))
    return levels[1:]


def _nightly(rng: random.Random, night: int, case: Case, seconds: float) -> Result:
    """Return the row of one case in one night."""
    model, device = case.workload.model, case.device
    level = rng.lognormvariate(0, 0.004)
    slower = 1.08 if (model, device) == ("resnet18", NPU) and night >= STEP else 1.0
    rows = measurements(rng, case, seconds * slower * level, 0.006, 5)
    if night == LOST and device == NPU:
        return result(case, (), Status.INFRA, cause=Cause.NO_DEVICE, reason="the device could not be opened")
    if model == "mlp" and night >= FAILS:
        return result(case, (), Status.ERROR, failure=FAILURE)
    return result(case, rows)


def write_comparison(
    store: Store,
    run_id: str,
    number: int,
    slower: float,
    rng: random.Random,
    *,
    models: tuple[str, ...] = ("mlp", "convnet"),
    fades: bool = False,
) -> None:
    """Write an A/B run; numbers below 40 measure head against head, of one model.

    The first model is slower, unless it ``fades`` and is confirmed; a third is twice as much faster.
    """
    at = FIRST_NIGHT + (31 + number // 3) * DAY if number < 40 else FIRST_NIGHT + 36 * DAY + number * 60
    control = number < 40
    models = ("mlp",) if control else models
    changes = dict(zip(models, (slower, 0.0, -2 * slower), strict=False))
    cases = [Case(Workload("toy", model, batch=32), EAGER, CPU) for model in models]
    pairs = tuple(Pair(case, case, control=control) for case in cases)
    base, head = SideSpec("base", "base/bin/python"), SideSpec("head", "head/bin/python")
    plan = ComparisonPlan(
        run_id,
        at,
        ("torchgauge", "ab"),
        RunSettings(),
        head if control else base,
        head,
        pairs,
        (),
        seed=number,
        max_launches=6,
    )
    judge = Judge(Policy.default(), NoiseHistory.empty(), pairs, plan.max_launches)
    launches: list[Launch] = []
    while wanted := judge.wanted():
        for each in wanted:
            pair = next(pair for pair in pairs if pair.key == each.pair_key)
            change = 0.0 if fades and each.confirms else changes[pair.base.workload.model]
            ratio = rng.gauss(0, 0.004) + change
            count = 1 + sum(launch.pair_key == pair.key for launch in launches)
            launches.append(_launch(pair, count, ratio, at + 60 * count, rng, confirms=each.confirms))
            judge.add(launches[-1])
    folder = begin_comparison(store, plan)
    with folder.open_journal() as journal:
        journal.append(Kind.ENVIRONMENT, [environment("cpu", "2.13.0+cpu", "9ab1b31d2f7c")])
        journal.append(Kind.LAUNCH, launches)
        journal.append(Kind.VERDICT, judge.verdicts())
        journal.append(Kind.END, [End(RunState.COMPLETE, at + 600)])


def _launch(
    pair: Pair, number: int, ratio: float, at: float, rng: random.Random, *, confirms: bool
) -> Launch:
    """Return a launch of four ABBA blocks, in which the head takes exp(``ratio``) times as long."""
    times = {Side.BASE: 1.3e-3, Side.HEAD: 1.3e-3 * math.exp(ratio)}
    order = (Side.BASE, Side.HEAD, Side.HEAD, Side.BASE)
    blocks = []
    for count in range(4):
        for place, side in enumerate(order):
            seconds = float(f"{times[side] * rng.lognormvariate(0, 0.002):.6g}")
            blocks.append(Block(side, count, place, (seconds,), (seconds,), (0.0,)))
    ends = {
        side: Outcome(
            case.key,
            Status.PASS,
            Phase.DONE,
            measurements=(Measurement("peak_memory", "B", (float(1 << 24),), (), "rss_high_water_mark"),),
        )
        for side, case in ((Side.BASE, pair.base), (Side.HEAD, pair.head))
    }
    return Launch(
        pair.key, pair.id, number, Side.BASE, ends[Side.BASE], ends[Side.HEAD], tuple(blocks),
        confirms=confirms, control=pair.control, started_at=at, setup_s=2.0, measure_s=3.0,
    )  # fmt: skip


BRINGUP = (
    *("bringup", "--device", "npusim", "--out", "out", "--threads", "1", "--budget", "8m"),
    *("--checks", "device.*,tensor.copy", "--ops", "exp,add,nn.functional.gelu"),
    *("--suites", "toy", "--models", "mlp", "--parts", "identity,check,ops,models"),
)
PLANTED = {
    "TORCHGAUGE_NPUSIM_FAULT": "changes_input=aten::exp",
    "TORCHGAUGE_NPUSIM_MISSING_OPS": "aten::gelu",
    "TORCHGAUGE_COMPILE_CACHE": "none",
    "OMP_NUM_THREADS": "1",
}


def measure_bringup(folder: Path) -> Path:
    """Bring the simulated device up in ``folder``, with what is planted in it; return its store."""
    subprocess.run(
        [sys.executable, "-m", "torchgauge.cli.main", *BRINGUP],
        env={**os.environ, **PLANTED},
        cwd=folder,
        check=False,
    )
    return folder / "out" / "store"


def write_again(source: Path, path: Path) -> None:
    """Write the runs of ``source`` into the new store ``path`` in today's schema, without paths."""
    store = Store.open(path, create=True)
    places = {sys.executable: "python3", sys.prefix: "venv", str(source.parent.parent): "work"}

    def read(text: str) -> Any:
        for place, name in places.items():
            text = text.replace(place, name)
        text = re.sub(r"/[\w./-]*?/(?=(?:src|packages|site-packages)/)", "", text)
        return json.loads(text, object_hook=_in_todays_schema)

    for folder in sorted((source / "runs").iterdir()):
        plan = from_plain(Plan, read((folder / "plan.json").read_text()))
        with store.begin(plan).open_journal() as journal:
            for line in map(read, (folder / "journal.jsonl").read_text().splitlines()):
                kind = Kind(line["kind"])
                if PAYLOADS[kind] is not PlanStamp:
                    journal.append(kind, [from_plain(PAYLOADS[kind], line["data"])])


def _in_todays_schema(value: dict[str, Any]) -> dict[str, Any]:
    return value | {"schema_version": SCHEMA_VERSION} if "schema_version" in value else value


def main() -> None:
    """Make all three."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        kept = measure_bringup(folder) if "--measure" in sys.argv else STORES / "bringup"
        write_again(kept, folder / "stores" / "bringup")
        make_demo(folder / "stores" / "demo")
        make_nights(folder / "stores" / "forty_nights")
        shutil.rmtree(STORES, ignore_errors=True)
        shutil.copytree(folder / "stores", STORES, ignore=shutil.ignore_patterns("tables"))


if __name__ == "__main__":
    main()
