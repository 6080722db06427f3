"""Records to rows of the store's tables: one function per table, nothing else.

Text that is empty becomes null, so that "nothing to say" has one form in every column.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from torchgauge.clock import utc
from torchgauge.records import (
    Accuracy,
    Calibration,
    Configuration,
    Environment,
    Failure,
    Outcome,
    Result,
    Scalar,
    to_plain,
)
from torchgauge.results.row_case import columns_of

Row = dict[str, Any]
_json = json.JSONEncoder(allow_nan=False).encode


@dataclass(frozen=True)
class RunContext:
    """What every row of a run shares: its id, when it was planned, and torch by environment id."""

    run_id: str
    created_at: float
    torch_versions: dict[str, str]


TORCH_VERSION_KEYS = ("torch", "torch_version", "torch.version")
"""Keys of an environment's identity that may hold the version of torch, the first one found."""


def torch_version(environment: Environment) -> str | None:
    """The version of torch that ``environment`` names, if it does."""
    identity = dict(environment.identity)
    return next((str(identity[key]) for key in TORCH_VERSION_KEYS if identity.get(key)), None)


def result_row(result: Result, context: RunContext) -> Row:
    """The row of ``results`` for ``result``."""
    configuration = result.case.configuration
    return {
        **_case(result, context),
        "configuration_compile": _chosen(
            configuration, ("compile_mode", "dynamic", "fullgraph", "memory_format")
        ),
        "configuration_pinning": _chosen(configuration, ("interop_threads", "cpus", "numa")),
        "configuration_options": _object(configuration.options),
        "configuration_env": _object(configuration.env),
        "threads": configuration.threads,
        "expected": result.expected.value if result.expected else None,
        "unexpected": result.unexpected,
        "modifiers": [modifier.value for modifier in result.modifiers],
        **ending(result),
        **_realised(result),
        "duration_s": result.duration_s,
        "exit": result.exit or None,
        "teardown": result.teardown or None,
        "log": result.log or None,
        "log_excerpt": result.log_excerpt or None,
        "reproduce": result.reproduce or None,
        "facts": _object(result.facts),
        "attempt": result.attempt,
        "attempts": _json(to_plain(result.attempts)) if result.attempts else None,
        "schema_version": result.schema_version,
    }


def ending(ended: Outcome | Result) -> Row:
    """Return the columns of ``results`` that say how and why a case ended so, beside its status."""
    return {
        "phase": ended.phase.value,
        "cause": ended.cause.value if ended.cause else None,
        "reason": ended.reason or None,
        **_failure(ended.failure),
        **_accuracy(ended.accuracy),
    }


def summary_rows(result: Result, context: RunContext) -> Iterator[Row]:
    """The rows of ``summaries`` for ``result``."""
    if not result.summaries:
        return
    case = _case(result, context)
    realised_hash = result.realised.hash if result.realised else None
    for summary in result.summaries:
        yield {
            **case,
            **vars(summary),
            "better": summary.better.value,
            "provenance": summary.provenance or None,
            "stopped": summary.stopped or None,
            "absent": summary.absent or None,
            "realised_hash": realised_hash,
        }


def sample_columns(result: Result) -> dict[str, list[Any]]:
    """The rows of ``samples`` for ``result``, by column: a long journal has millions of them."""
    columns: dict[str, list[Any]] = {name: [] for name in ("metric", "block", "index", "value")}
    for measurement in result.measurements:
        count = len(measurement.samples)
        columns["metric"] += [measurement.metric] * count
        columns["block"] += measurement.blocks or [None] * count
        columns["index"] += range(count)
        columns["value"] += measurement.samples
    count = len(columns["value"])
    return {"run_id": [result.run_id] * count, "case_key": [result.case.key] * count, **columns}


def environment_columns(run_id: str, environment: Environment, observation: int) -> dict[str, list[Any]]:
    """The rows of ``environments``, by column; a later observation repeats no identity."""
    pairs: list[tuple[str, Scalar, str]] = [
        (key, value, "condition") for key, value in environment.conditions
    ]
    pairs += [(str(index), note, "note") for index, note in enumerate(environment.notes)]
    if observation == 0:
        pairs = [(key, value, "identity") for key, value in environment.identity] + pairs
    return {
        "run_id": [run_id] * len(pairs),
        "environment_id": [environment.id] * len(pairs),
        "device": [environment.device] * len(pairs),
        "key": [key for key, _, _ in pairs],
        "value": [_json(value) for _, value, _ in pairs],
        "kind": [kind for _, _, kind in pairs],
        "observation": [observation] * len(pairs),
    }


def calibration_row(run_id: str, calibration: Calibration, index: int) -> Row:
    """The row of ``calibrations``; ``index`` is its position in the run."""
    return {
        **vars(calibration),
        "run_id": run_id,
        "index": index,
        "absent": calibration.absent or None,
        "node": calibration.node or None,
    }


def _case(result: Result, context: RunContext) -> Row:
    workload, configuration, device = result.case.workload, result.case.configuration, result.case.device
    return {
        "run_id": context.run_id,
        "case_id": result.case_id,
        "case_key": result.case.key,
        **columns_of(workload),
        "declared_hash": workload.declared_hash,
        "configuration": configuration.name,
        "backend": configuration.backend,
        "device": device.name,
        "device_index": device.index,
        "status": result.status.value,
        "environment_id": result.environment_id or None,
        "torch_version": context.torch_versions.get(result.environment_id),
        "run_created_at": utc(context.created_at),
        "started_at": utc(result.started_at) if result.started_at else None,
    }


def _failure(failure: Failure | None) -> Row:
    return {
        "error_type": (failure and failure.type) or None,
        "error_message": (failure and failure.message) or None,
        "error_frame": (failure and failure.frame) or None,
        "missing_op": (failure and failure.missing_op) or None,
        "fingerprint": (failure and failure.fingerprint) or None,
        "traceback": (failure and failure.traceback) or None,
    }


def _realised(result: Result) -> Row:
    realised = result.realised
    return {
        "realised_hash": realised.hash if realised else None,
        "parameters": realised.parameters if realised else None,
        "buffers": realised.buffers if realised else None,
        "inputs": (realised.inputs or None) if realised else None,
        "realised_notes": list(realised.notes) if realised else [],
    }


def _accuracy(accuracy: Accuracy | None) -> Row:
    numbers = ("max_abs_error", "rmse", "rmse_eager", "rmse_ratio", "eager_spread", "cosine")
    row: Row = {name: getattr(accuracy, name) if accuracy else None for name in numbers}
    row["accuracy_reference"] = (accuracy and accuracy.reference) or None
    row["accuracy_detail"] = (accuracy and accuracy.detail) or None
    return row


def _object(pairs: tuple[tuple[str, Any], ...]) -> str | None:
    return _json(dict(pairs)) if pairs else None


def _chosen(configuration: Configuration, names: tuple[str, ...]) -> str | None:
    """Those of the fields ``names`` that do not stand at their defaults."""
    values = [(name, getattr(configuration, name)) for name in names]
    return _object(tuple((name, value) for name, value in values if value != getattr(Configuration, name)))
