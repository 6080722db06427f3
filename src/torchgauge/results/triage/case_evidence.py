"""How each case of a device ends in run after run, and whether that is enough to expect it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from torchgauge.errors import NothingSelectedError
from torchgauge.records import INCOMPLETE, Case, Modifier, Status
from torchgauge.results.row_case import case_of
from torchgauge.results.triage.reading import Row, Wanted, chosen_rows, heavy_rows, light_rows

NO_EVIDENCE = INCOMPLETE | {Status.SKIPPED}
"""Statuses that say nothing of what a case does: rows with them are passed over."""


@dataclass(frozen=True)
class CaseEvidence:
    """One case: its newest row that says something, and the status in which enough runs agree.

    ``status`` is None where they do not, and ``undecided`` says why. ``skipped`` is true where the newest
    row of all is a skip.
    """

    case: Case
    row: Row
    status: Status | None
    runs: int
    undecided: str = ""
    skipped: bool = False


@dataclass(frozen=True)
class Evidence:
    """The cases of the stores, by device in the order of their ids."""

    cases: tuple[CaseEvidence, ...]
    notes: tuple[str, ...] = ()
    gaps: tuple[str, ...] = ()

    @property
    def devices(self) -> tuple[str, ...]:
        """Names of the devices, without indices."""
        return tuple(sorted({each.case.device.name for each in self.cases}))


def read_evidence(paths: Sequence[str], wanted: Wanted, runs: int) -> Evidence:
    """The evidence in the stores at ``paths``: the newest ``runs`` rows of a case must agree and be steady.

    Raises what :func:`torchgauge.results.triage.reading.read_failures` raises.
    """
    parts, where, notes, gaps = light_rows(paths)
    if not parts:
        raise NothingSelectedError(
            f"no run is published in {', '.join(paths)}",
            hint="torchgauge run SUITE --device DEVICE --store DIR measures something",
        )
    whole = chosen_rows(pa.concat_tables(parts), wanted)
    skips = {
        key
        for key, status in zip(whole["case_key"].to_pylist(), whole["status"].to_pylist(), strict=True)
        if status == Status.SKIPPED.value
    }
    silent = pa.array(sorted(status.value for status in NO_EVIDENCE))
    saying = whole.filter(pc.invert(pc.is_in(whole["status"], value_set=silent)))
    newest: dict[str, list[tuple[str, str, str]]] = {}
    columns = [saying[name].to_pylist() for name in ("case_key", "run_id", "status", "modifiers")]
    last: dict[str, int] = {}
    for place, (key, run, status, modifiers) in enumerate(zip(*columns, strict=True)):
        newest.setdefault(key, []).append((run, status, _doubt(modifiers or ())))
        last[key] = place
    shown = saying.take(pa.array(sorted(last.values()), pa.int64()))
    rows = [row for _, found in heavy_rows(shown, where, gaps) for row in found]
    skipped = _skipped(whole, skips)
    found = [
        CaseEvidence(case_of(row), row, *_decided(newest[key][-runs:], runs), skipped=key in skipped)
        for row in rows
        if (key := row["case_key"])
    ]
    found.sort(key=lambda each: each.case.id)
    return Evidence(tuple(found), tuple(notes), tuple(dict.fromkeys(gaps)))


def _doubt(modifiers: Sequence[str]) -> str:
    """Why a row decides nothing of the case; empty where it may."""
    if Modifier.OTHER_MODEL.value in modifiers:
        return "another model than its name says"
    if Modifier.UNCHECKED.value in modifiers:
        return "nothing checked its results"
    return "flaky" if Modifier.FLAKY.value in modifiers else ""


def _decided(ends: Sequence[tuple[str, str, str]], runs: int) -> tuple[Status | None, int, str]:
    """The status in which the rows ``ends`` agree, how many they are, and why they do not."""
    doubts = [doubt for _, _, doubt in ends if doubt]
    if doubts:
        return None, len(ends), doubts[-1]
    if len(ends) < runs:
        return None, len(ends), f"seen in {len(ends)} of {runs} runs"
    statuses = dict.fromkeys(status for _, status, _ in ends)
    if len(statuses) > 1:
        return None, len(ends), f"runs disagree: {', '.join(statuses)}"
    return Status(ends[-1][1]), len(ends), ""


def _skipped(whole: Any, skips: set[str]) -> set[str]:
    """Keys of cases of which the newest row is a skip."""
    newest = {
        key: status
        for key, status in zip(whole["case_key"].to_pylist(), whole["status"].to_pylist(), strict=True)
        if key in skips
    }
    return {key for key, status in newest.items() if status == Status.SKIPPED.value}
