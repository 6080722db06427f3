"""A large store of made-up results that the ordinary readers read, for the dashboard's benchmark.

The default is 1,003,200 rows: 212 nights, each of its own torch commit, on 4 devices with 200 models in 6
configurations, one run per night and device; the last device stops reporting 12 nights before the end. Five
metrics are summarised, those that the pages show: latency and peak memory, and of compiled configurations
speed-up and the compile times with a cold and a filled cache. About a quarter of the rows have no value.
All ten statuses occur, some configurations never work, single nights are lost to the machine, one model
is renamed half-way, and some latencies step up by 8 % on a known night. Equal parameters and seed give
equal tables.

Left out, since no page reads them: raw samples, journals, logs and plans (the runs say in ``run.json`` what
they planned). ``planted.json`` beside the store names the steps and the nights.

::

    python benchmarks/dashboard_store.py OUT              the million rows, in OUT/store
    python benchmarks/dashboard_store.py OUT --nights 5 --models 3
"""

from __future__ import annotations

import argparse
import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from torchgauge.clock import utc
from torchgauge.dashboard import arrow_columns as columns
from torchgauge.records import (
    SCHEMA_VERSION,
    Calibration,
    Case,
    Configuration,
    DeviceTarget,
    Environment,
    Status,
    Workload,
    to_plain,
)
from torchgauge.results.publication import VERSION_KEY
from torchgauge.results.rows import RunContext, calibration_row, environment_columns
from torchgauge.results.store import Store
from torchgauge.results.tables import TABLES

FIRST_NIGHT = 1_748_833_200.0
"""2025-06-02 03:00 UTC."""

DAY = 86_400.0
DEVICES = ("cpu", "cuda", "xpu", "npusim")
SUITES = ("huggingface", "timm", "torchbench")
CONFIGURATIONS = (
    Configuration("eager", "eager"),
    Configuration("inductor", "inductor"),
    Configuration("inductor-dynamic", "inductor", dynamic=True),
    Configuration("max-autotune", "inductor", compile_mode="max-autotune"),
    Configuration("reduce-overhead", "inductor", compile_mode="reduce-overhead"),
    Configuration("aot-eager", "aot_eager"),
)
STATUSES = tuple(Status)
LATENCY, SPEEDUP, COLD, WARM, MEMORY = range(5)
METRICS = (
    ("latency", "s", "lower", "perf_counter"),
    ("speedup", "ratio", "higher", "paired by round"),
    ("compile_cold", "s", "lower", "first call, empty cache"),
    ("compile_warm", "s", "lower", "first call, filled cache"),
    ("peak_memory", "B", "lower", "device_allocator"),
)
_BROKEN = (Status.ERROR, Status.UNSUPPORTED, Status.FAIL_ACCURACY, Status.OOM, Status.TIMEOUT, Status.CRASH,
           Status.SKIPPED)  # fmt: skip
_UNLUCKY = (Status.INFRA, Status.NOT_RUN, Status.ERROR, Status.TIMEOUT, Status.CRASH)


@dataclass(frozen=True)
class Shape:
    """How large the store is; ``silent`` nights at the end have nothing from the last device."""

    nights: int = 212
    devices: int = 4
    models: int = 200
    configurations: int = 6
    silent: int = 12
    steps: int = 12
    seed: int = 20_260_101

    @property
    def rows(self) -> int:
        """Rows of results."""
        runs = self.nights * self.devices - (min(self.silent, self.nights) if self.devices > 1 else 0)
        return runs * self.models * self.configurations


@dataclass(frozen=True)
class Step:
    """A latency that steps up by ``factor`` on ``night`` and stays."""

    device: str
    model: str
    configuration: str
    night: int
    factor: float


def generate(folder: Path, shape: Shape, only: Sequence[int] | None = None) -> Path:
    """Write ``folder/store`` and ``folder/planted.json``; ``only`` limits the nights that are written.

    A night's tables depend on the shape and its number alone, so that nights can be added later.
    """
    store = Store.open(folder / "store", create=True)
    devices = [Device(index, shape) for index in range(shape.devices)]
    for night in range(shape.nights) if only is None else only:
        for device in devices:
            if device.reports(night):
                _write_run(store, device, night)
    planted = {
        "shape": asdict(shape),
        "rows": shape.rows,
        "steps": [asdict(step) for device in devices for step in device.steps],
        "renamed": [device.renamed for device in devices if device.renamed],
    }
    (folder / "planted.json").write_text(json.dumps(planted, indent=1) + "\n")
    return store.path


def morning_after(store: Path) -> float:
    """Six hours after the newest night of a store by :func:`generate`: when its site is built and read.

    Built now, every one of its results would be stale: marked with its date, and in no mean.
    """
    shape = json.loads((store.parent / "planted.json").read_text())["shape"]
    return FIRST_NIGHT + (shape["nights"] - 1) * DAY + DAY / 4


class Device:
    """One device's cases and how they usually end."""

    def __init__(self, index: int, shape: Shape) -> None:
        """``index`` is the device's place in :data:`DEVICES`; more than these get an index of their own."""
        self.shape, self.index = shape, index
        self.target = DeviceTarget(DEVICES[index % len(DEVICES)], index // len(DEVICES))
        rng = np.random.default_rng([shape.seed, index])
        self.rename_night = shape.nights // 2
        self.before = [self._case(model, c, renamed=False) for model, c in self._pairs()]
        self.after = [self._case(model, c, renamed=True) for model, c in self._pairs()]
        self.renamed = {"from": self.before[0].workload.model, "to": self.after[0].workload.model,
                        "night": self.rename_night}  # fmt: skip
        cases = len(self.before)
        self.usual = np.full(cases, STATUSES.index(Status.PASS))
        broken = rng.random(cases) < 0.19
        self.usual[broken] = rng.choice([STATUSES.index(s) for s in _BROKEN], int(broken.sum()))
        model = np.arange(cases) // shape.configurations
        configuration = np.arange(cases) % shape.configurations
        base = np.random.default_rng(shape.seed).lognormal(-4.5, 1.1, shape.models)
        speed = rng.uniform(0.9, 2.2, cases)
        speed[configuration == 0] = 1.0
        self.latency = base[model] * (1.0 if index == 0 else 0.15 * (index + 1)) / speed
        self.speedup = speed
        self.cold = rng.uniform(4, 90, cases)
        self.memory = np.random.default_rng(shape.seed + 1).lognormal(20, 1, shape.models)[model]
        self.steps = self._steps(rng) if shape.nights > 3 else []

    def reports(self, night: int) -> bool:
        """Whether the device has a run of ``night``."""
        last = self.index == self.shape.devices - 1 and self.shape.devices > 1
        return not (last and night >= self.shape.nights - self.shape.silent)

    def cases(self, night: int) -> list[Case]:
        """The cases of ``night``."""
        return self.before if night < self.rename_night else self.after

    def lost(self, night: int) -> bool:
        """Whether the whole night was lost to the machine."""
        return bool(np.random.default_rng([self.shape.seed, self.index, night, 1]).random() < 0.015)

    def _pairs(self) -> list[tuple[int, int]]:
        return [(m, c) for m in range(self.shape.models) for c in range(self.shape.configurations)]

    def _case(self, model: int, configuration: int, renamed: bool) -> Case:
        suite = SUITES[model % len(SUITES)]
        name = f"net{model:03d}_{('tiny', 'base', 'large')[model // 3 % 3]}"
        if model == 0 and renamed:
            name += "_v2"
        workload = Workload(suite, name, "inference" if model % 4 else "training", batch=8)
        return Case(workload, CONFIGURATIONS[configuration], self.target)

    def _steps(self, rng: np.random.Generator) -> list[Step]:
        passing = np.flatnonzero(self.usual == STATUSES.index(Status.PASS))
        wanted = -(-self.shape.steps // self.shape.devices)
        places = rng.choice(passing, min(wanted, len(passing)), replace=False)
        nights = rng.integers(self.shape.nights // 2, self.shape.nights - 1, len(places))
        return [
            Step(
                str(self.target), self.after[p].workload.model, self.after[p].configuration.name, int(n), 1.08
            )
            for p, n in zip(places.tolist(), nights.tolist(), strict=True)
        ]


def commit(night: int) -> str:
    """The torch commit of ``night``."""
    return hashlib.sha256(f"commit {night}".encode()).hexdigest()[:40]


def environment(device: Device, night: int) -> Environment:
    """Where the run of ``night`` ran."""
    date = utc(FIRST_NIGHT + night * DAY)
    identity = (
        ("driver", f"{550 + night // 60}.{device.index}"),
        ("machine", f"x86_64, {16 * (device.index + 1)} cores"),
        ("python", "3.12.4"),
        ("torch.git_commit", commit(night)),
        ("torch.version", f"2.14.0.dev{date:%Y%m%d}"),
        ("transformers", f"5.{night // 50}.0"),
    )
    conditions = (("governor", "performance"), ("load_1min", round(0.1 + night % 7 / 10, 2)))
    return Environment(device.target.name, identity, conditions, ())


def _write_run(store: Store, device: Device, night: int) -> None:
    created_at = FIRST_NIGHT + night * DAY + 60.0 * device.index
    suffix = hashlib.sha256(f"{device.target} {night}".encode()).hexdigest()[:8]
    run_id = f"{utc(created_at):%Y%m%dT%H%M%SZ}-{suffix}"
    rng = np.random.default_rng([device.shape.seed, device.index, night])
    status = _statuses(device, night, rng)
    values = _values(device, night, status, rng)
    results = _results(device, night, run_id, created_at, status)
    where = environment(device, night)
    context = RunContext(run_id, created_at, {})
    tables = {
        "summaries": _summaries(results, values),
        "environments": pa.Table.from_pydict(
            environment_columns(run_id, where, 0), schema=TABLES["environments"].schema
        ),
        "calibrations": pa.Table.from_pylist(
            [
                calibration_row(
                    context.run_id, Calibration(device.target.name, at, 1.4e11, 1.1e10, 2.1e-6), i
                )
                for i, at in enumerate(("start", "end"))
            ],
            schema=TABLES["calibrations"].schema,
        ),
        "results": _arrow("results", results),
    }
    metadata = {VERSION_KEY: str(SCHEMA_VERSION).encode()}
    for name, table in tables.items():
        path = store.table_path(name, run_id)
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table.replace_schema_metadata(metadata), path, compression="zstd")
    words, counts = np.unique(status, return_counts=True)
    info = {
        "schema_version": SCHEMA_VERSION,
        "run_id": run_id,
        "created_at": created_at,
        "state": "complete",
        "planned": len(status),
        "counts": {STATUSES[w].value: int(n) for w, n in zip(words.tolist(), counts.tolist(), strict=True)},
    }
    folder = store.path / "runs" / run_id
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "run.json").write_text(json.dumps(to_plain(info), indent=1) + "\n")


def _statuses(device: Device, night: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    found = device.usual.copy()
    if device.lost(night):
        return np.full(len(found), STATUSES.index(Status.NOT_RUN))
    unlucky = rng.random(len(found)) < 0.06
    found[unlucky] = rng.choice([STATUSES.index(s) for s in _UNLUCKY], int(unlucky.sum()))
    recovered = (device.usual != STATUSES.index(Status.PASS)) & (rng.random(len(found)) < 0.02)
    found[recovered] = STATUSES.index(Status.PASS)
    return found


def _values(
    device: Device, night: int, status: npt.NDArray[np.int64], rng: np.random.Generator
) -> npt.NDArray[np.float64]:
    """``float64[5, 3, cases]``: median, low and high of every metric; NaN where there is none."""
    cases = len(status)
    noise = rng.lognormal(0, 0.01, (5, cases))
    median = np.stack([device.latency, device.speedup, device.cold, device.cold / 9, device.memory]) * noise
    for step in device.steps:
        if night >= step.night:
            for place, case in enumerate(device.after):
                if (case.workload.model, case.configuration.name) == (step.model, step.configuration):
                    median[LATENCY, place] *= step.factor
    half = median * rng.uniform(0.001, 0.008, (5, cases))
    found = np.stack([median, median - half, median + half], axis=1)
    found[[COLD, WARM, MEMORY], 1:] = np.nan
    found[SPEEDUP : WARM + 1, :, :: device.shape.configurations] = np.nan
    found[:, :, status != STATUSES.index(Status.PASS)] = np.nan
    return found


def _results(
    device: Device, night: int, run_id: str, created_at: float, status: npt.NDArray[np.int64]
) -> dict[str, list[Any]]:
    cases = device.cases(night)
    where = environment(device, night)
    torch = dict(where.identity)["torch.version"]
    names = [STATUSES[code] for code in status.tolist()]
    ran = [name is not Status.NOT_RUN for name in names]
    raised = [name in (Status.ERROR, Status.CRASH) for name in names]
    operator = [
        f"aten::op_{int(case.key[:2], 16) % 23}" if bad else None
        for case, bad in zip(cases, raised, strict=True)
    ]
    message = [op and f"{op} is not implemented for {device.target}" for op in operator]
    start = round(created_at * 1e6)
    return {
        **_names(cases, run_id),
        "configuration_compile": [
            json.dumps({"mode": c.configuration.compile_mode}) if c.configuration.compile_mode else None
            for c in cases
        ],
        "status": [name.value for name in names],
        "attempt": [1] * len(cases),
        "phase": [
            "done" if name is Status.PASS else "compile" if r else "start"
            for name, r in zip(names, ran, strict=True)
        ],
        "reason": [
            None if name is Status.PASS or bad else f"made up: {name.value}"
            for name, bad in zip(names, raised, strict=True)
        ],
        "unexpected": [
            name not in (Status.PASS, Status.UNSUPPORTED, Status.SKIPPED, Status.NOT_RUN) for name in names
        ],
        "modifiers": [
            ["degraded"] if name is Status.PASS and case.key.startswith("0") else []
            for name, case in zip(names, cases, strict=True)
        ],
        "error_type": ["NotImplementedError" if bad else None for bad in raised],
        "error_message": message,
        "error_frame": ["torch/_inductor/graph.py:call" if bad else None for bad in raised],
        "missing_op": operator,
        "fingerprint": [op and hashlib.sha256(op.encode()).hexdigest()[:16] for op in operator],
        "traceback": [
            text and f"Traceback (most recent call last):\n{_FRAMES}NotImplementedError: {text}"
            for text in message
        ],
        "realised_hash": [
            case.workload.declared_hash if name is Status.PASS else None
            for name, case in zip(names, cases, strict=True)
        ],
        "parameters": [11_689_512 if name is Status.PASS else None for name in names],
        "buffers": [9_620 if name is Status.PASS else None for name in names],
        "inputs": ["float32[8,3,224,224]" if name is Status.PASS else None for name in names],
        "realised_notes": [[] for _ in names],
        "accuracy_reference": ["float64 copy" if name is Status.PASS else None for name in names],
        "rmse": [4.2e-7 if name is Status.PASS else None for name in names],
        "environment_id": [where.id if r else None for r in ran],
        "torch_version": [torch if r else None for r in ran],
        "run_created_at": [start] * len(cases),
        "started_at": [start + 2_000_000 * (1 + i) if r else None for i, r in enumerate(ran)],
        "duration_s": [12.3 if r else 0.0 for r in ran],
        "log_excerpt": [
            f"compiling {case.workload.model} ...\n{text}" if text else None
            for case, text in zip(cases, message, strict=True)
        ],
        "reproduce": [f"torchgauge run {case.workload.suite} --case '{case.id}'" for case in cases],
        "schema_version": [SCHEMA_VERSION] * len(cases),
    }


_FRAMES = "".join(
    f'  File "torch/_inductor/{name}.py", line {line}, in {name}\n    return self.inner(*args)\n'
    for name, line in (("compile_fx", 1812), ("graph", 812), ("lowering", 477), ("scheduler", 2204))
)


def _names(cases: Sequence[Case], run_id: str) -> dict[str, list[Any]]:
    return {
        "run_id": [run_id] * len(cases),
        "case_id": [case.id for case in cases],
        "case_key": [case.key for case in cases],
        "suite": [case.workload.suite for case in cases],
        "model": [case.workload.model for case in cases],
        "mode": [case.workload.mode for case in cases],
        "dtype": [case.workload.dtype for case in cases],
        "batch": [case.workload.batch for case in cases],
        "size": [case.workload.size for case in cases],
        "shape": ["{}"] * len(cases),
        "seed": [case.workload.seed for case in cases],
        "weights": [case.workload.weights for case in cases],
        "declared_hash": [case.workload.declared_hash for case in cases],
        "configuration": [case.configuration.name for case in cases],
        "backend": [case.configuration.backend for case in cases],
        "device": [case.device.name for case in cases],
        "device_index": [case.device.index for case in cases],
    }


def _summaries(results: dict[str, list[Any]], values: npt.NDArray[np.float64]) -> Any:
    metric, place = np.nonzero(~np.isnan(values[:, 0, :]))
    order = np.lexsort((metric, place))
    metric, place = metric[order], place[order]
    of_metric = dict(zip(("metric", "unit", "better", "provenance"), zip(*METRICS, strict=True), strict=True))
    single = metric >= COLD
    made: dict[str, list[Any]] = {
        name: [of_metric[name][code] for code in metric.tolist()] for name in of_metric
    }
    for axis, name in enumerate(("median", "low", "high")):
        made[name] = [None if np.isnan(v) else v for v in values[metric, axis, place].tolist()]
    made["n"] = np.where(single, 1, 15).tolist()
    made["confidence"] = [0.95] * len(metric)
    made["method"] = ["too-few" if one else "order-statistic" for one in single.tolist()]
    made["stopped"] = [None if one else "interval narrower than 1 %" for one in single.tolist()]
    for column in TABLES["summaries"].columns:
        if column.name not in made and column.name in results:
            values_of = results[column.name]
            made[column.name] = [values_of[at] for at in place.tolist()]
    return _arrow("summaries", made)


def _arrow(table: str, data: dict[str, list[Any]]) -> Any:
    """``data`` with the columns of ``table``; what is not there is null."""
    schema, rows = TABLES[table].schema, len(data["run_id"])
    arrays = []
    for field in schema:
        values = data.get(field.name, [None] * rows)
        if pa.types.is_timestamp(field.type):
            whole = np.array([columns.NO_TIME if v is None else v for v in values], np.int64)
            arrays.append(columns.of_integers(whole, field.type))
        else:
            arrays.append(pa.array(values, field.type))
    return pa.Table.from_arrays(arrays, schema=schema)


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out", type=Path)
    for name, default in asdict(Shape()).items():
        parser.add_argument(f"--{name}", type=int, default=default)
    return parser.parse_args(arguments)


def main() -> None:
    """Write the store."""
    given = vars(parse())
    folder = given.pop("out")
    shape = Shape(**given)
    print(f"{shape.rows:,} rows in {generate(folder, shape)}")


if __name__ == "__main__":
    main()
