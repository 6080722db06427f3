"""The last words of a run on a terminal."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Collection, Sequence
from pathlib import Path

from torchgauge.counted import counted
from torchgauge.harness.cold_sampling import cold_count
from torchgauge.harness.run.code_origin import CodeOrigin
from torchgauge.harness.run.run_report import RunReport
from torchgauge.records import (
    ATTEMPTED,
    INCOMPLETE,
    Accuracy,
    Again,
    Plan,
    Result,
    Status,
    Summary,
    View,
    doubt,
    in_view,
    inexact,
)
from torchgauge.results import document, units
from torchgauge.results.hostile_text import visible
from torchgauge.results.latest import read_rows

_BREAKS = re.compile(r"[\n\t]")


def summary_lines(report: RunReport, store: Path) -> list[str]:
    """Headline, counts, unexpected cases and where everything is."""
    left_out = [*report.skipped, *report.unsupported]
    before = read_rows([str(store)]).last_passed if left_out else frozenset()
    lost = [each for each in left_out if each.case.key in before]
    lines, folder = report_lines(report, lost), store / "runs" / report.run_id
    resume = ["torchgauge", "run", "--resume", str(folder), *report.chosen]
    if report.interrupted:
        lines.append(f"interrupted. Continue with: {shlex.join(resume)}")
    elif report.out_of_budget:
        lines.append(f"the budget is spent. Continue with: {shlex.join(resume)}")
    elif report.incomplete:
        for status in Status:
            resume += ["--retry", status.value] * (status in INCOMPLETE and report.counts[status] > 0)
        lines.append(f"incomplete. Measure the missing cases with: {shlex.join(resume)}")
    elif not report.telling:
        problem = "no pass counts" if report.counts[Status.PASS] else "no case was measured"
        lines.append(f"{problem}, so this run has no result for any model")
    lines += [f"run {report.run_id} in {store}", f"logs in {folder / 'logs'}"]
    return lines


def report_lines(report: RunReport, lost: Sequence[Result] = ()) -> list[str]:
    """Return headline, counts and the cases to look at; ``lost`` passed before and were left out."""
    apart = report.counts[Status.PASS] - report.passed
    marks = {Status.PASS: f" ({apart} not counted)"} if apart else {}
    text = document.terminal(
        "harness/run/summary",
        report=report,
        attempted=sum(report.counts[status] for status in ATTEMPTED),
        counts=", ".join(f"{n} {s.value}{marks.get(s, '')}" for s in Status if (n := report.counts[s])),
        skipped=Counter((each.cause, each.reason) for each in report.skipped).most_common(),
        missing=report.missing.most_common(),
        lost=lost,
        unchecked=Counter(each.unchecked for each in report.unchecked),
        compiled=", ".join(f"{n} {each.value}" for each in CodeOrigin if (n := report.compiled[each])),
        passed_but=passed_but,
    )
    return text.splitlines()


def passed_but(result: Result) -> str:
    """``pass, but 2 operators (12% of the step) ran on the host: ...``; empty where a pass is one."""
    if result.status is not Status.PASS or not result.degraded:
        return ""
    return f"{result.status.value}, but {units.shortened(result.degraded, 200)}"


def plan_lines(plan: Plan) -> list[str]:
    """One line per case, marked where it will not be attempted, and the totals."""
    cold, compiled = cold_count(plan)
    return document.terminal("harness/run/plan", plan=plan, cold=cold, compiled=compiled).splitlines()


def result_lines(result: Result) -> list[str]:
    """Everything about one result, as a person reads it: status, metrics with intervals, failure, log."""
    head = f"{result.case_id}: {result.status.value} in phase {result.phase.value}"
    lines = [head + (f" ({result.cause.value})" if result.cause else "")]
    if told := passed_but(result):
        lines.append(f"  degraded   {told}")
    if result.reason:
        lines.append(f"  reason     {result.reason}")
    if result.other_model:
        lines.append(f"  not it     {result.other_model}")
    lines += [f"  {name:<10} {why}" for name, why in _notes(result)]
    if result.teardown:
        lines.append(f"  teardown   {result.teardown}")
    lines += [f"  {each.metric:<16} {describe_summary(each, result.modifiers)}" for each in result.summaries]
    if result.accuracy is not None:
        lines.append(f"  accuracy   against {result.accuracy.reference}: {_accuracy(result.accuracy)}")
    if result.realised is not None:
        lines.append(
            f"  model      {counted(result.realised.parameters, 'parameter')}, "
            f"realised {result.realised.hash}"
        )
        lines += [f"  note       {each}" for each in result.realised.notes]
    lines += [f"  {name:<16} {value}" for name, value in result.facts]
    lines = [_BREAKS.sub(" ", visible(line)) for line in lines]
    lines.append(f"  reproduce  {document.shell_line(result.reproduce)}")
    if result.failure is not None and result.failure.traceback:
        lines += ["  traceback", *_quoted(result.failure.traceback)]
    elif result.log_excerpt:
        lines += ["  end of log", *_quoted(result.log_excerpt)[-20:]]
    return lines


def _quoted(text: str) -> list[str]:
    return [f"    {line}" for line in visible(text).expandtabs().splitlines()]


def brief_text(rows: Sequence[Result]) -> str:
    """Each row in one line, and in a further one where there is a reason or where it is degraded."""
    return document.terminal(
        "harness/run/brief_rows", rows=rows, numbers=_brief_numbers, passed_but=passed_but, in_doubt=_notes
    )


def _brief_numbers(row: Result) -> str:
    return ", ".join(
        f"{each.metric} {units.told(each.median, each.unit, inexact(each.metric, row.modifiers))}"
        for each in row.summaries
        if each.metric in in_view(View.BRIEF) and each.median is not None
    )


def _notes(result: Result) -> list[tuple[str, str]]:
    """Return what a line on a row must not leave out.

    That is each modifier that keeps the row out of comparisons, with its reason, and how earlier attempts
    ended, such as one whose worker was killed, with why there was another.
    """
    names = ("unchecked", "faster_than_peak", "unsteady")
    in_doubt = [(name, why) for name in names if (why := getattr(result, name))]
    earlier = [
        (
            f"attempt {each.number}",
            f"{each.status.value} on {each.device}: {each.reason or 'no reason'}; {_WHY_AGAIN[each.again]}",
        )
        for each in result.attempts
        if each.again is not None and each.number != result.attempt
    ]
    return [*in_doubt, *earlier]


_WHY_AGAIN = {
    Again.INFRASTRUCTURE: "retried, because the environment failed",
    Again.ALONE: "retried alone, because a concurrent case may be the cause",
    Again.ASKED: "one of several requested repetitions",
}


def describe_summary(summary: Summary, modifiers: Collection[str] = ()) -> str:
    """``12.3 ms [12.1, 12.6] n=40, median of ...`` or the reason why there is no value.

    The modifier that keeps the number apart is named; one that is unsteady is rough.
    """
    if summary.median is None:
        return f"not measured: {summary.absent}"
    text = units.interval(summary.median, summary.low, summary.high, summary.unit)
    if doubted := doubt(summary.metric, modifiers):
        _, between = units.interval_parts(summary.median, summary.low, summary.high, summary.unit)
        value = units.told(summary.median, summary.unit, inexact(summary.metric, modifiers))
        text = " ".join(part for part in (value, between) if part)
    details = [
        doubted and f"{doubted}: compared with nothing",
        f"n={summary.n}",
        summary.method,
        summary.provenance,
        summary.stopped and f"stopped: {summary.stopped}",
    ]
    return f"{text}  ({'; '.join(each for each in details if each)})"


def _accuracy(accuracy: Accuracy) -> str:
    parts = []
    if accuracy.max_abs_error is not None:
        parts.append(f"largest error {accuracy.max_abs_error:.3g}")
    if accuracy.rmse is not None:
        parts.append(f"RMSE {accuracy.rmse:.3g}")
    if accuracy.rmse_ratio is not None:
        parts.append(f"{accuracy.rmse_ratio:.2f} times that of the reference run")
    return ", ".join(parts) or accuracy.detail or "checked"
