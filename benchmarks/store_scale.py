"""What a store of five million rows takes once its months are compacted: bytes, one series, latest matrix.

The rows are those of ``dashboard_store.py`` over a year of nights on 4 devices, made less alike: each number
of an accuracy check has noise of its own, durations too, and rows that did not pass say so in words and a log
excerpt that differ from row to row. Rows of all tables count, but for raw samples: those of the newest
``--sampled`` nights are written and told apart. Journals and plans are stand-ins of a few bytes, which
compaction checks against their seals and does not read. ::

    python benchmarks/store_scale.py OUT                  5,700,000 rows in OUT/store; takes 700 MB of disk
    python benchmarks/store_scale.py OUT --nights 40 --models 20

Asked are 300 MB, 150 ms for one series over a year and 500 ms for the latest matrix; times are of seven in
one warm process, each with a store that was opened anew, and CPU time stands beside: the machine may be busy.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dashboard_store
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from torchgauge.results import frames
from torchgauge.results.compacted.compaction import compact
from torchgauge.results.publication import VERSION_KEY
from torchgauge.results.query import query
from torchgauge.results.seal import seal
from torchgauge.results.store import RunFolder, Store
from torchgauge.results.tables import TABLES

ACCURACY = ("max_abs_error", "rmse", "rmse_eager", "rmse_ratio", "eager_spread", "cosine")
SAMPLES = 15
COLUMNS = ("run_id", "started_at", "torch_version", "median", "low", "high")
"""What a series is drawn of."""
METADATA = {VERSION_KEY: b"5"}


def vary(store: Store, run: str, seed: int, sampled: bool) -> None:
    """Make the rows of a run less alike, give it samples where it is ``sampled``, and seal it."""
    rng = np.random.default_rng([seed, 7])
    path = store.table_path("results", run)
    table = pq.read_table(path)
    count = table.num_rows
    passed = np.asarray([status == "pass" for status in table["status"].to_pylist()])
    for name in ACCURACY:
        noise = np.where(passed, rng.lognormal(-14, 2, count), np.nan)
        table = _with(table, name, pa.array(noise, pa.float64(), from_pandas=True))
    table = _with(table, "duration_s", pa.array(rng.lognormal(2.5, 0.8, count).round(4)))
    words = rng.integers(0, 1 << 40, count)
    for name in ("reason", "log_excerpt", "error_message"):
        said = [
            text and f"{text} [pid {word % 60_000}, at 0x{word:x}]"
            for text, word in zip(table[name].to_pylist(), words.tolist(), strict=True)
        ]
        table = _with(table, name, pa.array(said, pa.string()))
    pq.write_table(table.replace_schema_metadata(METADATA), path, compression="zstd")
    if sampled:
        _sample(store, run, rng)
    folder = RunFolder(store.path / "runs" / run)
    created_at = json.loads(folder.info_path.read_bytes())["created_at"]
    folder.plan_path.write_text(json.dumps({"run_id": run, "created_at": created_at, "groups": []}))
    folder.journal_path.write_bytes(b"")
    seal(store.path, folder, [store.table_path(name, run) for name in TABLES])


def _with(table: Any, name: str, values: Any) -> Any:
    return table.set_column(table.column_names.index(name), table.schema.field(name), values)


def _sample(store: Store, run: str, rng: Any) -> None:
    """Fifteen samples around each median of a latency."""
    table = pq.read_table(store.table_path("summaries", run), columns=["case_key", "metric", "median"])
    rows = [row for row in table.to_pylist() if row["metric"] == "latency"]
    medians = np.repeat([row["median"] for row in rows], SAMPLES)
    made = {
        "run_id": [run] * len(medians),
        "case_key": np.repeat([row["case_key"] for row in rows], SAMPLES).tolist(),
        "metric": ["latency"] * len(medians),
        "block": list(range(SAMPLES)) * len(rows),
        "index": list(range(SAMPLES)) * len(rows),
        "value": (medians * rng.lognormal(0, 0.01, len(medians))).tolist(),
    }
    path = store.table_path("samples", run)
    path.parent.mkdir(exist_ok=True)
    samples = pa.Table.from_pydict(made, schema=TABLES["samples"].schema).replace_schema_metadata(METADATA)
    pq.write_table(samples, path, compression="zstd")


def timed(of: Callable[[], object]) -> str:
    """The median and the best of seven, in milliseconds of wall time, and the median of CPU time."""
    of()
    wall, cpu = [], []
    for _ in range(7):
        begin, begin_cpu = time.perf_counter(), time.process_time()
        of()
        wall.append(1e3 * (time.perf_counter() - begin))
        cpu.append(1e3 * (time.process_time() - begin_cpu))
    return (
        f"{statistics.median(wall):,.0f} ms (best {min(wall):,.0f} ms; CPU {statistics.median(cpu):,.0f} ms)"
    )


def size(folder: Path, pattern: str = "**/*") -> float:
    """MB (10^6 bytes) of files."""
    return sum(path.stat().st_size for path in folder.glob(pattern) if path.is_file()) / 1e6


def answers(path: Path, case: str) -> None:
    """Time the questions of the goals."""

    def series() -> int:
        conditions = [f"case_id={case}", "metric=latency"]
        return len(query(Store.open(path), conditions, "summaries", columns=COLUMNS))

    def matrix() -> tuple[int, ...]:
        return frames.matrix(Store.open(path), "latency").shape

    print(f"one series, {series()} rows of {case}: {timed(series)}; asked: 150 ms")
    print(f"latest matrix of {matrix()}: {timed(matrix)}; asked: 500 ms")


def made(folder: Path, shape: dashboard_store.Shape, sampled_nights: int) -> None:
    """Write the store and say what is in it."""
    begin = time.perf_counter()
    store = Store(dashboard_store.generate(folder, shape))
    runs = store.published()
    sampled = set(runs[-sampled_nights * shape.devices :])
    for number, run in enumerate(runs):
        vary(store, run, number, run in sampled)
    paths = {name: [store.table_path(name, run) for run in runs] for name in TABLES}
    counts = {
        name: sum(pq.read_metadata(path).num_rows for path in of if path.is_file())
        for name, of in paths.items()
    }
    rows = sum(counts.values()) - counts["samples"]
    print(f"{rows:,} rows and {counts['samples']:,} samples of {len(runs)} runs: {counts}")
    took, before = time.perf_counter() - begin, size(store.path / "tables")
    print(f"made in {took:,.0f} s; tables of runs: {before:,.0f} MB", flush=True)


def compacted(path: Path) -> None:
    """Compact the store and say what it took."""
    begin = time.perf_counter()
    reports = compact(Store.open(path))
    took = time.perf_counter() - begin
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{len(reports)} months in {took:,.0f} s; peak memory of this process {peak:,.0f} MB")
    folder = path / "compacted"
    samples, latest = size(folder, "*/samples-*"), size(folder, "*/latest_*")
    print(f"compacted: {size(folder) - samples:,.0f} MB with {latest:,.0f} MB of latest rows; asked: 300 MB")
    print(f"and {samples:,.0f} MB of samples", flush=True)


def main() -> None:
    """Make a store, compact it and ask it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--nights", type=int, default=365)
    parser.add_argument("--models", type=int, default=148)
    parser.add_argument("--sampled", type=int, default=31, help="nights at the end that have raw samples")
    parser.add_argument("--keep", action="store_true", help="leave the store there, and take one that is")
    asked = parser.parse_args()
    path = asked.folder / "store"
    if not (asked.keep and path.is_dir()):
        made(asked.folder, dashboard_store.Shape(nights=asked.nights, models=asked.models), asked.sampled)
    compacted(path)
    case = frames.results(Store.open(path), Store.open(path).published()[-1])["case_id"][40]
    answers(path, case)
    if not asked.keep:
        shutil.rmtree(path)


if __name__ == "__main__":
    main()
