"""optimum-benchmark's ``benchmark.json``, read: ``{"config", "report"}`` of one experiment.

A report has a section for each part of the work (``prefill``, ``decode``, ``per_token``, ``forward``) with
``latency`` (a unit and every value), ``memory`` and ``throughput``. ``benchmark_report.json`` is the report
alone: it knows neither model nor device, so its batch and lengths are unknown too.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from torchgauge.errors import DataFileError
from torchgauge.results.interchange.imported_run import ImportedCase, Known, decoded, read_bytes, source_of
from torchgauge.results.interchange.json_text import read_values
from torchgauge.results.interchange.peer_case import (
    BYTES,
    GENERATE,
    SECONDS,
    PeerCase,
    factor,
    positive,
    whole,
)
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
        raise DataFileError(str(path), "is not an object of JSON", hint="benchmark.json of one experiment")
    report = content.get("report", content)
    if not isinstance(report, dict) or not any(name in report for name in (*TEXT, OTHER)):
        raise DataFileError(
            str(path), f"has none of {', '.join((*TEXT, OTHER))}", field="report",
            hint="reports of inference are read; train and load_model alone say no time of a step",
        )  # fmt: skip
    case = _case(path, content, report)
    _take(case, report)
    environment = _mapping(path, content, "config", "environment")
    told = {f"optimum.{name}": value for name, value in environment.items() if isinstance(value, (str, int))}
    return case.made(source_of(path, FORM, data, told), given, known)


def _case(path: Path, content: Mapping[str, Any], report: Mapping[str, Any]) -> PeerCase:
    backend = _mapping(path, content, "config", "backend")
    mode = GENERATE if TEXT[0] in report else "inference"
    lengths = (
        {"output": ("generate_kwargs", "max_new_tokens"), "prompt": ("input_shapes", "sequence_length")}
        if mode == GENERATE
        else {"seq": ("input_shapes", "sequence_length")}
    )
    sizes = {name: _size(path, content, "scenario", *place) for name, place in lengths.items()}
    words = ["inductor" if backend.get("torch_compile") else "eager"]
    if scheme := backend.get("quantization_scheme"):
        words.append(str(scheme))
    launched = (_size(path, content, "launcher", name) or 1 for name in ("nproc_per_node", "max_nodes"))
    if (processes := math.prod(launched)) > 1:
        words.append(f"x{processes}")
    return PeerCase(
        path,
        "report",
        str(backend.get("model") or path.parent.name or path.stem),
        Context(
            FORM,
            mode,
            str(backend.get("torch_dtype") or ""),
            str(backend.get("device") or ""),
            "-".join(words),
        ),
        _size(path, content, "scenario", "input_shapes", "batch_size"),
        tuple((name, value) for name, value in sizes.items() if value is not None),
    )


def _size(path: Path, content: Mapping[str, Any], *place: str) -> int | None:
    """The size at ``place`` of the configuration, None where it is not said."""
    value = _mapping(path, content, "config", *place[:-1]).get(place[-1])
    return None if value is None else whole(path, ".".join(("config", *place)), value)


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
        both = [sum(pair) for pair in zip(first, rest, strict=True)]
        case.take("latency", both, "prefill.latency + decode.latency")
    if forward:
        case.take("latency", forward, "forward.latency of optimum-benchmark")
    tokens = _mapping(case.path, {"report": report}, "report", "per_token", "latency")
    for metric, rank in PERCENTILES.items() if tokens else ():
        scale = factor(case.path, "report.per_token.latency.unit", tokens.get("unit"), SECONDS)
        value = positive(case.path, f"report.per_token.latency.{rank}", tokens.get(rank), scale)
        case.take(metric, [value], f"per_token.latency.{rank} of optimum-benchmark")
    _take_memory(case, report)


def _take_memory(case: PeerCase, report: Mapping[str, Any]) -> None:
    """The allocator's peak is ours; resident memory of the whole process is another quantity, so a fact."""
    peaks: dict[str, float] = {}
    for name in (*TEXT, OTHER):
        memory = _mapping(case.path, {"report": report}, "report", name, "memory")
        for kind in ("max_allocated", "max_ram"):
            if memory.get(kind):
                scale = factor(case.path, f"report.{name}.memory.unit", memory.get("unit"), BYTES)
                value = positive(case.path, f"report.{name}.memory.{kind}", memory[kind], scale)
                peaks[kind] = max(value, peaks.get(kind, 0.0))
    if "max_allocated" in peaks:
        case.take("peak_memory", [peaks["max_allocated"]], "memory.max_allocated of optimum-benchmark")
    if "max_ram" in peaks:
        case.facts["optimum_max_ram_bytes"] = round(peaks["max_ram"])


def _latencies(path: Path, report: Mapping[str, Any], name: str) -> list[float]:
    latency = _mapping(path, {"report": report}, "report", name, "latency")
    if not latency:
        return []
    place = f"report.{name}.latency"
    scale, values = factor(path, f"{place}.unit", latency.get("unit"), SECONDS), latency.get("values")
    if not isinstance(values, list) or not values:
        raise DataFileError(str(path), "has no values", field=place, hint="the file may have been shortened")
    return [positive(path, f"{place}.values", each, scale) for each in values]


def _mapping(path: Path, inside: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    """The object at ``names``, empty where there is none; raises :class:`DataFileError` for anything else."""
    for number, name in enumerate(names, 1):
        found = inside.get(name)
        if found is not None and not isinstance(found, dict):
            place = ".".join(names[:number])
            raise DataFileError(
                str(path), "is not an object", field=place, hint="as optimum-benchmark writes it"
            )
        inside = found or {}
    return inside
