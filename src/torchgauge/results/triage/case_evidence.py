"""How each case of a device ends in run after run, and whether that is enough to expect it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from torchgauge.counted import counted
from torchgauge.records import INCOMPLETE, Case, Modifier, Status
from torchgauge.results.latest import Row
from torchgauge.results.row_case import case_of
from torchgauge.results.triage.clusters import COLUMNS, cause_of
from torchgauge.results.triage.reading import HEAVY, Wanted, chosen_rows, published_rows

NO_EVIDENCE = INCOMPLETE | {Status.SKIPPED}
"""Statuses that say nothing of what a case does: rows with them are passed over."""


@dataclass(frozen=True)
class CaseEvidence:
    """One case: its newest row with evidence, and the status on which enough runs agree, with one cause.

    ``status`` is None where they differ, and ``undecided`` has the reason. ``causes`` are the causes of all
    rows with the newest row's status, the oldest first, without consecutive repeats. ``skipped`` is true
    where the newest row of all is a skip.
    """

    case: Case
    row: Row
    status: Status | None
    runs: int
    undecided: str = ""
    causes: tuple[str, ...] = ()
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
    chosen = chosen_rows(published_rows(paths), wanted)
    saying = chosen.of("status", [status.value for status in Status if status not in NO_EVIDENCE])
    failed = saying.of("status", [status.value for status in Status if status is not Status.PASS])
    causes = {
        (run.run_id, row["case_key"]): cause_of(row) for run, rows in failed.whole(COLUMNS) for row in rows
    }
    endings: dict[str, list[tuple[str, str, str]]] = {}
    columns = [saying.table[name].to_pylist() for name in ("run_id", "case_key", "status", "modifiers")]
    for run_id, key, status, modifiers in zip(*columns, strict=True):
        end = status, _doubt(modifiers or ()), causes.get((run_id, key), "")
        endings.setdefault(key, []).append(end)
    skips = chosen.newest("case_key").of("status", [Status.SKIPPED.value])
    skipped = set(skips.table["case_key"].to_pylist())
    found = [
        CaseEvidence(
            case_of(row),
            row,
            *_decided(endings[key][-runs:], runs),
            _in_turn(cause for status, doubt, cause in endings[key] if status == row["status"] and not doubt),
            skipped=key in skipped,
        )
        for _, rows in saying.newest("case_key").whole(HEAVY)
        for row in rows
        if (key := row["case_key"])
    ]
    found.sort(key=lambda each: each.case.id)
    return Evidence(tuple(found), tuple(chosen.reading.notes), tuple(chosen.reading.gaps))


def _doubt(modifiers: Sequence[str]) -> str:
    """Why a row decides nothing of the case; empty where it may."""
    if Modifier.OTHER_MODEL.value in modifiers:
        return "the built model is not the named one"
    if Modifier.UNCHECKED.value in modifiers:
        return "the results were not checked"
    return "flaky" if Modifier.FLAKY.value in modifiers else ""


def _in_turn(causes: Iterable[str]) -> tuple[str, ...]:
    return tuple(cause for cause, _ in groupby(causes) if cause)


def _decided(ends: Sequence[tuple[str, str, str]], runs: int) -> tuple[Status | None, int, str]:
    """The status in which the rows ``ends`` agree, how many they are, and why they do not."""
    doubts = [doubt for _, doubt, _ in ends if doubt]
    if doubts:
        return None, len(ends), doubts[-1]
    if len(ends) < runs:
        return None, len(ends), f"seen in {len(ends)} of {counted(runs, 'run')}"
    for differing in (dict.fromkeys(status for status, _, _ in ends), dict.fromkeys(end[2] for end in ends)):
        if len(differing) > 1:
            return None, len(ends), f"runs disagree: {', '.join(differing)}"
    return Status(ends[-1][0]), len(ends), ""
