"""A run as the CSV files of PyTorch's dynamo runner.

What a case does not have is an empty cell, where the runner itself writes 0; a case that failed has
upstream's 0.0 as its speed-up, which is how its readers know it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from torchgauge.errors import NothingSelectedError
from torchgauge.records import Modifier, Status
from torchgauge.results.atomic_file import storage_errors, write_atomically
from torchgauge.results.csv_text import csv_text
from torchgauge.results.interchange import upstream_names as names
from torchgauge.results.interchange.dynamo_columns import (
    ACCURACY,
    COLUMNS,
    EXPECTED,
    METRICS,
    NUMBERS,
    PERFORMANCE,
    memory_unit,
    unit_of,
)
from torchgauge.results.interchange.exported_run import ExportedCase, ExportedRun, Written
from torchgauge.results.interchange.upstream_names import Context
from torchgauge.results.interchange.upstream_statuses import upstream_word


def write_dynamo_csv(run: ExportedRun, folder: Path) -> Written:
    """A performance and an accuracy file for each configuration, suite, mode, dtype and device of ``run``.

    Raises :class:`NothingSelectedError`, with nothing written, where no case has a row.
    """
    return _write(run, folder, {PERFORMANCE: PERFORMANCE, ACCURACY: ACCURACY}, COLUMNS)


def write_expected_csv(run: ExportedRun, folder: Path) -> Written:
    """An expected-accuracy file for each configuration, suite, mode, dtype and device of ``run``.

    Raises :class:`NothingSelectedError`, with nothing written, where no case has a row.
    """
    return _write(run, folder, {ACCURACY: ""}, {ACCURACY: COLUMNS[EXPECTED]})


def _row(run: ExportedRun, case: ExportedCase, kind: str) -> tuple[dict[str, str] | None, str]:
    """The row of ``case`` in a file of ``kind``, or None and why it has none."""
    if not case.compiled:
        return None, "eager cases have no row: they are the baseline of other rows"
    if Modifier.OTHER_MODEL.value in (case.row["modifiers"] or ()):
        return None, "the built model is not the named one, which upstream's format cannot express"
    if reason := _apart(case, kind):
        return None, reason
    word = upstream_word(case.row, case.facts)
    if word is None:
        return None, f"upstream's format cannot express {case.row['status']}"
    row = dict.fromkeys(COLUMNS[kind], "")
    row |= {"dev": case.device, "name": case.row["model"], "batch_size": str(case.row["batch"])}
    passed = case.row["status"] == Status.PASS.value
    if kind == ACCURACY:
        row["accuracy"] = word
    elif not passed:
        return row | {"speedup": "0.0", "abs_latency": "0.0"}, ""
    if passed:
        numbers = _exported_numbers(run, case)
        row |= {name: _cell(numbers[name]) for name in row if name in numbers}
    if kind == PERFORMANCE and not (row["speedup"] and row["abs_latency"]):
        return None, "the case has no speed-up over eager"
    return row, ""


def _apart(case: ExportedCase, kind: str) -> str:
    """Why a case that passed has no row, since the format has no mark for what is in doubt; else empty.

    Readers of a performance file take its mean, and those of an accuracy file count its passes.
    """
    if case.row["status"] != Status.PASS.value:
        return ""
    unchecked = Modifier.UNCHECKED.value
    modifier = unchecked if unchecked in (case.row["modifiers"] or ()) else ""
    if kind == PERFORMANCE:
        modifier = case.doubt("latency")
    return (
        f"the case is {modifier} ({case.why(modifier)}), which upstream's format cannot express"
        if modifier
        else ""
    )


def _exported_numbers(run: ExportedRun, case: ExportedCase) -> dict[str, float]:
    numbers = {
        column: float(case.facts[f"dynamo_{column}"])
        for column in NUMBERS
        if f"dynamo_{column}" in case.facts
    }
    for column, metric in METRICS.items():
        if metric.name in case.medians and not case.doubt(metric.name):
            numbers[column] = case.medians[metric.name] / unit_of(column, case.device)
    eager = run.eager_of(case)
    if eager is not None and "peak_memory" in eager.medians:
        numbers["eager_peak_mem"] = eager.medians["peak_memory"] / memory_unit(case.device)
    if "eager_peak_mem" in numbers and numbers.get("dynamo_peak_mem"):
        numbers.setdefault("compression_ratio", numbers["eager_peak_mem"] / numbers["dynamo_peak_mem"])
    return numbers


def _cell(value: float) -> str:
    """Six decimals as upstream, and more where those would lose what was measured; counts as they are."""
    if value == int(value):
        return str(int(value))
    short = f"{value:.6f}"
    return short if math.isclose(float(short), value, rel_tol=1e-12) else repr(value)


def _write(
    run: ExportedRun, folder: Path, kinds: Mapping[str, str], columns: Mapping[str, Sequence[str]]
) -> Written:
    """Files of all ``kinds`` (to the ending of their names), with ``columns``; all rows before any file."""
    files: dict[str, dict[tuple[str, ...], dict[str, str]]] = {}
    left_out = []
    for case in run.cases:
        own = case.row
        context = Context(own["suite"], own["mode"], own["dtype"], case.device, own["configuration"])
        for kind, ending in kinds.items():
            row, reason = _row(run, case, kind)
            rows = files.setdefault(names.file_name(context, ending), {}) if row else {}
            key = tuple((row or {}).get(name, "") for name in ("name", "dev", "batch_size"))
            if row and key in rows:
                row, reason = (
                    None,
                    "another size or shape already has this row: the format has no field for sizes",
                )
            if row is None:
                left_out.append((f"{case.row['case_id']} ({kind})", reason))
            else:
                rows[key] = {name: row[name] for name in columns[kind]}
    if not files:
        raise NothingSelectedError(
            "no case of the run has a row in this format",
            hint=f"{left_out[0][0]}: {left_out[0][1]}"
            if left_out
            else "torchgauge results list shows the runs",
        )
    with storage_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    for name, rows in files.items():
        text = csv_text(list(next(iter(rows.values()))), (rows[key].values() for key in sorted(rows)))
        write_atomically(folder / name, text.encode())
    return Written(tuple(folder / name for name in sorted(files)), tuple(left_out))
