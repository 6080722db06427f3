"""Benchmark-results JSON, schema v3, of PyTorch's HUD, read: a record per metric of a case.

A file is one object, one list, or one object per line. Records of ours say in ``extra_info`` what makes a
case ours; those of the dynamo runner are read by the names that it gives to metrics.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import msgspec

from torchgauge.errors import DataFileError
from torchgauge.records import Case, Cause, Measurement, Modifier, Phase, Realised, Scalar, Status, Workload
from torchgauge.results.interchange import upstream_names as names
from torchgauge.results.interchange.dynamo_columns import METRICS, measurement
from torchgauge.results.interchange.exported_run import EAGER
from torchgauge.results.interchange.imported_run import (
    UNKNOWN_BATCH,
    ImportedCase,
    Known,
    Source,
    check_name,
    decoded,
    read_bytes,
    source_of,
)
from torchgauge.results.interchange.json_text import read_values
from torchgauge.results.interchange.upstream_names import Context
from torchgauge.results.interchange.upstream_statuses import (
    FACT,
    NO_SPEEDUP,
    PASSED,
    Ending,
    ending_of,
    meant,
)

FORM = "hud-v3"
SCHEMA = "v3"
ACCURACY = "accuracy"

_CONVERT = f"convert the file to {SCHEMA!r} with the tool that wrote it"
_NEEDS = f"give each {SCHEMA} record benchmark.name, model.name and metric.name"
_TORCH = {"torch": "torch.version", "pytorch": "torch.version"}
EAGER_MEMORY = "eager_peak_mem"
HASH_ONLY = "imported: the file gives only the hash of the built model, not its parameters or inputs"


class BenchmarkFields(msgspec.Struct):
    """What was run, and how."""

    name: str
    mode: str = ""
    dtype: str = ""
    extra_info: dict[str, Any] = {}


class ModelFields(msgspec.Struct):
    """The model."""

    name: str
    type: str = ""
    backend: str = ""
    origins: list[str] = []
    extra_info: dict[str, Any] = {}


class MetricFields(msgspec.Struct):
    """One metric with its values."""

    name: str
    benchmark_values: list[float] | None = None
    extra_info: dict[str, Any] = {}


class DependencyFields(msgspec.Struct):
    """One library that was used."""

    version: str = ""
    sha: str = ""


class RecordFields(msgspec.Struct):
    """One record; fields that are not read here may be there."""

    benchmark: BenchmarkFields
    model: ModelFields
    metric: MetricFields
    schema_version: str = SCHEMA
    timestamp: Annotated[int, msgspec.Meta(ge=-(2**53), le=2**53)] = 0
    head_sha: str = ""
    repo: str = ""
    runners: list[dict[str, Any]] = []
    dependencies: dict[str, DependencyFields] = {}


@dataclass(frozen=True)
class Place:
    """Where a record stands: the file, the line and the record's name in messages."""

    path: Path
    line: int
    name: str

    def refuse(self, problem: str, field: str, hint: str) -> DataFileError:
        """The error for ``problem`` at ``field`` of the record."""
        at = f"{self.name}.{field}" if field else self.name
        return DataFileError(str(self.path), problem, line=self.line, field=at, hint=hint)


@dataclass
class _Found:
    """Records of one case, as they are met."""

    case: Case
    first: RecordFields
    source: Source
    origin: str
    ending: Ending | None = None
    measurements: dict[str, Measurement] = field(default_factory=dict)
    facts: dict[str, Scalar] = field(default_factory=dict)
    no_speedup: bool = False

    def finished(self) -> ImportedCase:
        info = self.first.benchmark.extra_info
        ending = self.ending or (NO_SPEEDUP if self.no_speedup else PASSED)
        realised = info.get("realised_hash")
        return ImportedCase(
            self.case,
            ending,
            self.source,
            self.origin,
            tuple(self.measurements.values()),
            (*self.facts.items(), *((m.value, str(info[m.value])) for m in Modifier if m.value in info)),
            float(self.first.timestamp),
            Realised(str(realised), 0, 0, "", (HASH_ONLY,)) if realised else None,
            tuple(
                modifier for modifier in Modifier if modifier.value in str(info.get("modifiers", "")).split()
            ),
        )


def read_hud_v3(paths: Sequence[Path], given: Context, known: Known) -> list[ImportedCase]:
    """The cases of all files; ``given`` overrules what records say.

    Raises :class:`DataFileError` with the file, the line and the path of the field.
    """
    found: dict[str, _Found] = {}
    for path in paths:
        data = read_bytes(path)
        for place, record in _checked_records(path, decoded(path, data)):
            source = source_of(path, "HUD v3 JSON", data, _identity(record))
            case = _case(place, record, given, known)
            entry = found.setdefault(case.key, _Found(case, record, source, place.name))
            if entry.source.path != path:
                raise place.refuse(
                    f"{case.id} stands in {entry.source.path.name}, too",
                    "",
                    "import the files as two runs",
                )
            _take(entry, place, record, known)
    return [entry.finished() for entry in found.values()]


def _checked_records(path: Path, text: str) -> Iterator[tuple[Place, RecordFields]]:
    for line, value in read_values(path, text):
        many = isinstance(value, list)
        for index, item in enumerate(value if many else [value]):
            place = Place(path, line, f"record {index + 1}" if many else f"line {line}")
            yield place, _converted(place, item)


def _converted(place: Place, item: Any) -> RecordFields:
    version = item.get("schema_version", SCHEMA) if isinstance(item, dict) else SCHEMA
    if version != SCHEMA:
        raise place.refuse(
            f"the schema version {version!r} is not supported",
            "schema_version",
            _CONVERT,
        )
    try:
        return msgspec.convert(item, RecordFields)
    except (msgspec.ValidationError, UnicodeEncodeError) as error:
        problem, _, at = str(error).partition(" - at ")
        raise place.refuse(
            problem[:1].lower() + problem[1:],
            at.strip("`").removeprefix("$").lstrip("."),
            _NEEDS,
        ) from None


def _identity(record: RecordFields) -> dict[str, Scalar]:
    """What a record says of its machine and its versions."""
    told: dict[str, Scalar] = {}
    for name, library in sorted(record.dependencies.items()):
        if version := library.version or library.sha:
            told[_TORCH.get(name, f"package.{name}")] = version
    for runner in record.runners[:1]:
        for name in ("name", "type", "cpu_info", "gpu_info"):
            if runner.get(name):
                told[f"runner_{name}"] = str(runner[name])
    told |= {"repo": record.repo} if record.repo else {}
    told |= {"commit": record.head_sha} if record.head_sha else {}
    return told


def _case(place: Place, record: RecordFields, given: Context, known: Known) -> Case:
    info = record.benchmark.extra_info
    runner = record.runners[0].get("name", "") if record.runners else ""
    origin = next((name for name in record.model.origins if name), "")
    said = Context(
        names.our_suite(origin),
        names.MODES.get(record.benchmark.mode, record.benchmark.mode),
        record.benchmark.dtype,
        str(info.get("device") or runner),
        str(info.get("configuration") or record.model.backend),
    )
    context = given.over(said).over(names.context_of_name(place.path.name))
    missing = [
        name for name in ("suite", "mode", "dtype", "device", "configuration") if not getattr(context, name)
    ]
    if missing:
        raise place.refuse(
            f"the record has no {missing[0]}",
            "",
            f"--{missing[0].replace('configuration', 'config')} NAME sets the missing value for all records",
        )
    for kind, name in (("suite", context.suite), ("model", record.model.name), ("device", context.device)):
        check_name(place.path, kind, name, place.line, place.name)
    check_name(place.path, "configuration", context.configuration, place.line, place.name)
    workload = Workload(
        context.suite,
        record.model.name,
        context.mode,
        names.our_dtype(context.dtype, context.device),
        **_sizes(place, info),
    )
    stated = info.get("workload_hash")
    if stated is not None and stated != workload.declared_hash and given == Context():
        raise place.refuse(
            f"workload_hash is {stated}, but the record's fields give {workload.declared_hash}",
            "benchmark.extra_info.workload_hash",
            "the record was changed after it was written: export the run again",
        )
    return Case(
        workload,
        names.execution(context.configuration, dict(known.configurations)),
        names.target(context.device),
    )


def _sizes(place: Place, info: Mapping[str, Any]) -> dict[str, Any]:
    """Batch, size, shape, seed and weights from a record's text."""
    try:
        shape = json.loads(info["shape"]) if "shape" in info else {}
        return {
            "batch": int(info.get("batch_size") or UNKNOWN_BATCH),
            "size": str(info.get("size", "full")),
            "shape": tuple(sorted((str(name), int(value)) for name, value in shape.items())),
            "seed": int(info.get("seed", Workload.seed)),
            "weights": str(info.get("weights", Workload.weights)),
        }
    except (ValueError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise place.refuse(
            f"batch, shape or seed cannot be read: {error}",
            "benchmark.extra_info",
            "write batch and seed as numbers, and shape as an object of numbers",
        ) from error


def _take(entry: _Found, place: Place, record: RecordFields, known: Known) -> None:
    metric = record.metric
    if metric.name == ACCURACY:
        entry.ending = _ending(place, record)
        word = metric.extra_info.get("benchmark_values", [""])
        entry.facts[FACT] = str(word[0]) if isinstance(word, list) and word else str(word)
        return
    values = metric.benchmark_values
    if not values:
        raise place.refuse(
            f"{metric.name} has no value",
            "metric.benchmark_values",
            "remove the record if nothing was measured",
        )
    name = metric.name
    if name == EAGER_MEMORY and entry.case.configuration.backend == EAGER:
        name = "dynamo_peak_mem"
    if name == "speedup" and not any(values):
        entry.no_speedup = True
        return
    ours = METRICS.get(name)
    if ours is None and name not in known.metrics:
        kept: Scalar = values[0] if len(values) == 1 else json.dumps(values)
        entry.facts[f"dynamo_{name}"] = kept
        return
    if ours is not None and ours.unit not in ("ratio", "count") and not any(values):
        return  # upstream fills up what it did not measure with zeros
    taken = (
        measurement(name, values, str(entry.case.device))
        if ours is not None
        else Measurement(name, known.metrics[name].unit, tuple(values), provenance="HUD v3 JSON")
    )
    if taken.metric in entry.measurements:
        raise place.refuse(
            f"{entry.case.id} has {metric.name} twice",
            "metric.name",
            "keep one of the two records",
        )
    entry.measurements[taken.metric] = taken


def _ending(place: Place, record: RecordFields) -> Ending:
    """How a case ended: by our own words where they stand there, else by upstream's."""
    info = record.benchmark.extra_info
    values = record.metric.extra_info.get("benchmark_values")
    word = str(values[0]) if isinstance(values, list) and values else ""
    try:
        if "status" in info:
            cause = Cause(info["cause"]) if "cause" in info else None
            return Ending(Status(info["status"]), Phase(info["phase"]), cause, str(info.get("reason", "")))
    except (ValueError, KeyError) as error:
        raise place.refuse(
            f"status, phase or cause cannot be read: {error}",
            "benchmark.extra_info",
            "export the run again",
        ) from error
    ending = ending_of(word)
    if ending is None:
        raise place.refuse(
            f"{word!r} is not an accuracy result{meant(word)}",
            "metric.extra_info.benchmark_values",
            "fix or remove the record",
        )
    return ending
