"""The journal in a set: whole, in order, of this plan, with one true row for every case."""

from __future__ import annotations

import io
from collections import Counter
from dataclasses import dataclass
from typing import Any

from torchgauge.counted import counted
from torchgauge.records import SCHEMA_VERSION, Calibration, Environment, Result
from torchgauge.registry import metrics
from torchgauge.results.journal_record import End, Kind, Note, PlanStamp, RunState, split_line
from torchgauge.results.rows import TORCH_VERSION_KEYS
from torchgauge.workflows.ingest.plan_check import CheckedPlan
from torchgauge.workflows.ingest.refusal import Reason, RefusedSetError
from torchgauge.workflows.ingest.row_check import Window, check_row
from torchgauge.workflows.ingest.strict_records import decode

MORE_LINES = 20_000
"""Lines that a journal may have beside its rows: notes, environments and calibrations."""

ROW_FACTS, FACT_BYTES = 64 << 10, 16 << 20
"""Characters of a row's facts (an honest row has two thousand), and of all facts of a journal.

Whoever reads a store holds the facts of a run at once, at some ten times their size.
"""
MOST_ENVIRONMENTS, ENVIRONMENT_BYTES = 64, 256 << 10
"""Environments in a journal, one for each device and resumption, and bytes of one."""

FOREIGN_METRICS = 32
"""Metrics in a journal that no package here declares: each would be a series of its own."""


@dataclass(frozen=True)
class CheckedJournal:
    """What a journal that was found true says as a whole.

    Of ``environments`` it has what they say of torch; ``excused`` rows expect another end than the campaign.
    """

    state: RunState
    rows: int
    counts: dict[str, int]
    environments: tuple[Environment, ...]
    excused: int = 0


def check_journal(raw: bytes, plan: CheckedPlan, device: str, window: Window) -> CheckedJournal:
    """The journal in ``raw``; raises :class:`RefusedSetError` for the first thing that is wrong with it."""
    reading = _Reading(plan, device, window)
    for number, line in enumerate(io.BytesIO(raw), start=1):
        if number > len(plan.cases) + MORE_LINES:
            raise RefusedSetError(
                Reason.TOO_LARGE, f"the journal has more than {counted(number - 1, 'line')}"
            )
        parts = split_line(line)
        if parts is None:
            raise RefusedSetError(Reason.DAMAGED_JOURNAL, f"line {number} does not match its checksum")
        said, kind, body = parts
        if said != number:
            raise RefusedSetError(Reason.JOURNAL_ORDER, f"line {number} has the number {said}")
        reading.line(number, kind, body)
    return reading.end()


class _Reading:
    """One pass over a journal, with what was seen so far."""

    def __init__(self, plan: CheckedPlan, device: str, window: Window) -> None:
        self._plan, self._device, self._window = plan, device, window
        self._left = dict(plan.cases)
        self._known, self._foreign = metrics().keys(), set[str]()
        self._statuses: Counter[str] = Counter()
        self._environments: dict[str, Environment] = {}
        self._excused = self._observed = self._told = 0
        self._end: RunState | None = None
        self._steps = {
            Kind.PLAN.value.encode(): self._stamp,
            Kind.ENVIRONMENT.value.encode(): self._environment,
            Kind.CALIBRATION.value.encode(): self._calibration,
            Kind.RESULT.value.encode(): self._result,
            Kind.NOTE.value.encode(): self._note,
            Kind.END.value.encode(): self._ended,
        }

    def line(self, number: int, kind: bytes, body: bytes) -> None:
        """Check one line."""
        step = self._steps.get(kind)
        if step is None:
            raise RefusedSetError(Reason.SCHEMA, f"line {number} is of an unknown kind")
        if (number == 1) != (kind == b"plan") or self._end is not None:
            raise RefusedSetError(
                Reason.JOURNAL_ORDER, f"line {number}: the plan must be the first line, the end the last line"
            )
        step(body, f"line {number}")

    def end(self) -> CheckedJournal:
        """What the journal says as a whole."""
        if self._end is None:
            raise RefusedSetError(Reason.DAMAGED_JOURNAL, "the journal has no end line: the file was cut off")
        if self._left:
            first = min(self._left)
            raise RefusedSetError(
                Reason.MISSING_CASE,
                f"{counted(len(self._left), 'case has', 'cases have')} no row: {first}, ...",
            )
        counts = dict(sorted(self._statuses.items()))
        environments = tuple(self._environments.values())
        return CheckedJournal(self._end, sum(counts.values()), counts, environments, self._excused)

    def _stamp(self, body: bytes, what: str) -> None:
        stamp = decode(body, PlanStamp, what)
        if stamp.schema_version != SCHEMA_VERSION:
            raise RefusedSetError(
                Reason.SCHEMA, f"the journal's schema version is {stamp.schema_version}, not {SCHEMA_VERSION}"
            )
        if (stamp.run_id, stamp.digest) != (self._plan.run_id, self._plan.digest):
            raise RefusedSetError(Reason.PLAN_DIGEST, "the journal belongs to another plan than plan.json")

    def _environment(self, body: bytes, what: str) -> None:
        self._observed += 1
        if self._observed > MOST_ENVIRONMENTS or len(body) > ENVIRONMENT_BYTES:
            most = f"{MOST_ENVIRONMENTS} environments of {ENVIRONMENT_BYTES} bytes"
            raise RefusedSetError(Reason.TOO_LARGE, f"{what}: more than {most}")
        found = decode(body, Environment, what)
        if found.device.partition(".")[0] != self._device:
            raise RefusedSetError(Reason.DEVICE, f"{what}: the environment is not of the pool's device")
        keys = [key for key, _ in found.identity]
        if keys != sorted(set(keys)):
            # the id is a hash of the pairs as they stand: one machine must not have two
            raise RefusedSetError(Reason.ENVIRONMENT, f"{what}: the facts are not sorted and unique")
        whole = Environment(found.device, found.identity)
        told = tuple(pair for pair in found.identity if pair[0] in TORCH_VERSION_KEYS)
        self._environments[whole.id] = Environment(found.device, told)

    def _calibration(self, body: bytes, what: str) -> None:
        found = decode(body, Calibration, what)
        numbers = (found.gemm_flops, found.copy_bytes_per_s, found.launch_s)
        if any(number is not None and number < 0 for number in numbers):
            raise RefusedSetError(Reason.NUMBER, f"{what}: a calibration value is below zero")

    def _note(self, body: bytes, what: str) -> None:
        self._window.check(decode(body, Note, what).at, f"the note on {what}")

    def _result(self, body: bytes, what: str) -> None:
        row = decode(body, Result, what)
        case_id = row.case_id
        if case_id not in self._plan.cases:
            raise RefusedSetError(Reason.FOREIGN_CASE, f"{what}: the case is not in the plan")
        planned = self._left.pop(case_id, None)
        if planned is None:
            raise RefusedSetError(Reason.CASE_TWICE, f"{what}: a second row of {case_id}")
        if row.case != planned.case:
            raise RefusedSetError(Reason.FOREIGN_CASE, f"{what}: {case_id} differs from the planned case")
        told = sum(len(name) + len(str(value)) for name, value in row.facts)
        self._told += told
        if told > ROW_FACTS or self._told > FACT_BYTES:
            most = f"{ROW_FACTS} characters of facts in one result, or {FACT_BYTES} in the journal"
            raise RefusedSetError(Reason.TOO_LARGE, f"{what}: more than {most}")
        self._check_metrics(row, what)
        check_row(row, self._plan.run_id, self._environments, self._window)
        ours = planned.expectation.status if planned.expectation else None
        self._excused += row.expected is not ours
        self._statuses[row.status.value] += 1

    def _check_metrics(self, row: Any, what: str) -> None:
        self._foreign |= {each.metric for each in row.measurements} - self._known
        if len(self._foreign) > FOREIGN_METRICS:
            raise RefusedSetError(
                Reason.TOO_LARGE,
                f"{what}: more than {FOREIGN_METRICS} metrics unknown to this torchgauge version",
            )

    def _ended(self, body: bytes, what: str) -> None:
        end = decode(body, End, what)
        if end.state is RunState.RUNNING:
            raise RefusedSetError(Reason.ROW, f"{what}: a run cannot end with the state running")
        self._window.check(end.at, "the end of the run")
        self._end = end.state
