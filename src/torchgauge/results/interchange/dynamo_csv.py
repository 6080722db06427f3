"""The CSV files of PyTorch's dynamo runner, read: performance, accuracy and expected accuracy.

Their forms, from the runner's own writer: latency in milliseconds, memory in gigabytes. A row that failed has
a speed-up of 0 and a batch of 0, and short rows are filled up with 0. Where a zero stands for "not known",
what is read is absent.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from torchgauge.errors import DataFileError
from torchgauge.records import Case, Measurement, Scalar, Status, Workload
from torchgauge.results.interchange import upstream_names as names
from torchgauge.results.interchange.dynamo_columns import (
    ACCURACY,
    COUNTERS,
    EXPECTED,
    METRICS,
    NUMBERS,
    PERFORMANCE,
    ZERO_IS_ABSENT,
    measurement,
)
from torchgauge.results.interchange.dynamo_csv_file import CsvFile, Row, read_csv_file
from torchgauge.results.interchange.imported_run import UNKNOWN_BATCH, ImportedCase, Known, check_name
from torchgauge.results.interchange.upstream_names import Context
from torchgauge.results.interchange.upstream_statuses import (
    FACT,
    NO_SPEEDUP,
    PASSED,
    Ending,
    ending_of,
    meant,
)


def read_dynamo_csv(
    paths: Sequence[Path], given: Context, known: Known, ignore: Iterable[str] = ()
) -> list[ImportedCase]:
    """The cases of all files; a performance and an accuracy file of the same cases make one case of both.

    ``given`` overrules what file names say, and ``ignore`` names columns to pass over. Raises
    :class:`DataFileError` with file, line and column.
    """
    parts = [
        part
        for path in paths
        for file in [read_csv_file(path, given, frozenset(ignore))]
        for part in _parts(file, known, given)
    ]
    return _merged(_with_batches(parts))


@dataclass(frozen=True)
class _Part:
    """What one row says of one case."""

    kind: str
    case: ImportedCase
    row: Row


def _parts(file: CsvFile, known: Known, given: Context) -> Iterator[_Part]:
    seen: dict[tuple[str, ...], int] = {}
    for row in file.rows:
        key = tuple(row.cells.get(name, "") for name in ("dev", "name", "batch_size", "tag"))
        if key in seen:
            raise row.refuse(
                "name", f"{key[1]} is listed twice, first on line {seen[key]}", "keep one of the two rows"
            )
        seen[key] = row.line
        device = given.device or row.cells.get("dev", "") or file.context.device
        case = _case(row, replace(file.context, device=device), known)
        ending, measurements, facts = _READERS[file.kind](row, str(case.device))
        imported = ImportedCase(case, ending, file.source, f"line {row.line}", measurements, facts)
        yield _Part(file.kind, imported, row)


def _case(row: Row, context: Context, known: Known) -> Case:
    for field, option in _NEEDED.items():
        if not getattr(context, field):
            raise DataFileError(
                str(row.path),
                f"neither the file nor its name contains the {field}",
                hint=f"{option} NAME sets the missing value, or name the file as upstream's dashboard does",
            )
    model = check_name(row.path, "model", row.cells["name"], row.line, "name")
    device = check_name(row.path, "device", context.device, row.line, "dev")
    tag = row.cells.get("tag", "")
    configuration = names.execution(context.configuration, dict(known.configurations))
    if tag:
        check_name(row.path, "configuration", tag, row.line, "tag")
        configuration = replace(configuration, name=f"{configuration.name}-{tag}")
    workload = Workload(
        check_name(row.path, "suite", context.suite, None),
        model,
        context.mode,
        names.our_dtype(context.dtype, device),
        batch=_batch(row),
        size="full",
    )
    return Case(workload, configuration, names.target(device))


_NEEDED = {
    "suite": "--suite",
    "mode": "--mode",
    "dtype": "--dtype",
    "device": "--device",
    "configuration": "--config",
}


def _batch(row: Row) -> int:
    value = row.number("batch_size")
    if value is None:
        return UNKNOWN_BATCH
    if value != int(value):
        raise row.refuse(
            "batch_size", f"{row.cells['batch_size']} is not a batch size", "write a whole number"
        )
    return int(value)


Said = tuple[Ending, tuple[Measurement, ...], tuple[tuple[str, Scalar], ...]]


def _performance(row: Row, device: str) -> Said:
    speedup, latency = row.needed("speedup"), row.needed("abs_latency")
    if speedup == 0:
        return NO_SPEEDUP, (), ()
    if latency == 0:
        raise row.refuse(
            "abs_latency", "a speed-up without a latency", "write 0.0 in both cells only for a failed run"
        )
    return (PASSED, *_numbers(row, device))


def _accuracy(row: Row, device: str) -> Said:
    word = row.cells["accuracy"]
    if not word:
        raise row.refuse("accuracy", "the cell is empty", "remove the row, or write the runner's value")
    ending = ending_of(word)
    if ending is None:
        problem = f"{word!r} is not an accuracy result of the dynamo runner{meant(word)}"
        raise row.refuse("accuracy", problem, "fix the cell, or remove the row")
    measurements, facts = _numbers(row, device) if ending.status is Status.PASS else ((), ())
    return ending, measurements, ((FACT, word), *facts)


_READERS = {PERFORMANCE: _performance, ACCURACY: _accuracy, EXPECTED: _accuracy}


def _numbers(row: Row, device: str) -> tuple[tuple[Measurement, ...], tuple[tuple[str, Scalar], ...]]:
    measurements, facts = [], []
    for column in row.cells.keys() & NUMBERS:
        value = row.number(column)
        if value is None or (value == 0 and column in ZERO_IS_ABSENT):
            continue
        if column in METRICS:
            measurements.append(measurement(column, (value,), device))
        else:
            facts.append((f"dynamo_{column}", int(value) if column in COUNTERS else value))
    return tuple(sorted(measurements, key=lambda each: each.metric)), tuple(sorted(facts))


def _with_batches(parts: list[_Part]) -> list[_Part]:
    """Parts whose rows name a placeholder instead of a batch take the one batch of their case elsewhere."""
    batches: dict[str, set[int]] = {}
    for part in parts:
        batch = part.case.case.workload.batch
        if batch != UNKNOWN_BATCH:
            batches.setdefault(_but_batch(part.case.case), set()).add(batch)
    return [_with_batch(part, batches.get(_but_batch(part.case.case), set())) for part in parts]


def _with_batch(part: _Part, batches: set[int]) -> _Part:
    case = part.case.case
    if case.workload.batch != UNKNOWN_BATCH or len(batches) != 1:
        return part
    workload = replace(case.workload, batch=next(iter(batches)))
    return replace(part, case=replace(part.case, case=replace(case, workload=workload)))


def _but_batch(case: Case) -> str:
    return replace(case, workload=replace(case.workload, batch=UNKNOWN_BATCH)).key


def _merged(parts: list[_Part]) -> list[ImportedCase]:
    """One case for the performance row and the accuracy row of one: an ending that is no pass wins."""
    found: dict[str, dict[str, _Part]] = {}
    for part in parts:
        by_kind = found.setdefault(part.case.case.key, {})
        if part.kind in by_kind:
            other = by_kind[part.kind].row
            raise part.row.refuse(
                "name",
                f"{part.case.case.id} is also in {other.path.name}, line {other.line}",
                "keep one of the two, or import the files as two runs",
            )
        by_kind[part.kind] = part
    return [_one_case(list(by_kind.values())) for by_kind in found.values()]


def _one_case(parts: list[_Part]) -> ImportedCase:
    parts.sort(key=lambda part: (PERFORMANCE, ACCURACY, EXPECTED).index(part.kind))
    first = parts[0].case
    if len(parts) == 1:
        return first
    endings = [part.case.ending for part in reversed(parts)]
    failed = [ending for ending in endings if ending.status is not Status.PASS]
    measurements: dict[str, Measurement] = {}
    facts: dict[str, Scalar] = {}
    for part in parts:
        for each in part.case.measurements:
            measurements.setdefault(each.metric, each)
        for name, value in part.case.facts:
            facts.setdefault(name, value)
    return replace(
        first,
        ending=failed[0] if failed else endings[0],
        measurements=tuple(measurements.values()),
        facts=tuple(facts.items()),
    )
