"""The one table of metrics: what a number is, in which unit, which way is better, and what is done with it.

Everything else reads it: the rules and tolerances of comparisons, the columns of dashboard and exports, what
a claim may be about. A package adds its own under the entry-point group ``torchgauge.metrics``
(:func:`torchgauge.registry.metrics`). Both processes import this: standard library only.

The number of a metric is the median of its samples, with the interval of :mod:`torchgauge.results.stats`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType

from torchgauge.records.status import UNCOUNTED, UNTIMED, Modifier, times_count


class Better(str, Enum):
    """Direction in which a metric improves."""

    LOWER = "lower"
    HIGHER = "higher"
    NEITHER = "neither"

    def worse(self, change: float) -> bool | None:
        """Whether a ``change`` of this sign is for the worse; None where neither direction is better."""
        return None if self is Better.NEITHER else (change > 0) == (self is Better.LOWER)


class Compared(str, Enum):
    """The rule by which two numbers of a metric are compared; in prose in ``docs/comparison.md``."""

    STEPS = "step time"
    RATIO = "ratio"
    MEMORY = "memory"
    EXACT = "exact"
    NOT = "not"


class View(str, Enum):
    """Where a metric stands beside the row of its case."""

    CORE = "core"
    HISTORY = "history"
    BRIEF = "brief"
    CLAIM = "claim"


@dataclass(frozen=True)
class Metric:
    """A named quantity in a base unit, with the direction in which it improves.

    A change matters beyond ``tolerance`` (relative) and ``floor`` (in the unit), which a policy may replace;
    ``launches`` is the least number of them that decides a ratio. ``of_a_step`` says that it is made of how
    long a step takes, ``of_the_compiler`` that it says nothing where the step did not run as compiled, and
    ``signed`` that it may fall below 0. ``upstream`` is its column in the files of PyTorch's dynamo runner,
    and ``upstream_unit`` what one unit of that is in ours. Raises ``ValueError`` for a name that is no word.
    """

    name: str
    unit: str
    better: Better
    doc: str
    compared: Compared = Compared.NOT
    tolerance: float = 0.0
    floor: float = 0.0
    launches: int = 3
    of_a_step: bool = False
    of_the_compiler: bool = False
    signed: bool = False
    views: tuple[View, ...] = ()
    upstream: str = ""
    upstream_unit: float = 1.0

    def __post_init__(self) -> None:
        if not is_metric_name(self.name) or not self.unit:
            raise ValueError(f"metric {self.name!r} in {self.unit!r}: needs a name such as tokens_per_s")

    @property
    def gain(self) -> str:
        """The name of a ratio of two numbers in which above 1 is better, such as ``speed-up``."""
        if self.better is Better.NEITHER:
            return "ratio"
        fast = self.of_a_step or self.unit == "s" or self.unit.endswith("/s")
        return "speed-up" if fast else "compression" if self.unit == "B" else "ratio"

    @property
    def least(self) -> float:
        """No value of it is below this."""
        return -math.inf if self.signed else 0.0


def is_metric_name(text: str) -> bool:
    """Whether ``text`` may name a metric: it becomes a column, a key and part of a file's name."""
    return re.fullmatch(r"[a-z][a-z0-9_]{0,63}", text) is not None


_LOWER, _HIGHER, _NEITHER = Better.LOWER, Better.HIGHER, Better.NEITHER
_HISTORY, _CLAIM = (View.HISTORY, View.CLAIM), (View.CLAIM,)
_HEAD = (View.CORE, View.BRIEF, *_HISTORY)
_STEPS, _RATIO, _EXACT = Compared.STEPS, Compared.RATIO, Compared.EXACT
MIB = 1 << 20
GIGABYTE = 1e9
STEP_TOLERANCE = 0.03
"""Relative change of a step time that matters where no policy says otherwise."""

_TABLE = (
    Metric("latency", "s", _LOWER, "wall time of one step",
           _STEPS, STEP_TOLERANCE, of_a_step=True, views=_HEAD, upstream="abs_latency", upstream_unit=1e-3),
    Metric("latency_device", "s", _LOWER, "device-event time of one step",
           _STEPS, STEP_TOLERANCE, of_a_step=True, views=_CLAIM),
    Metric("latency_cpu", "s", _LOWER, "CPU time of the process in one step",
           _STEPS, STEP_TOLERANCE, of_a_step=True, views=_CLAIM),
    Metric("launch_overhead", "s", _LOWER, "wall time minus device-event time of one step",
           of_a_step=True, signed=True),
    Metric("contention", "share", _LOWER, "share of time in which a thread waited for a CPU core"),
    Metric("latency_contended", "s", _LOWER, "wall time of one step in blocks excluded for contention",
           of_a_step=True),
    Metric("throughput", "1/s", _HIGHER, "items of one step divided by wall time",
           of_a_step=True, views=_HISTORY),
    Metric("speedup", "ratio", _HIGHER, "eager time divided by the time of this configuration",
           of_a_step=True, views=_HEAD, upstream="speedup"),
    Metric("speedup_compiled", "ratio", _HIGHER,
           "time of the compiled unquantised model divided by that of this configuration",
           of_a_step=True, views=_CLAIM),
    Metric("compile_cold", "s", _LOWER, "first call with an empty compile cache",
           _RATIO, 0.20, 1.0, of_the_compiler=True, views=(View.BRIEF, *_HISTORY),
           upstream="compilation_latency"),
    Metric("compile_warm", "s", _LOWER, "first call with a filled compile cache",
           _RATIO, 0.20, 1.0, of_the_compiler=True, views=_HISTORY),
    Metric("compile_cold_cpu", "s", _LOWER, "CPU time of the cold first call, with compiler processes",
           _RATIO, 0.20, 1.0, of_the_compiler=True, views=_CLAIM),
    Metric("compile_cold_children", "s", _LOWER, "CPU time of compiler processes, cold",
           of_the_compiler=True),
    Metric("compile_warm_cpu", "s", _LOWER, "CPU time of the warm first call, with compiler processes",
           _RATIO, 0.20, 1.0, of_the_compiler=True, views=_CLAIM),
    Metric("compile_warm_children", "s", _LOWER, "CPU time of compiler processes, warm",
           of_the_compiler=True),
    Metric("export_time", "s", _LOWER, "time of torch.export",
           _RATIO, 0.20, 1.0, of_the_compiler=True),
    Metric("package_compile", "s", _LOWER, "time to compile the model into a package",
           _RATIO, 0.20, 1.0, of_the_compiler=True),
    Metric("quantise_time", "s", _LOWER, "time to quantise the model, with calibration",
           _RATIO, 0.20, 1.0, of_the_compiler=True),
    Metric("lower_time", "s", _LOWER, "time to lower the model to an ExecuTorch program",
           _RATIO, 0.20, 1.0, of_the_compiler=True),
    Metric("package_load", "s", _LOWER, "time to load the package or program in the same process",
           _RATIO, 0.20, 1.0, of_the_compiler=True),
    Metric("package_size", "B", _LOWER, "size of the package or program, with weights",
           _RATIO, 0.05, 1.0 * MIB, of_the_compiler=True),
    Metric("delegated_share", "share", _HIGHER, "share of operators that the delegate runs",
           _EXACT, views=_CLAIM),
    Metric("delegated_time_share", "share", _HIGHER, "share of time in the delegate",
           views=_CLAIM),
    Metric("import_time", "s", _LOWER, "time to import torch in a new process",
           _RATIO, 0.20, 0.5, views=_CLAIM),
    Metric("graph_count", "count", _NEITHER, "graphs that dynamo captured in one step",
           _EXACT, of_the_compiler=True, views=_CLAIM, upstream="unique_graphs"),
    Metric("graph_breaks", "count", _LOWER, "graph breaks, counted by dynamo",
           _EXACT, of_the_compiler=True, views=_CLAIM, upstream="graph_breaks"),
    Metric("recompiles", "count", _LOWER, "recompilations of frames",
           _EXACT, of_the_compiler=True, views=_CLAIM),
    Metric("autograd_captures", "count", _NEITHER, "graphs that compiled autograd captured",
           _EXACT, of_the_compiler=True, views=_CLAIM),
    Metric("cache_hits", "count", _NEITHER, "compile cache hits of the warm compilation",
           of_the_compiler=True, views=_CLAIM),
    Metric("fx_cache_hits", "count", _NEITHER, "hits of inductor's graph cache", of_the_compiler=True),
    Metric("autograd_cache_hits", "count", _NEITHER, "hits of AOTAutograd's cache", of_the_compiler=True),
    Metric("peak_memory", "B", _LOWER, "peak memory of the steps, in a process of their own",
           Compared.MEMORY, 0.05, 8.0 * MIB, launches=6, views=(View.BRIEF, *_HISTORY),
           upstream="dynamo_peak_mem", upstream_unit=GIGABYTE),
    Metric("memory_growth", "B", _LOWER, "host memory that one step does not free", signed=True),
    Metric("memory_growth_device", "B", _LOWER, "device memory that one step does not free", signed=True),
    Metric("flops", "FLOP", _NEITHER, "floating-point operations of one step"),
    Metric("flops_rate", "FLOP/s", _HIGHER, "floating-point operations divided by wall time",
           of_a_step=True),
    Metric("bytes", "B", _NEITHER, "bytes that one step must read or write"),
    Metric("bytes_rate", "B/s", _HIGHER, "required bytes divided by wall time",
           of_a_step=True),
    Metric("algorithm_bandwidth", "B/s", _HIGHER, "tensor size divided by wall time of the slowest rank",
           of_a_step=True, views=_CLAIM),
    Metric("bus_bandwidth", "B/s", _HIGHER, "algorithm bandwidth times the bus factor of nccl-tests",
           of_a_step=True, views=_CLAIM),
    Metric("checkpoint_save", "s", _LOWER, "time to save a distributed checkpoint on all ranks",
           _RATIO, 0.20, 0.1, views=_CLAIM),
    Metric("checkpoint_load", "s", _LOWER, "time to load a checkpoint with another number of ranks",
           _RATIO, 0.20, 0.1, views=_CLAIM),
    Metric("checkpoint_size", "B", _LOWER, "size of a distributed checkpoint", _RATIO, 0.05, 1.0 * MIB,
           views=_CLAIM),
    Metric("attainable", "s", _NEITHER, "roofline: least time of a step at measured peak rates"),
    Metric("peak_share", "share", _HIGHER, "roofline time (`attainable`) divided by wall time",
           of_a_step=True, views=(View.BRIEF, *_HISTORY)),
    Metric("block_sparsity", "share", _NEITHER, "share of the attention mask's blocks that are skipped",
           _EXACT, views=_CLAIM),
    Metric("block_flops", "FLOP", _NEITHER, "operations of attention blocks that are not skipped"),
    Metric("block_flops_rate", "FLOP/s", _HIGHER, "operations of unskipped blocks divided by wall time",
           of_a_step=True),
    Metric("first_token_time", "s", _LOWER, "wall time until the host has the first token",
           _RATIO, 0.05, of_a_step=True, views=_CLAIM),
    Metric("output_token_time", "s", _LOWER, "mean wall time of each token after the first",
           _RATIO, 0.05, of_a_step=True, views=_CLAIM),
    Metric("inter_token_p50", "s", _LOWER, "median time between tokens",
           of_a_step=True, views=_CLAIM),
    Metric("inter_token_p90", "s", _LOWER, "90th percentile between tokens", of_a_step=True, views=_CLAIM),
    Metric("inter_token_p99", "s", _LOWER, "99th percentile between tokens", of_a_step=True, views=_CLAIM),
    Metric("prefill_rate", "1/s", _HIGHER, "prompt tokens divided by time to the first token",
           of_a_step=True, views=_CLAIM),
    Metric("decode_rate", "1/s", _HIGHER, "tokens after the first divided by wall time",
           of_a_step=True, views=_CLAIM),
    Metric("decode_bandwidth", "B/s", _HIGHER,
           "bytes of weights read per token divided by a token's wall time",
           of_a_step=True, views=_CLAIM),
    Metric("cache_size", "B", _NEITHER, "size of the KV cache", _EXACT, views=_CLAIM),
    Metric("top1_agreement", "share", _HIGHER, "share of tokens whose top-1 equals the reference's",
           views=_CLAIM),
    Metric("kl_divergence", "nat", _LOWER, "mean KL divergence of the reference from the result",
           views=_CLAIM),
    Metric("perplexity", "ratio", _NEITHER, "perplexity of a text", views=_CLAIM),
    Metric("perplexity_ratio", "ratio", _NEITHER, "perplexity divided by the reference's", views=_CLAIM),
    Metric("sqnr", "dB", _HIGHER, "signal to quantisation noise, against the unquantised model",
           Compared.NOT, signed=True, views=_CLAIM),
    Metric("model_size", "B", _LOWER, "size of parameters and buffers",
           _RATIO, 0.02, 1.0 * MIB, views=_CLAIM),
    Metric("optimizer_state", "B", _LOWER, "optimizer state on the device",
           _EXACT, views=_CLAIM),
    Metric("final_loss", "ratio", _NEITHER, "mean of the last five training losses", views=_CLAIM),
    Metric("final_loss_ratio", "ratio", _NEITHER, "final loss divided by that of eager AdamW", views=_CLAIM),
    Metric("curve_distance", "share", _LOWER, "largest relative difference of a loss from eager",
           views=_CLAIM),
    Metric("gemm_flops", "FLOP/s", _HIGHER, "calibration: FLOP/s of a square matrix multiplication"),
    Metric("copy_bytes_per_s", "B/s", _HIGHER, "calibration: copy on the device, bytes read and written"),
    Metric("transfer_bytes_per_s", "B/s", _HIGHER, "calibration: copy between host and device"),
    Metric("launch_s", "s", _LOWER, "calibration: time per small operator, a hundred queued"),
    Metric("launch_return_s", "s", _LOWER, "calibration: from the call of one small operator to its return"),
    Metric("launch_complete_s", "s", _LOWER,
           "calibration: from the call of one small operator to the end of a synchronisation"),
    Metric("event_resolution_s", "s", _LOWER, "calibration: smallest time above 0 between two events"),
    Metric("event_agreement", "ratio", _NEITHER, "calibration: event time divided by the host's wall time"),
    Metric("clock_resolution_s", "s", _LOWER, "calibration: smallest step of the host's clock"),
)  # fmt: skip
METRICS: Mapping[str, Metric] = MappingProxyType({metric.name: metric for metric in _TABLE})

STEP_TIMES = frozenset(metric.name for metric in _TABLE if metric.of_a_step)
"""Metrics that are made of how long a step takes: what a modifier says of step times holds for all."""


def in_view(view: View) -> tuple[str, ...]:
    """Return the metrics of the table that stand in ``view``, in its order."""
    return tuple(metric.name for metric in METRICS.values() if view in metric.views)


def compared_by(rule: Compared, known: Mapping[str, Metric] = METRICS) -> tuple[str, ...]:
    """The metrics of ``known`` that ``rule`` compares, in the table's order."""
    return tuple(metric.name for metric in known.values() if metric.compared is rule)


def is_of_a_step(metric: str) -> bool:
    """Whether ``metric`` is made of how long a step takes; one that is not in the table may be."""
    return metric in STEP_TIMES or metric not in METRICS


def number_counts(metric: str, status: str, modifiers: Collection[str]) -> bool:
    """Whether a row's number of ``metric`` may enter a mean, a claim, a trend or a comparison: the one rule.

    Step times by :func:`times_count`. Of other metrics only another model's are compared with nobody's.
    """
    if is_of_a_step(metric):
        return times_count(status, modifiers)
    return not doubt(metric, modifiers)


def doubt(metric: str, modifiers: Iterable[str]) -> str:
    """The modifier that keeps a number of ``metric`` out of what is compared; empty where none does.

    The gravest of several.
    """
    found = set(modifiers)
    keeping = UNTIMED if is_of_a_step(metric) else {Modifier.OTHER_MODEL}
    return next((each.value for each in GRAVEST if each in keeping and each in found), "")


def inexact(metric: str, modifiers: Collection[str]) -> bool:
    """Whether a number of ``metric`` is told with two digits: a busy machine made it."""
    return is_of_a_step(metric) and Modifier.UNSTEADY in modifiers


def apart(metric: str, modifiers: Iterable[str]) -> str:
    """The modifier for which a pass has no number of ``metric`` in a mean over passes; empty where it may."""
    found = set(modifiers)
    return uncounted(found) or doubt(metric, found)


def uncounted(modifiers: Collection[str]) -> str:
    """The modifier for which a pass is counted as none, the gravest of several; empty where it counts."""
    return next((each.value for each in GRAVEST if each in UNCOUNTED and each in modifiers), "")


GRAVEST = (
    Modifier.OTHER_MODEL,
    Modifier.UNCHECKED,
    Modifier.DEGRADED,
    Modifier.FASTER_THAN_PEAK,
    Modifier.UNSTEADY,
)
"""Modifiers that exclude numbers, the gravest first.

Numbers of another model belong to no row, unchecked ones may come from wrong results, and degraded ones from
another path. Numbers faster than the peak come from part of the work, and unsteady ones are only inexact.
"""
