"""How many rows of result sets `torchgauge ci collect` validates in a second; asked are 10,000.

Prints one JSON object for two shapes of rows: ``checks`` (a status and a few facts, as most rows of a night
are) and ``models`` (seven metrics with thirty samples each, as the rows of measured models are). Timed is the
whole examination of an artifact: reading the zip under its caps, hashes, manifest, plan, and every row. The
best and the median of several rounds are given as wall and as CPU time, since the machine may be busy.
``--journal RUN_FOLDER`` takes a run of your own in place of both.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from torchgauge.harness.derived_series import launch_overhead, rate, throughput
from torchgauge.harness.planning.configurations import bundled
from torchgauge.harness.planning.plan import BY_THE_CHECK
from torchgauge.records import (
    METRICS,
    Accuracy,
    Case,
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
from torchgauge.results.store import RunFolder, Store
from torchgauge.workflows.campaign import CampaignPlan, PoolPlan, ShardPlan, terms_of
from torchgauge.workflows.ingest.intake import (
    Candidate,
    examine,
)
from torchgauge.workflows.ingest.validator import Expected
from torchgauge.workflows.result_set import Job, pack

BEGIN = 1_780_000_000.0
RUN = "20260528T202640Z-00000000"
ROUNDS = 7
CASES = {"checks": 10_000, "models": 3_000}
SAMPLES = 30
WHERE = Environment("fake", (("cpu.model", "bench"), ("torch.version", "2.13.0")))


def measurements(seed: int) -> tuple[Measurement, ...]:
    """Thirty samples of every metric that a measured model has, and those that follow from them."""
    made = [
        _series(name, seed, 1 + at) for at, name in enumerate(("latency", "latency_cpu", "latency_device"))
    ]
    latency, _, device = made
    flops = Measurement("flops", METRICS["flops"].unit, (1e6,), (), "counted", "read once")
    follow = (throughput(latency, 1), rate(latency, flops), launch_overhead(latency, device))
    return (*made, flops, *follow, _series("compile_cold", seed, 9))


def _series(name: str, seed: int, scale: int) -> Measurement:
    samples = tuple(1e-3 * scale * (1 + ((seed + i) % 13) / 997.0) for i in range(SAMPLES))
    return Measurement(name, METRICS[name].unit, samples, tuple(range(SAMPLES)), "clock", "precision")


def row(case: Case, shape: str, seed: int) -> Result:
    """A passing row of ``case`` in the shape of a check or of a measured model."""
    made = Result(
        run_id=RUN,
        case_id=case.id,
        case=case,
        status=Status.PASS,
        phase=Phase.DONE,
        expected=None,
        facts=(("forward", "close"), ("samples", 12), ("threads", 1)),
        environment_id=WHERE.id,
        started_at=BEGIN + 1 + seed * 1e-3,
        duration_s=0.123456789,
        exit="exit status 0",
        log="logs/bench.log",
        reproduce=f"torchgauge repro {case.id} --threads 1",
    )
    if shape == "checks":
        return made
    found = measurements(seed)
    return replace(
        made,
        measurements=found,
        summaries=tuple(summarise(each, METRICS[each.metric]) for each in found),
        realised=Realised("00ff00ff00ff00ff", 72, 0, "float32[8, 16]", ("tied weights",)),
        accuracy=Accuracy("float64 on the host", 1e-6, 1e-7, 1e-7, 1.0, 0.0),
    )


def of_case(template: Result, case: Case, number: int) -> Result:
    """``template`` as the row of ``case``."""
    command = f"torchgauge repro {case.id} --threads 1"
    started = BEGIN + 1 + number * 1e-3
    return replace(template, case_id=case.id, case=case, started_at=started, reproduce=command)


def journal(folder: Path, shape: str, count: int) -> RunFolder:
    """A finished run of ``count`` cases."""
    eager = bundled()["eager"].configuration
    cases = [Case(Workload("toy", f"case.number_{i}"), eager, DeviceTarget("fake")) for i in range(count)]
    tolerance = BY_THE_CHECK if shape == "checks" else Tolerance(1e-3, 1e-3, 2.0, "bench")
    groups = tuple(Group(case.key, (PlannedCase(case, tolerance),)) for case in cases)
    store = Store.open(folder, create=True)
    run = store.begin(Plan(RUN, BEGIN, ("torchgauge", "run"), RunSettings(), groups))
    template = row(cases[0], shape, 0)
    with run.open_journal() as lines:
        lines.append(Kind.ENVIRONMENT, [WHERE])
        for start in range(0, count, 500):
            part = range(start, min(start + 500, count))
            lines.append(Kind.RESULT, [of_case(template, cases[i], i) for i in part])
        lines.append(Kind.END, [End(RunState.COMPLETE, BEGIN + 60)])
    return run


def artifact(run: RunFolder, folder: Path) -> tuple[Path, Expected, int]:
    """The zip of the run's result set, what to hold it against, and its size in bytes before packing."""
    plan = run.plan()
    ids = tuple(planned.case.id for planned in plan.cases)
    shard = ShardPlan(1, 1, ids, 0.0, terms_of({planned.case.id: planned for planned in plan.cases}))
    pool = PoolPlan("pool", plan.cases[0].case.device.name, ("x",), "", 0.0, (shard,))
    campaign = CampaignPlan("bench", plan.created_at - 1, "2026-05-28", "o/n", "a" * 40, "", "", (pool,))
    out = folder / "set"
    pack(run, Job(campaign, pool, pool.shards[0]), out)
    path = folder / "set.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(out.iterdir()):
            archive.write(file, file.name)
    size = sum(file.stat().st_size for file in out.iterdir())
    return path, Expected(campaign, time.time()), size


def timed(work: Callable[[], object]) -> tuple[float, float]:
    """Wall and CPU seconds of ``work``."""
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - wall, time.process_time() - cpu


def figures(run: RunFolder, folder: Path) -> dict[str, float]:
    """Rows per second of the artifact of ``run``."""
    path, expected, size = artifact(run, folder)
    found = examine(path, expected, named=False)
    if not isinstance(found, Candidate):
        raise SystemExit(f"refused: {found}")
    rows = found.valid.rows
    rounds = [timed(lambda: examine(path, expected, named=False)) for _ in range(ROUNDS)]
    walls, cpus = zip(*rounds, strict=True)
    return {
        "rows": rows,
        "bytes_per_row": round(size / rows),
        "rows_per_s_wall_best": round(rows / min(walls)),
        "rows_per_s_wall_median": round(rows / statistics.median(walls)),
        "rows_per_s_cpu_best": round(rows / min(cpus)),
        "rows_per_s_cpu_median": round(rows / statistics.median(cpus)),
    }


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--journal", type=Path, metavar="RUN_FOLDER")
    given = parser.parse_args().journal
    found: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as name:
        if given is not None:
            found[given.name] = figures(RunFolder(given), Path(name))
        for shape, count in CASES.items() if given is None else ():
            folder = Path(name, shape)
            folder.mkdir()
            found[shape] = figures(journal(folder / "store", shape, count), folder)
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
