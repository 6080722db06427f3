"""What failures have in common: the one rule that ``triage``, the dashboard and expectations share.

A row belongs to exactly one cluster, found by the first of these that fits:

1. *operator*: an exception that names a missing operator. The operator alone decides, whatever the model,
   device or overload; a kernel that lacks a dtype counts with the dtype.
2. *crash*: the phase and the signal, or the exit status.
3. *timeout*: the phase.
4. *oom*: whose memory ran out, and the phase.
5. *exception*: the fingerprint (exception type, first frame in torch or the backend, normalised message).
6. *accuracy*: the cause, the family of the model, and whether it was compiled. Wrong numbers name no place.
7. *reason*: status, cause and the pattern of the first line of the reason.

Crashes, timeouts and full memories have fingerprints too, of what happened to be running; those would split
one cause by model, so they do not count here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

from torchgauge.records import Cause, Status, digest
from torchgauge.records.message_pattern import gist, normalise
from torchgauge.results.hostile_text import first_line
from torchgauge.suites.census.record import base_name

Row = Mapping[str, Any]
"""A row of ``results`` with at least the columns of :data:`COLUMNS`; what is missing is None."""

COLUMNS = (
    "status", "cause", "phase", "exit", "reason", "error_type", "error_message", "error_frame", "missing_op",
    "fingerprint", "accuracy_detail", "suite", "model", "backend",
)  # fmt: skip

Member = TypeVar("Member")

_OTHER_TENSORS = re.compile(r"from the '(?:Sparse|Quantized|Nested|Mkldnn|Batched)\w*' backend")
"""A complaint about tensors of another kind says nothing of dense ones, which models are made of."""
_NO_DTYPE = re.compile(r"not implemented for '(\w+)'")
_SIGNAL = re.compile(r"signal \d+ \((\w+)\)")
_FAMILY = re.compile(r"([A-Za-z]+?)(?:[vV]?\d|For[A-Z]|[^A-Za-z0-9]|$)")
_TITLE = 300


@dataclass(frozen=True)
class ClusterKey:
    """What the rows of one cluster share; ``kind`` is one of the seven of the module."""

    kind: str
    parts: tuple[str, ...]

    @cached_property
    def id(self) -> str:
        """Twelve hex digits that name the cluster in every store."""
        return digest([self.kind, *self.parts])[:12]


def key_of(row: Row) -> ClusterKey:
    """The cluster that ``row`` belongs to; ``row`` did not pass."""
    status, cause, phase = row["status"], row["cause"] or "", row["phase"] or ""
    operator = _missing_operator(row)
    if operator and status in (Status.ERROR.value, Status.UNSUPPORTED.value):
        return ClusterKey("operator", operator)
    if status == Status.CRASH.value:
        return ClusterKey("crash", (_ending(row), phase))
    if status == Status.TIMEOUT.value:
        return ClusterKey("timeout", (phase,))
    if status == Status.OOM.value:
        return ClusterKey("oom", (cause, phase))
    if row["fingerprint"]:
        return ClusterKey("exception", (row["fingerprint"],))
    if status == Status.FAIL_ACCURACY.value:
        path = "eager" if row["backend"] == "eager" else "compiled"
        return ClusterKey("accuracy", (cause, row["suite"], family_of(row["model"]), path))
    said = row["reason"] or row["error_message"] or row["accuracy_detail"] or ""
    return ClusterKey("reason", (status, cause, normalise(first_line(said))))


def title_of(row: Row, key: ClusterKey | None = None) -> str:
    """What a person calls the cluster of ``row``: one visible line."""
    key = key or key_of(row)
    said = first_line(row["error_message"] or row["reason"] or row["accuracy_detail"] or "", _TITLE)
    if key.kind == "operator":
        dtype = f" for {key.parts[1]}" if len(key.parts) > 1 else ""
        return first_line(f"{key.parts[0]} is missing{dtype}", _TITLE)
    if key.kind == "crash":
        return first_line(f"{key.parts[0]} in the phase {key.parts[1]}", _TITLE)
    if key.kind == "timeout":
        return f"{key.parts[0]} timed out"
    if key.kind == "oom":
        whose = "on the host" if key.parts[0] == Cause.HOST_LIMIT.value else "on the device"
        return f"memory ran out {whose} in the phase {key.parts[1]}"
    if key.kind == "accuracy":
        cause, suite, family, path = key.parts
        return first_line(f"wrong numbers ({cause or 'no cause'}) of {suite}/{family}*, {path}", _TITLE)
    if key.kind == "exception" and row["error_type"]:
        return first_line(f"{row['error_type']}: {said}" if said else row["error_type"], _TITLE)
    return said or row["cause"] or row["status"]


def cause_of(row: Row) -> str:
    """Return the title of the cluster of ``row`` in words that do not change from run to run.

    An expectation names a cause by it. The place of an exception moves from one torch to the next: it stands
    only where there is no message.
    """
    message = row["error_message"] or row["reason"] or row["accuracy_detail"] or ""
    if message and message == (row["error_type"] or "").rpartition(".")[2]:
        message = (row["error_frame"] or "").partition(":")[0]
    return title_of({**row, "error_message": normalise(gist(message))}, key_of(row))


def grouped(members: Iterable[Member], row_of: Callable[[Member], Row]) -> dict[ClusterKey, Sequence[Member]]:
    """``members`` by the cluster of their rows, both in the order in which they were met."""
    found: dict[ClusterKey, list[Member]] = {}
    for member in members:
        found.setdefault(key_of(row_of(member)), []).append(member)
    return dict(found)


def family_of(model: str) -> str:
    """``resnet`` of ``resnet50``, ``mobilenet`` of ``mobilenetv3_x``, ``Albert`` of ``AlbertForMaskedLM``.

    A dotted name, such as that of an operator or a check, is a family of its own.
    """
    found = None if "." in model else _FAMILY.match(model)
    return found[1] if found else model


def _missing_operator(row: Row) -> tuple[str, ...]:
    message = row["error_message"] or ""
    if not row["missing_op"] or _OTHER_TENSORS.search(message):
        return ()
    dtype = _NO_DTYPE.search(message)
    if dtype and "::" not in row["missing_op"]:
        return (row["missing_op"], dtype[1])
    return (base_name(row["missing_op"]),)


def _ending(row: Row) -> str:
    for text in (row["error_message"], row["reason"], row["exit"]):
        if text and (found := _SIGNAL.search(text)):
            return found[1]
    said = first_line(row["error_message"] or row["reason"] or row["exit"] or row["cause"] or "")
    return said or "the process ended"
