"""optimum-benchmark's ``benchmark.json``, read: ``{"config", "report"}`` of one experiment.

A report has a section for each part of the work (``prefill``, ``decode``, ``per_token``, ``forward``) with
``latency`` (a unit and every value), ``memory`` and ``throughput``. ``benchmark_report.json`` is the report
alone: it knows neither model nor device, so its batch and lengths are unknown too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from torchgauge.errors import DataFileError
from torchgauge.records import Scalar
from torchgauge.results.interchange.imported_run import ImportedCase, Known, decoded, read_bytes, source_of
from torchgauge.results.interchange.json_text import read_values
from torchgauge.results.interchange.peer_case import BYTES, GENERATE, SECONDS, PeerCase, factor, positive
from torchgauge.results.interchange.upstream_names import Context

FORM = "optimum-benchmark"
PERCENTILES = {"inter_token_p50": "p50", "inter_token_p90": "p90", "inter_token_p99": "p99"}
TEXT, OTHER = ("prefill", "decode"), "forward"


def read_optimum_json(paths: Sequence[Path], given: Context, known: Known) -> list[ImportedCase]:
    """The case of each file; raises :class:`DataFileError` with the file and the key."""
    return [_read(path, given, known) for path in paths]


def _read(path: Path, given: Context, known: Known) -> ImportedCase:
    data = read_bytes(path)
    values = read_values(path, decoded(path, data))
    content = values[0][1]
    if len(values) != 1 or not isinstance(content, dict):
        raise DataFileError(str(path), "is no object of JSON", hint="benchmark.json of one experiment")
    report, config = content.get("report", content), content.get("config", {})
    if not isinstance(report, dict) or not any(name in report for name in (*TEXT, OTHER)):
        raise DataFileError(
            str(path), f"has none of {', '.join((*TEXT, OTHER))}", field="report",
            hint="reports of inference are read; train and load_model alone say no time of a step",
        )  # fmt: skip
    case = _case(path, config if isinstance(config, dict) else {}, report)
    _take(case, report)
    environment = _mapping(config, "environment")
    told = {f"optimum.{name}": value for name, value in environment.items() if isinstance(value, (str, int))}
    return case.made(source_of(path, FORM, data, told), given, known)


def _case(path: Path, config: Mapping[str, Any], report: Mapping[str, Any]) -> PeerCase:
    backend, scenario = _mapping(config, "backend"), _mapping(config, "scenario")
    shapes, words = _mapping(scenario, "input_shapes"), _mapping(scenario, "generate_kwargs")
    compiled = "inductor" if backend.get("torch_compile") else "eager"
    scheme = backend.get("quantization_scheme")
    mode = GENERATE if TEXT[0] in report else "inference"
    dtype = str(backend.get("torch_dtype") or "")
    prompt, output = shapes.get("sequence_length"), words.get("max_new_tokens")
    lengths = [("output", output), ("prompt", prompt)] if mode == GENERATE else [("seq", prompt)]
    batch = shapes.get("batch_size")
    return PeerCase(
        path,
        "report",
        str(backend.get("model") or path.parent.name or path.stem),
        Context(
            FORM,
            mode,
            dtype,
            str(backend.get("device") or ""),
            f"{compiled}-{scheme}" if scheme else compiled,
        ),
        batch if isinstance(batch, int) else None,
        tuple((name, value) for name, value in lengths if isinstance(value, int)),
    )


def _take(case: PeerCase, report: Mapping[str, Any]) -> None:
    sizes = dict(case.shape)
    first, rest, forward = (_latencies(case.path, report, name) for name in (*TEXT, OTHER))
    if first:
        case.take("first_token_time", first, "prefill.latency of optimum-benchmark")
    if first and case.batch and isinstance(sizes.get("prompt"), int):
        rates = [case.batch * int(sizes["prompt"]) / each for each in first]
        case.take("prefill_rate", rates, "batch x sequence_length / prefill.latency")
    steps = int(sizes.get("output", 0)) - 1
    if rest and steps > 0:
        case.take("output_token_time", [each / steps for each in rest], "decode.latency / (new tokens - 1)")
        if case.batch:
            rates = [case.batch * steps / each for each in rest]
            case.take("decode_rate", rates, "batch x (new tokens - 1) / decode.latency")
    if first and len(first) == len(rest):
        whole = [sum(pair) for pair in zip(first, rest, strict=True)]
        case.take("latency", whole, "prefill.latency + decode.latency")
    if forward:
        case.take("latency", forward, "forward.latency of optimum-benchmark")
    tokens = _mapping(_mapping(report, "per_token"), "latency")
    for metric, rank in PERCENTILES.items() if tokens else ():
        scale = factor(case.path, "report.per_token.latency.unit", tokens.get("unit"), SECONDS)
        value = positive(case.path, f"report.per_token.latency.{rank}", tokens.get(rank))
        case.take(metric, [value * scale], f"per_token.latency.{rank} of optimum-benchmark")
    _take_memory(case, report)


def _take_memory(case: PeerCase, report: Mapping[str, Any]) -> None:
    """The allocator's peak is ours; resident memory of the whole process is another quantity, so a fact."""
    peaks: dict[str, float] = {}
    for name in (*TEXT, OTHER):
        memory = _mapping(_mapping(report, name), "memory")
        for kind in ("max_allocated", "max_ram"):
            if memory.get(kind):
                scale = factor(case.path, f"report.{name}.memory.unit", memory.get("unit"), BYTES)
                value = positive(case.path, f"report.{name}.memory.{kind}", memory[kind]) * scale
                peaks[kind] = max(value, peaks.get(kind, 0.0))
    if "max_allocated" in peaks:
        case.take("peak_memory", [peaks["max_allocated"]], "memory.max_allocated of optimum-benchmark")
    if "max_ram" in peaks:
        case.facts["optimum_max_ram_bytes"] = round(peaks["max_ram"])


def _latencies(path: Path, report: Mapping[str, Any], name: str) -> list[float]:
    latency = _mapping(_mapping(report, name), "latency")
    if not latency:
        return []
    place = f"report.{name}.latency"
    scale, values = factor(path, f"{place}.unit", latency.get("unit"), SECONDS), latency.get("values")
    if not isinstance(values, list) or not values:
        raise DataFileError(str(path), "has no values", field=place, hint="the file may have been shortened")
    return [positive(path, f"{place}.values", each) * scale for each in values]


def _mapping(inside: Mapping[str, Any], name: str) -> Mapping[str, Scalar | Any]:
    found = inside.get(name)
    return found if isinstance(found, dict) else {}
