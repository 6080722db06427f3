"""The last words of a run on a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from torchgauge.harness.cold_sampling import cold_count
from torchgauge.harness.run.code_origin import CodeOrigin
from torchgauge.harness.run.runner import RunReport
from torchgauge.records import (
    ATTEMPTED,
    Accuracy,
    Plan,
    Result,
    Status,
    Summary,
    View,
    doubt,
    in_view,
    inexact,
)
from torchgauge.results import units


def summary_lines(report: RunReport, store: Path) -> list[str]:
    """Headline, counts, unexpected cases and where everything is."""
    lines, folder = report_lines(report), store / "runs" / report.run_id
    if report.interrupted:
        lines.append(f"interrupted; go on with: torchgauge run --resume {folder}")
    elif report.out_of_budget:
        lines.append(f"the budget is spent; go on with: torchgauge run --resume {folder}")
    elif report.incomplete:
        lines.append("incomplete: some cases are infra or not_run")
    elif not report.telling:
        lines.append("nothing was measured, so this run says nothing of any model")
    lines.append(f"run {report.run_id} in {store}; logs in {folder / 'logs'}")
    return lines


def report_lines(report: RunReport) -> list[str]:
    """Headline, counts, and the cases that must not be overlooked."""
    passed = report.passed
    attempted = sum(report.counts[status] for status in ATTEMPTED)
    apart = report.counts[Status.PASS] - passed
    marks = {Status.PASS: f" ({apart} not counted)"} if apart else {}
    counts = ", ".join(f"{n} {s.value}{marks.get(s, '')}" for s in Status if (n := report.counts[s]))
    lines = [
        f"{passed}/{report.planned} pass ({passed}/{attempted} of those attempted): {counts}",
    ]
    for result in report.unexpected[:20]:
        reason = f": {units.shortened(result.reason, 160)}" if result.reason else ""
        lines.append(
            f"  unexpected {result.status.value} in phase {result.phase.value}  {result.case_id}{reason}"
        )
    if len(report.unexpected) > 20:
        lines.append(f"  ... and {len(report.unexpected) - 20} more")
    lines += _degraded_lines(report)
    lines += _other_model_lines(report)
    lines += _unchecked_lines(report)
    lines += _unsteady_lines(report)
    return lines + _compiled_lines(report)


def _compiled_lines(report: RunReport) -> list[str]:
    """Where compiled code came from; nothing where no case has any."""
    told = [f"{count} {origin.value}" for origin in CodeOrigin if (count := report.compiled[origin])]
    return [f"compiled: {', '.join(told)}"] if told else []


def _degraded_lines(report: RunReport) -> list[str]:
    """Passes by another path than the requested one, which are no passes of the feature."""
    return _listed(
        report.degraded,
        "degraded: right, but not by the path that was asked for",
        lambda each: f"  {passed_but(each)}  {each.case_id}",
    )


def _other_model_lines(report: RunReport) -> list[str]:
    """Rows of models that are not what their names say."""
    return _listed(
        report.other_models,
        "are of another model than their name says",
        lambda each: f"  {each.case_id}: {each.other_model}",
    )


def _unchecked_lines(report: RunReport) -> list[str]:
    """Rows whose numbers nothing checked, by the reason: a run without accuracy checks has one for all."""
    reasons = Counter(each.unchecked for each in report.unchecked)
    return [f"{count} of them unchecked, so no pass: {why}" for why, count in reasons.items()]


def _unsteady_lines(report: RunReport) -> list[str]:
    """Rows whose step times are in doubt, which count as passes and are compared with nothing."""
    return _listed(
        report.unsteady,
        "unsteady: their step times enter no mean, claim, trend or comparison",
        lambda each: f"  {each.case_id}: {units.shortened(each.unsteady, 200)}",
    )


def _listed(found: Sequence[Result], what: str, line: Callable[[Result], str]) -> list[str]:
    """A heading and a line for each of the first twenty; nothing where there is none."""
    if not found:
        return []
    more = [f"  ... and {len(found) - 20} more"] if len(found) > 20 else []
    return [f"{len(found)} of them {what}", *map(line, found[:20]), *more]


def passed_but(result: Result) -> str:
    """``pass, but 2 operators (12% of the step) ran on the host: ...``; empty where a pass is one."""
    if result.status is not Status.PASS or not result.degraded:
        return ""
    return f"{result.status.value}, but {units.shortened(result.degraded, 200)}"


def plan_lines(plan: Plan) -> list[str]:
    """One line per case, marked where it will not be attempted, and the totals."""
    lines = []
    for planned in plan.cases:
        refusal = planned.refusal
        mark = f"  ({refusal.status.value}: {refusal.reason})" if refusal is not None else ""
        if planned.expectation is not None:
            mark += f"  (expected {planned.expectation.status.value}: {planned.expectation.reason})"
        lines.append(f"{planned.case.id}{mark}")
    lines.append(
        f"{len(plan.cases)} cases in {len(plan.groups)} groups, shard {plan.shard}, digest {plan.digest}"
    )
    cold, compiled = cold_count(plan)
    if cold < compiled:
        lines.append(f"{cold} of {compiled} compiled cases compile cold today ({plan.settings.cold_compile})")
    return lines


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
    lines += [f"  {name:<10} {why}" for name, why in _in_doubt(result)]
    if result.teardown:
        lines.append(f"  teardown   {result.teardown}")
    lines += [f"  {each.metric:<16} {describe_summary(each, result.modifiers)}" for each in result.summaries]
    if result.accuracy is not None:
        lines.append(f"  accuracy   against {result.accuracy.reference}: {_accuracy(result.accuracy)}")
    if result.realised is not None:
        lines.append(f"  model      {result.realised.parameters} parameters, realised {result.realised.hash}")
    lines += [f"  {name:<16} {value}" for name, value in result.facts]
    lines.append(f"  reproduce  {result.reproduce}")
    if result.failure is not None and result.failure.traceback:
        lines += ["  traceback", *(f"    {line}" for line in result.failure.traceback.splitlines())]
    elif result.log_excerpt:
        lines += ["  end of log", *(f"    {line}" for line in result.log_excerpt.splitlines()[-20:])]
    return lines


def brief_lines(result: Result) -> list[str]:
    """One result in one line, and a further one where there is a reason or where it is degraded."""
    numbers = [
        f"{each.metric} {units.told(each.median, each.unit, inexact(each.metric, result.modifiers))}"
        for each in result.summaries
        if each.metric in in_view(View.BRIEF) and each.median is not None
    ]
    lines = [f"{result.case_id}  {result.status.value}  {', '.join(numbers)}".rstrip()]
    if result.reason:
        lines.append(f"  {result.phase.value}: {result.reason}")
    if told := passed_but(result):
        lines.append(f"  {told}")
    if result.other_model:
        lines.append(f"  another model than its name says: {result.other_model}")
    lines += [f"  {name}: {why}" for name, why in _in_doubt(result)]
    return lines


def _in_doubt(result: Result) -> list[tuple[str, str]]:
    """Why nothing says that its numbers are right, and why its step times are compared with nothing."""
    found = (("unchecked", result.unchecked), ("unsteady", result.unsteady))
    return [(name, why) for name, why in found if why]


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
