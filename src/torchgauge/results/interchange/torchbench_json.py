"""TorchBench's userbenchmark metrics JSON, read: ``{"name", "environ", "metrics"}``.

Keys of ``metrics`` have two forms:
``model=M, test=eval, device=D, bs=8, extra_args=[], metric=latencies`` and, of the older runners,
``M-eval_latency``. Latencies are in milliseconds, a device's memory is in gigabytes of 1e9 bytes, and the
host's in a hundredth of that, as in the dynamo runner. A value that is text says why there is no number.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torchgauge.errors import DataFileError
from torchgauge.records import (
    METRICS,
    Case,
    Cause,
    Configuration,
    Measurement,
    Phase,
    Scalar,
    Status,
    Workload,
    digest,
)
from torchgauge.records.metrics import GIGABYTE
from torchgauge.results.interchange import upstream_names as names
from torchgauge.results.interchange.dynamo_columns import HOST_MEMORY
from torchgauge.results.interchange.exported_run import EAGER
from torchgauge.results.interchange.imported_run import (
    UNKNOWN_BATCH,
    ImportedCase,
    Known,
    check_name,
    decoded,
    read_bytes,
    source_of,
)
from torchgauge.results.interchange.json_text import read_values
from torchgauge.results.interchange.upstream_names import Context
from torchgauge.results.interchange.upstream_statuses import PASSED, Ending, ending_of

FORM = "torchbench-json"
SUITE = "torchbench"

_LONG = re.compile(
    r"model=(?P<model>.*), test=(?P<test>.*), device=(?P<device>.*), bs=(?P<bs>.*), "
    r"extra_args=(?P<args>.*), metric=(?P<metric>.*)"
)
_SHORT = re.compile(r"(?P<model>.+)-(?P<test>eval|train)_(?P<metric>\w+)")
_METRICS: Mapping[str, tuple[str, float]] = {
    "latencies": ("latency", 1e-3),
    "latency": ("latency", 1e-3),
    "iter_latencies": ("latency", 1e-3),
    "throughput": ("throughput", 1.0),
    "throughputs": ("throughput", 1.0),
    "iter_throughputs": ("throughput", 1.0),
    "gpu_peak_mem": ("peak_memory", GIGABYTE),
    "cpu_peak_mem": ("peak_memory", HOST_MEMORY),
    "cmem": ("peak_memory", HOST_MEMORY),
    "pt2_compilation_time": ("compile_cold", 1.0),
    "pt2_graph_breaks": ("graph_breaks", 1.0),
}
"""TorchBench's metric to ours and the factor that makes base units of it."""
_BETTER_SOURCES = ("iter_latencies", "iter_throughputs", "gpu_peak_mem")
"""Where two of TorchBench's metrics are one of ours, these are taken and the other becomes a fact."""
_PRECISIONS = {
    "fp32": "float32",
    "fp16": "float16",
    "bf16": "bfloat16",
    "amp": names.AMP,
    "amp_fp16": "amp_float16",
    "amp_bf16": "amp_bfloat16",
}
_SKIPS = frozenset({"skip", "skip_by_dryrun"})
_COMPILERS = {"--inductor": "inductor", "--aot_eager": "aot_eager"}


@dataclass
class _Entry:
    """The metrics of one case, under TorchBench's names."""

    case: Case
    key: str
    numbers: dict[str, tuple[float, ...]] = field(default_factory=dict)
    words: dict[str, str] = field(default_factory=dict)
    args: str = ""


def read_torchbench_json(paths: Sequence[Path], given: Context, known: Known) -> list[ImportedCase]:
    """The cases of all files; ``given`` says what keys do not, above all the dtype.

    Raises :class:`DataFileError` with the file and the key.
    """
    return [case for path in paths for case in _read(path, given, known)]


def _read(path: Path, given: Context, known: Known) -> list[ImportedCase]:
    data = read_bytes(path)
    values = read_values(path, decoded(path, data))
    content = values[0][1] if len(values) == 1 else None
    metrics = content.get("metrics") if isinstance(content, dict) else None
    if not isinstance(content, dict) or not isinstance(metrics, dict):
        raise DataFileError(
            str(path), "is not a metrics file of TorchBench", line=1, field="metrics",
            hint='pass a JSON file of one object with "name", "environ" and an object "metrics"',
        )  # fmt: skip
    if not metrics:
        raise DataFileError(str(path), "has no metric", line=1, field="metrics", hint="repeat the run")
    source = source_of(path, "TorchBench metrics JSON", data, _identity(content))
    entries: dict[str, _Entry] = {}
    for key, value in metrics.items():
        case, metric, args = _parsed(path, key, given, known)
        entry = entries.setdefault(case.key, _Entry(case, key, args=args))
        if metric in entry.numbers or metric in entry.words:
            raise _refuse(path, key, f"{case.id} has {metric} twice", "keep one of the two")
        _take(path, key, entry, metric, value)
    return [
        ImportedCase(entry.case, _ending(entry), source, entry.key, *_contents(entry))
        for entry in entries.values()
    ]


def _identity(content: Mapping[str, Any]) -> dict[str, Scalar]:
    environ = content.get("environ")
    told: dict[str, Scalar] = {"userbenchmark": str(content.get("name", ""))}
    if isinstance(environ, dict):
        known = {"pytorch_version": "torch.version", "pytorch_git_version": "torch.git_commit"}
        told |= {known.get(str(name), str(name)): str(value) for name, value in environ.items()}
    return told


def _parsed(path: Path, key: str, given: Context, known: Known) -> tuple[Case, str, str]:
    """The case that ``key`` is about, the metric, and extra arguments that no field of ours says."""
    found = _LONG.fullmatch(key) or _SHORT.fullmatch(key)
    if found is None:
        raise _refuse(
            path, key, "is not the key of a metric",
            "write model=M, test=eval, device=D, bs=8, extra_args=[], metric=latencies, or M-eval_latency",
        )  # fmt: skip
    parts = found.groupdict()
    arguments = _literal(path, key, parts.get("args") or "[]")
    precision, compiler, rest = _options(arguments if isinstance(arguments, list) else [arguments])
    context = given.over(
        Context(SUITE, names.MODES.get(parts["test"], ""), precision, parts.get("device") or "", compiler)
    )
    for name in ("mode", "dtype", "device"):
        if not getattr(context, name):
            raise _refuse(
                path,
                key,
                f"does not contain the {name}",
                f"--{name} NAME sets the missing value for all keys",
            )
    batch = _literal(path, key, parts.get("bs") or "None")
    if batch is not None and (not isinstance(batch, int) or isinstance(batch, bool)):
        raise _refuse(path, key, f"bs={batch!r} is not a batch size", "write a whole number or None")
    for kind, value in (("model", parts["model"]), ("device", context.device), ("suite", context.suite)):
        check_name(path, kind, value, None, key)
    configuration = names.execution(context.configuration, dict(known.configurations))
    if rest:
        configuration = Configuration(f"{configuration.name}-{digest(rest)[:8]}", configuration.backend)
    workload = Workload(
        context.suite,
        parts["model"],
        context.mode,
        names.our_dtype(context.dtype, context.device),
        batch=batch or UNKNOWN_BATCH,
        size="full",
    )
    return Case(workload, configuration, names.target(context.device)), parts["metric"], " ".join(rest)


def _options(arguments: Iterable[object]) -> tuple[str, str, list[str]]:
    """Precision and compiler of the extra arguments, and the arguments that are neither."""
    words, rest = [str(each) for each in arguments], []
    precision, compiler = "", EAGER
    while words:
        word = words.pop(0)
        if word == "--precision" and words and words[0] in _PRECISIONS:
            precision = _PRECISIONS[words.pop(0)]
        elif word == "--torchdynamo" and words:
            compiler = words.pop(0)
        elif word in _COMPILERS:
            compiler = _COMPILERS[word]
        else:
            rest.append(word)
    return precision, compiler, rest


def _literal(path: Path, key: str, text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        raise _refuse(
            path, key, f"{text!r} is not a Python literal", "write bs=8 or bs=None, and extra_args=[]"
        ) from None


def _take(path: Path, key: str, entry: _Entry, metric: str, value: Any) -> None:
    values = value if isinstance(value, list) else [value]
    if values and all(isinstance(each, (int, float)) and not isinstance(each, bool) for each in values):
        if any(each < 0 for each in values):
            raise _refuse(path, key, f"{value} is negative", "remove the key")
        factor = _METRICS.get(metric, ("", 1.0))[1]
        try:
            entry.numbers[metric] = tuple(map(float, values))
        except OverflowError:
            raise _refuse(path, key, "is too large for a 64-bit float", "remove the key") from None
        if not all(each * factor < math.inf for each in entry.numbers[metric]):
            raise _refuse(path, key, "is too large for a 64-bit float", "remove the key")
    elif isinstance(value, str) and value:
        entry.words[metric] = value
    elif value is not None:
        raise _refuse(
            path, key, f"{value!r} is not a number, a list of numbers or a string", "remove the key"
        )
    else:
        entry.words[metric] = "no value"


def _ending(entry: _Entry) -> Ending:
    """A case with a number passed, unless a check says otherwise; else its words say why there is none."""
    accuracy = entry.words.get("accuracy")
    if accuracy is not None and (ending := ending_of(accuracy)) is not None:
        return ending
    if entry.words.get("memleak") == "True":
        return Ending(Status.ERROR, Phase.MEASURE, reason="TorchBench reports a memory leak of the model")
    if entry.numbers or entry.words.get("memleak") == "False":
        return PASSED
    words = list(dict.fromkeys(entry.words.values()))
    if words == ["not_implemented"]:
        return Ending(Status.UNSUPPORTED, Phase.BUILD, reason="TorchBench reports not_implemented")
    if len(words) == 1 and words[0] in _SKIPS:
        return Ending(Status.SKIPPED, Phase.START, Cause.DECLARED, f"TorchBench reports {words[0]}")
    return Ending(Status.ERROR, Phase.EAGER, reason=f"TorchBench reports: {'; '.join(words)}"[:2000])


def _contents(entry: _Entry) -> tuple[tuple[Measurement, ...], tuple[tuple[str, Scalar], ...]]:
    measurements: dict[str, Measurement] = {}
    facts: dict[str, Scalar] = {f"torchbench_{name}": word for name, word in entry.words.items()}
    if entry.args:
        facts["torchbench_extra_args"] = entry.args
    for name in sorted(entry.numbers, key=lambda each: each not in _BETTER_SOURCES):
        values = entry.numbers[name]
        metric, factor = _METRICS.get(name, ("", 1.0))
        if not metric or metric in measurements:
            facts[f"torchbench_{name}"] = values[0] if len(values) == 1 else str(list(values))
        elif metric == "graph_breaks" or all(values):
            samples = tuple(each * factor for each in values)
            said = f"{name} of TorchBench"
            measurements[metric] = Measurement(metric, METRICS[metric].unit, samples, provenance=said)
    return tuple(measurements.values()), tuple(facts.items())


def _refuse(path: Path, key: str, problem: str, hint: str) -> DataFileError:
    return DataFileError(str(path), problem, field=f"metrics[{key!r}]"[:300], hint=hint)
