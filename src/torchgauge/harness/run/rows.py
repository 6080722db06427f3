"""From a worker's outcome to the row that is kept."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from torchgauge.counted import counted
from torchgauge.harness.interpreter.interpreter import hint_for
from torchgauge.harness.interpreter.staging import is_own
from torchgauge.harness.run.steadiness import doubts
from torchgauge.records import (
    METRICS,
    Better,
    Case,
    Cause,
    Measurement,
    Metric,
    Modifier,
    Outcome,
    Phase,
    Plan,
    PlannedCase,
    Result,
    RunSettings,
    Status,
    Summary,
    is_metric_name,
)
from torchgauge.registry import declared_metric
from torchgauge.results.hostile_text import visible
from torchgauge.results.rows import ending
from torchgauge.results.stats import summarise
from torchgauge.results.triage.clusters import cause_of
from torchgauge.suites.pattern import matches

EXCERPT_BYTES = 4096
SMALL_GB = 0.05
"""Size below which parameters do not explain a lack of memory."""
UNDECLARED = "undeclared"
"""The fact that names metrics which nobody declared where the row was made: their owner's word."""


@dataclass(frozen=True)
class RowContext:
    """What all rows of one group share: where they were measured and what was left of the process."""

    environment_id: str = ""
    started_at: float = 0.0
    duration_s: float = 0.0
    exit: str = ""
    teardown: str = ""
    log: str = ""
    log_excerpt: str = ""


def row(plan: Plan, planned: PlannedCase, outcome: Outcome, context: RowContext) -> Result:
    """Return the result of ``planned`` with summaries, expectation and the command that reproduces it.

    ``expected``, ``other_cause``, ``other_model`` and ``unsteady`` are the parent's, with a fact of the name.
    """
    known = {**METRICS, **{metric.name: metric for metric in plan.metrics}}
    outcome = _of_known_units(planned, outcome, known)
    # one line of visible text: untrusted code may have written the reason
    outcome = replace(outcome, reason=visible(" ".join(_reason(plan, planned, outcome).split())))
    expected = planned.expectation.status if planned.expectation else None
    modifiers, facts = list(outcome.modifiers), dict(outcome.facts)
    if expected is not None and expected is outcome.status and expected is not Status.PASS:
        other = other_cause(planned, outcome)
        modifiers.append(Modifier.OTHER_CAUSE if other else Modifier.EXPECTED)
        facts.update({Modifier.OTHER_CAUSE.value: other} if other else {})
    if other := other_model(planned, outcome):
        modifiers.append(Modifier.OTHER_MODEL)
        facts[Modifier.OTHER_MODEL.value] = other
    if unknown := [each.metric for each in outcome.measurements if each.metric not in known]:
        facts[UNDECLARED] = f"{reporter(planned.case)}: {'; '.join(map(_undeclared, unknown))}"
    found = summaries(outcome.measurements, plan.settings.confidence, known)
    if doubt := doubts(outcome.measurements, found, facts):
        modifiers.append(Modifier.UNSTEADY)
        facts[Modifier.UNSTEADY.value] = doubt
    quiet = outcome.status is Status.PASS and not context.teardown
    return Result(
        run_id=plan.run_id,
        case_id=planned.case.id,
        case=planned.case,
        status=outcome.status,
        phase=outcome.phase,
        expected=expected,
        cause=outcome.cause,
        reason=outcome.reason,
        failure=outcome.failure,
        modifiers=tuple(modifiers),
        measurements=outcome.measurements,
        summaries=found,
        realised=outcome.realised,
        accuracy=outcome.accuracy,
        facts=tuple(sorted(facts.items())),
        environment_id=context.environment_id,
        started_at=context.started_at,
        duration_s=context.duration_s,
        exit=context.exit,
        teardown=context.teardown,
        log=context.log,
        log_excerpt="" if quiet else context.log_excerpt,
        reproduce=reproduce_command(planned.case, plan.settings, plan.python),
    )


def other_cause(planned: PlannedCase, outcome: Outcome) -> str:
    """Return the cause of ``outcome`` where it is not the expected cause; empty where none is expected."""
    wanted = planned.expectation.cause if planned.expectation else ""
    if not wanted:
        return ""
    workload, backend = planned.case.workload, planned.case.configuration.backend
    row_fields = {"suite": workload.suite, "model": workload.model, "backend": backend}
    cause = cause_of({**row_fields, "status": outcome.status.value, "exit": None, **ending(outcome)})
    return "" if matches(wanted, cause) else f"{cause} (expected: {wanted})"


def other_model(planned: PlannedCase, outcome: Outcome) -> str:
    """How the model that was built differs from what its suite declares; empty where nothing shows that.

    Without this a small model, or another one of the same name, could pose as the published one.
    """
    declared, realised = planned.parameters, outcome.realised
    if declared is None or realised is None or realised.parameters == declared:
        return ""
    return (
        f"the model that was built has {counted(realised.parameters, 'parameter')}, "
        f"but its suite declares {declared:,}"
    )


def unattempted(plan: Plan, planned: PlannedCase, status: Status, cause: Cause | None, reason: str) -> Result:
    """The row of a case for which no process was started."""
    outcome = Outcome(planned.case.key, status, Phase.START, cause, reason)
    return row(plan, planned, outcome, RowContext())


def summaries(
    measurements: Sequence[Measurement], confidence: float, known: Mapping[str, Metric] = METRICS
) -> tuple[Summary, ...]:
    """One summary per measurement; nobody knows in which direction an undeclared metric improves."""
    return tuple(
        summarise(
            each, known.get(each.metric) or Metric(each.metric, each.unit, Better.NEITHER, ""), confidence
        )
        for each in measurements
    )


def reporter(case: Case) -> str:
    """Whose code said what is in the row of ``case``: the names of the plugins that took part."""
    return f"suite {case.workload.suite} ({case.workload.mode}, {case.configuration.name})"


def _undeclared(metric: str) -> str:
    said = declared_metric(metric)
    return f"{metric}: {said if isinstance(said, str) else 'declared here, but not where it was measured'}"


def _of_known_units(planned: PlannedCase, outcome: Outcome, known: Mapping[str, Metric]) -> Outcome:
    """``outcome`` without measurements that no series can hold; a pass that has one is an error that says so.

    Their samples are told in the reason: in a table they would stand in a unit that is not theirs.
    """
    kept: dict[str, Measurement] = {}
    wrong = []
    for each in outcome.measurements:
        metric = known.get(each.metric)
        unit = metric.unit if metric else each.unit
        why = "twice" if each.metric in kept else f"where the unit is {unit}" if each.unit != unit else ""
        if metric and min(each.samples, default=0.0) < metric.least:
            why = why or "which is never below 0"
        if why or not each.unit or not is_metric_name(each.metric):
            what = ", ".join(f"{sample:g}" for sample in each.samples[:8]) or each.absent
            wrong.append(" ".join(filter(None, (f"{each.metric!r} in {each.unit!r} ({what})", why))))
        else:
            kept[each.metric] = each
    if not wrong:
        return outcome
    status = Status.ERROR if outcome.status is Status.PASS else outcome.status
    said = f"{reporter(planned.case)} reported values that the tables cannot store: {'; '.join(wrong)}"
    reason = "; ".join(filter(None, (outcome.reason, said)))[:1000]
    return replace(outcome, status=status, reason=reason, measurements=tuple(kept.values()))


def reproduce_command(case: Case, settings: RunSettings, python: str = "") -> str:
    """The command that runs ``case`` again with every setting that differs from its default.

    ``python`` is named where it is another interpreter than the one that runs torchgauge.
    """
    words = ["torchgauge", "repro", case.id]
    if python and not is_own(python):
        words += ["--python", python]
    default = RunSettings()
    for item in fields(RunSettings):
        value = getattr(settings, item.name)
        if item.name in _FLAGS and value != getattr(default, item.name):
            words += _FLAGS[item.name](value)
    return shlex.join(words)


def option_of(name: str, value: Any) -> str:
    """Return the option that gives the setting ``name`` this ``value``."""
    option = f"--{name.removesuffix('_s').replace('_', '-')}"
    return shlex.join(_FLAGS[name](value) if name in _FLAGS else [option, str(value)])


def _reason(plan: Plan, planned: PlannedCase, outcome: Outcome) -> str:
    """The worker's reason; what pip is to do about a package is for the worker's interpreter.

    Where memory ran out, it also says what the parameters alone take: models are built in float32.
    """
    gigabytes = (planned.parameters or 0) * 4 / 1e9
    if outcome.status is Status.OOM and gigabytes >= SMALL_GB:
        size = f"{counted(planned.parameters or 0, 'parameter')} alone are {gigabytes:.1f} GB in float32"
        return f"{outcome.reason}; its {size}"
    packages = outcome.cause in (Cause.MISSING_PACKAGE, Cause.CONFLICTING_PACKAGE)
    return hint_for(plan.python, outcome.reason) if packages else outcome.reason


def excerpt(log: Path) -> str:
    """The end of a log, decoded; empty where there is none."""
    try:
        with log.open("rb") as file:
            file.seek(0, 2)
            file.seek(max(0, file.tell() - EXCERPT_BYTES))
            return file.read().decode("utf-8", "replace")
    except OSError:
        return ""


_FLAGS: dict[str, Callable[[Any], list[str]]] = {
    "threads": lambda value: ["--threads", str(value)],
    "precision_target": lambda value: ["--precision", str(value)],
    "measure_budget_s": lambda value: ["--measure-seconds", str(value)],
    "quiet_wait_s": lambda value: ["--quiet-wait", f"{value:g}"],
    "accuracy": lambda value: [] if value else ["--no-accuracy"],
    "deadlines": lambda value: ["--timeout", f"{value.start_s:g}"],
    "memory_limit_bytes": lambda value: ["--memory-limit", str(value)],
    "memory_probe": lambda value: [] if value else ["--no-memory-probe"],
    "warm_compile": lambda value: [] if value else ["--no-warm-compile"],
    "fallback_check": lambda value: [] if value else ["--no-fallback-check"],
    "attempts": lambda value: ["--attempts", str(value)],
    "calibrate": lambda value: [] if value else ["--no-calibration"],
    "configuration_file": lambda value: ["--config-file", value],
    "torchbench": lambda value: ["--torchbench", value],
}

REPEATED = tuple(_FLAGS)
"""Names of the settings that are part of how a case is measured; the others are of a whole run."""
