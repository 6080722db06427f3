"""The columns of the CSV files of PyTorch's dynamo runner, and our metrics for them.

The runner multiplies memory on the host by a percentage and not by a part of one: its "gigabytes" there are
a hundredth of what they say. They are read and written in that unit, so that our bytes are right and a file
of ours can be laid beside one of upstream's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from torchgauge import records
from torchgauge.records import Measurement, Metric
from torchgauge.records.metrics import GIGABYTE
from torchgauge.suites.suite import HOST

FORM = "dynamo-csv"
PERFORMANCE, ACCURACY, EXPECTED = "performance", "accuracy", "expected"

COUNTERS = (
    "calls_captured",
    "unique_graphs",
    "fallbacks_to_eager",
    "graph_breaks",
    "unique_graph_breaks",
    "autograd_captures",
    "autograd_compiles",
    "cudagraph_skips",
)
MEMORY = ("compression_ratio", "eager_peak_mem", "dynamo_peak_mem")
COLUMNS: Mapping[str, tuple[str, ...]] = {
    PERFORMANCE: (
        "dev", "name", "batch_size", "speedup", "abs_latency", "compilation_latency", *MEMORY, *COUNTERS,
    ),
    ACCURACY: ("dev", "name", "batch_size", "accuracy", *COUNTERS, "compilation_latency"),
    EXPECTED: ("name", "accuracy", "graph_breaks"),
}  # fmt: skip
"""The columns that are written, in upstream's order."""
REQUIRED = {PERFORMANCE: 5, ACCURACY: 4, EXPECTED: 2}
"""How many of the first columns a file must have."""
MORE: Mapping[str, tuple[str, ...]] = {
    PERFORMANCE: ("tag", "baseline", "speedup_vs_baseline", "cache_lookup_latency"),
    ACCURACY: ("tag",),
    EXPECTED: ("calls_captured", "unique_graphs", "fallbacks_to_eager"),
}
"""Columns that are read where they are there."""

HOST_MEMORY = GIGABYTE / 100
"""Bytes of one unit of memory, as upstream counts it on the host."""

METRICS: Mapping[str, Metric] = {each.upstream: each for each in records.METRICS.values() if each.upstream}
"""Column to our metric; other numbers become facts."""
ZERO_IS_ABSENT = frozenset({"compilation_latency", *MEMORY})


NUMBERS = {*METRICS, *COUNTERS, *MEMORY, "baseline", "speedup_vs_baseline", "cache_lookup_latency"}


def memory_unit(device: str) -> float:
    """Bytes of one unit of memory in a file of upstream's about ``device``."""
    return HOST_MEMORY if device == HOST else GIGABYTE


def unit_of(column: str, device: str) -> float:
    """What one unit of ``column`` is in the base unit of our metric."""
    metric = METRICS[column]
    return memory_unit(device) if metric.name == "peak_memory" else metric.upstream_unit


def measurement(column: str, values: Iterable[float], device: str) -> Measurement:
    """The measurement of our metric that upstream calls ``column``; ``values`` are in upstream's unit."""
    metric, unit = METRICS[column], unit_of(column, device)
    provenance = f"{column} of PyTorch's dynamo runner"
    if column == "compilation_latency":
        provenance += ", possibly with a warm compile cache"
    samples = tuple(value * unit for value in values)
    return Measurement(metric.name, metric.unit, samples, provenance=provenance)
