"""A run as benchmark-results JSON, schema v3, for PyTorch's HUD: one line per metric of a case.

``benchmark_values`` holds every sample, in the unit that HUD expects of the metric's name; the hash of the
workload, status and whatever else makes a case ours stand in ``extra_info``, as text: there the modifiers of
a case, with the reason of each, and beside a number that enters no comparison ``in_doubt``. Repository,
commit, workflow and time are added by HUD's own uploader. The word of the accuracy check stands in
``metric.extra_info.benchmark_values``, since the column of values holds numbers only.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from torchgauge.errors import NothingSelectedError
from torchgauge.records import METRICS
from torchgauge.results.atomic_file import write_atomically
from torchgauge.results.interchange import upstream_names as names
from torchgauge.results.interchange.dynamo_columns import unit_of
from torchgauge.results.interchange.exported_run import ExportedCase, ExportedRun, Written
from torchgauge.results.interchange.hud_v3 import ACCURACY, EAGER_MEMORY
from torchgauge.results.interchange.upstream_statuses import upstream_word

BENCHMARK = "torchgauge"


def write_hud_v3(run: ExportedRun, path: Path, benchmark: str = BENCHMARK) -> Written:
    """Write ``run`` to ``path`` as JSON lines, every case and every sample of it.

    Raises :class:`NothingSelectedError` for a run without a case.
    """
    lines = [
        json.dumps(record, allow_nan=False) for case in run.cases for record in _records(run, case, benchmark)
    ]
    if not lines:
        raise NothingSelectedError("the run has no case", hint="torchgauge results list shows the runs")
    write_atomically(path, ("\n".join(lines) + "\n").encode())
    return Written((path,), ())


def _records(run: ExportedRun, case: ExportedCase, benchmark: str) -> Iterator[dict[str, Any]]:
    word = upstream_word(case.row, case.facts) or str(case.row["status"])
    yield _record(run, case, benchmark, {"name": ACCURACY, "extra_info": {"benchmark_values": [word]}})
    for metric, samples in sorted(case.samples.items()):
        name = METRICS[metric].upstream if metric in METRICS else ""
        unit_in_base = unit_of(name, case.device) if name else 1.0  # the rest keep name and base unit
        name = name or metric
        if metric == "peak_memory" and not case.compiled:
            name = EAGER_MEMORY
        told = {
            "metric": metric,
            "unit_in_base_units": f"{unit_in_base:g}",
            "base_unit": case.units.get(metric, ""),
        }
        told |= {"in_doubt": doubt} if (doubt := case.doubt(metric)) else {}
        values = [sample / unit_in_base for sample in samples]
        yield _record(run, case, benchmark, {"name": name, "benchmark_values": values, "extra_info": told})
    eager = run.eager_of(case) if case.compiled else None
    memory = case.medians.get("peak_memory")
    if eager is not None and memory and "peak_memory" in eager.medians:
        ratio = eager.medians["peak_memory"] / memory
        yield _record(run, case, benchmark, {"name": "compression_ratio", "benchmark_values": [ratio]})


def _record(run: ExportedRun, case: ExportedCase, benchmark: str, metric: dict[str, Any]) -> dict[str, Any]:
    row = case.row
    identity = run.environments.get(row["environment_id"] or "", {})
    told = {
        "device": case.device,
        "batch_size": row["batch"],
        "configuration": row["configuration"],
        "workload_hash": row["declared_hash"],
        "realised_hash": row["realised_hash"],
        "environment_id": row["environment_id"],
        "run_id": run.run_id,
        "modifiers": " ".join(row["modifiers"] or ()) or None,
        **{name: case.why(name) for name in row["modifiers"] or () if name in case.facts},
        **{
            name: row[name]
            for name in ("size", "shape", "seed", "weights", "status", "phase", "cause", "reason")
        },
    }
    record: dict[str, Any] = {
        "benchmark": {
            "name": benchmark,
            "mode": row["mode"],
            "dtype": row["dtype"],
            "extra_info": {name: str(value) for name, value in told.items() if value is not None},
        },
        "model": {
            "name": row["model"],
            "type": "OSS model",
            "backend": row["backend"],
            "origins": [names.upstream_suite(row["suite"])],
        },
        "metric": metric,
    }
    models = {name: str(value) for name, value in identity.items() if name.endswith(".model")}
    kind = models.get("device.model") or next(iter(models.values()), "")
    record["runners"] = [{"name": str(row["device"]), "type": kind, "extra_info": models}]
    if row["torch_version"]:
        record["dependencies"] = {"torch": {"version": row["torch_version"]}}
    return record
