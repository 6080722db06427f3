"""What a row says that follows from other things in it, computed again by the functions that a run uses.

Expectation, summaries and the modifiers of :data:`torchgauge.harness.run.rows.DERIVED` are not what a worker
measured: a run derives them from its plan and its samples. Ours replace the set's, so that a false one gains
nothing and an older torchgauge, whose rule of an interval was another, is not turned away.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass, fields
from operator import attrgetter
from typing import Any

import msgspec

from torchgauge.harness.run.rows import DERIVED, UNDECLARED, Derived, derived
from torchgauge.records import METRICS, Cause, Modifier, Phase, Result, RunSettings, Status, Summary
from torchgauge.registry import metrics
from torchgauge.results.journal_record import Kind, encode_line, split_line
from torchgauge.workflows.ingest.refusal import Reason, RefusedSetError
from torchgauge.workflows.ingest.strict_records import decode

CONFIDENCE = RunSettings().confidence
"""That of every interval: no run lets it be chosen."""
_OF_THE_SAMPLES = ("unit", "n", "median", "provenance", "stopped", "absent")
"""What a summary says by no rule that ever changed: anything else was not made of these samples.

So is the direction of a metric of ours; which packages are installed decides that of another.
"""
_NAMES = {UNDECLARED, *(modifier.value for modifier in DERIVED)}
_SUMMARY = attrgetter(*(item.name for item in fields(Summary)))


@dataclass(frozen=True)
class _Said:
    """What the worker said of a case, with the names of an :class:`torchgauge.records.Outcome`."""

    status: Status
    phase: Phase
    cause: Cause | None
    reason: str
    failure: Any
    accuracy: Any
    modifiers: tuple[Modifier, ...]
    measurements: tuple[Any, ...]
    realised: Any
    facts: tuple[tuple[str, Any], ...]


def recomputed(row: Any, planned: Any) -> Any | None:
    """``row`` with what follows from ``planned`` and its samples; None where it says just that.

    Both are strict twins. Raises :class:`RefusedSetError` where a count or a median is not that of the
    samples: no version of torchgauge would have written it.
    """
    said = _Said(
        row.status,
        row.phase,
        row.cause,
        row.reason,
        row.failure,
        row.accuracy,
        tuple(each for each in row.modifiers if each not in DERIVED),
        row.measurements,
        row.realised,
        tuple(pair for pair in row.facts if pair[0] not in _NAMES),
    )
    try:
        ours = derived(planned, said, CONFIDENCE, metrics())  # type: ignore[arg-type]  # twins have the records' names
    except ValueError as error:
        raise RefusedSetError(Reason.ROW, f"{row.case_id}: its blocks or CPUs are not valid") from error
    same = _check_samples(row, ours)
    if same and (row.expected, row.modifiers, row.facts) == (ours.expected, ours.modifiers, ours.facts):
        return None
    return msgspec.structs.replace(
        row, expected=ours.expected, modifiers=ours.modifiers, summaries=ours.summaries, facts=ours.facts
    )


def corrected(journal: bytes, cases: Mapping[str, Any]) -> bytes:
    """``journal``, which was checked, with every row as :func:`recomputed` has it; ``cases`` are planned."""
    written = io.BytesIO()
    for line in io.BytesIO(journal):
        parts = split_line(line)
        assert parts is not None
        number, kind, body = parts
        if kind == Kind.RESULT.value.encode():
            row = decode(body, Result, f"line {number}")
            ours = recomputed(row, cases[row.case_id])
            if ours is not None:
                line = encode_line(number, Kind.RESULT, msgspec.to_builtins(ours))  # noqa: PLW2901
        written.write(line)
    return written.getvalue()


def _check_samples(row: Any, ours: Derived) -> bool:
    """Whether the row's summaries are all as ours; raises where one was not made of the row's samples."""
    if list(map(_SUMMARY, row.summaries)) == list(map(_SUMMARY, ours.summaries)):
        return True
    mine = {summary.metric: summary for summary in ours.summaries}
    for summary in row.summaries:
        found = mine.get(summary.metric)
        kept = (*_OF_THE_SAMPLES, "better") if summary.metric in METRICS else _OF_THE_SAMPLES
        wrong = next((n for n in kept if getattr(found, n, None) != getattr(summary, n)), "")
        if found is None or wrong:
            what = wrong or "metric"
            raise RefusedSetError(
                Reason.RECOMPUTED, f"{row.case_id}: the {what} of {summary.metric} is not of its samples"
            )
    return False
