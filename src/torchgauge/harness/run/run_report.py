"""What came out of a run, for people, for scripts and for exit codes."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

from torchgauge.harness.run.code_origin import CodeOrigin, code_origin
from torchgauge.processes.kept_process import INTERRUPTED
from torchgauge.records import (
    INCOMPLETE,
    Cause,
    Modifier,
    Result,
    Status,
    Subject,
    Summary,
    says_something,
    undeclared_skip,
)


@dataclass(frozen=True)
class CaseLatency:
    """The step time of one case: its summary, and the modifiers that keep it from being compared."""

    case_id: str
    summary: Summary
    modifiers: tuple[Modifier, ...]


@dataclass
class RunReport:
    """What came out of a run, for people and for exit codes.

    ``passed`` counts what :func:`counts_as_pass` counts: no pass that is degraded, unchecked or of another
    model; ``telling`` what :func:`says_something` does. The lists hold rows that are told apart, without
    their measurements; ``skipped`` has those that no data file declares. ``missing`` counts rows that make
    the run incomplete by what they share, which is neither the job of an executor nor its node. ``chosen``
    are the words of the command line that the run needs again to go on.
    """

    run_id: str
    planned: int
    counts: Counter[Status] = field(default_factory=Counter)
    passed: int = 0
    telling: int = 0
    compiled: Counter[CodeOrigin] = field(default_factory=Counter)
    unexpected: list[Result] = field(default_factory=list)
    degraded: list[Result] = field(default_factory=list)
    other_models: list[Result] = field(default_factory=list)
    unchecked: list[Result] = field(default_factory=list)
    unsteady: list[Result] = field(default_factory=list)
    faster_than_peak: list[Result] = field(default_factory=list)
    skipped: list[Result] = field(default_factory=list)
    unsupported: list[Result] = field(default_factory=list)
    missing: Counter[tuple[Status, Cause | None, str]] = field(default_factory=Counter)
    interrupted: bool = False
    out_of_budget: bool = False
    chosen: tuple[str, ...] = ()
    latencies: list[CaseLatency] = field(default_factory=list)

    @property
    def incomplete(self) -> bool:
        """Whether any case is ``infra`` or ``not_run``."""
        return any(self.counts[status] for status in INCOMPLETE)

    @property
    def exit_code(self) -> int:
        """Return 130 interrupted, 3 incomplete, 1 unexpected, 3 nothing measured, 0 as expected; in order."""
        if self.interrupted:
            return INTERRUPTED
        if self.incomplete:
            return 3
        return 1 if self.unexpected else 0 if self.telling else 3

    def add(self, result: Result) -> None:
        """Count one row."""
        self.counts[result.status] += 1
        self.passed += result.counted
        of_a_model = result.case.workload.subject is Subject.MODELS
        informs = says_something(result.status, result.modifiers, of_a_model=of_a_model)
        self.telling += informs and result.cause is not Cause.MISSING_PACKAGE
        self.latencies += [
            CaseLatency(result.case_id, each, result.modifiers)
            for each in result.summaries
            if each.metric == "latency"
        ]
        origin = code_origin(result)
        if origin is not None:
            self.compiled[origin] += 1
        slim = replace(result, measurements=(), summaries=(), log_excerpt="", failure=None)
        if result.other_model:
            self.other_models.append(slim)
        if result.unchecked:
            self.unchecked.append(slim)
        if undeclared_skip(result.status, result.cause):
            self.skipped.append(slim)
        if result.status in INCOMPLETE and result.cause not in (Cause.CANCELLED, Cause.BUDGET):
            job, reason = str(dict(result.facts).get("job", "")), result.reason
            if job and reason.startswith(job):  # and its node
                reason = reason.partition(": ")[2]
            self.missing[result.status, result.cause, reason] += 1
        if result.status is Status.UNSUPPORTED:
            self.unsupported.append(slim)
        if result.faster_than_peak:
            self.faster_than_peak.append(slim)
        if result.unsteady:
            self.unsteady.append(slim)
        if result.unexpected:
            self.unexpected.append(slim)  # thousands of them must not fill the parent's memory
        elif result.status is Status.PASS and result.degraded:
            self.degraded.append(slim)


def report_plain(report: RunReport) -> dict[str, Any]:
    """``report`` in JSON values, as ``torchgauge run --json`` prints it."""
    return {
        "run_id": report.run_id,
        "planned": report.planned,
        "passed": report.passed,
        "counts": {status.value: count for status, count in report.counts.items() if count},
        "compiled": {origin.value: count for origin, count in report.compiled.items()},
        "unexpected": [
            {"case": r.case_id, "status": r.status.value, "reason": r.reason, "other_cause": r.other_cause}
            for r in report.unexpected
        ],
        "degraded": [{"case": r.case_id, "how": r.degraded} for r in report.degraded],
        "other_models": [{"case": r.case_id, "how": r.other_model} for r in report.other_models],
        "unchecked": [{"case": r.case_id, "why": r.unchecked} for r in report.unchecked],
        "unsteady": [{"case": r.case_id, "why": r.unsteady} for r in report.unsteady],
        "faster_than_peak": [{"case": r.case_id, "why": r.faster_than_peak} for r in report.faster_than_peak],
        "skipped": [
            {"case": r.case_id, "cause": r.cause and r.cause.value, "reason": r.reason}
            for r in report.skipped
        ],
        "missing": [
            {"status": status.value, "cause": cause and cause.value, "reason": reason, "cases": count}
            for (status, cause, reason), count in report.missing.most_common()
        ],
        "latencies": [_latency(each) for each in report.latencies],
        "interrupted": report.interrupted,
        "out_of_budget": report.out_of_budget,
        "incomplete": report.incomplete,
        "exit_code": report.exit_code,
    }


def _latency(told: CaseLatency) -> dict[str, Any]:
    """Median and interval in ``unit``, or why there are none; what has modifiers is in doubt."""
    fields = {name: getattr(told.summary, name) for name in ("median", "low", "high", "unit", "n")}
    absent = {"absent": told.summary.absent} if told.summary.median is None else {}
    return {"case": told.case_id, **fields, **absent, "modifiers": [each.value for each in told.modifiers]}
