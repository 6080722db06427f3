"""What a single row may say: numbers that can be, texts that name what they should, times of the campaign.

Rows are the strict twins of :class:`torchgauge.records.Result`, so their fields and types are right already.
"""

from __future__ import annotations

import math
import re
from collections.abc import Container, Mapping
from dataclasses import dataclass
from typing import Any

from torchgauge.clock import DAY_S
from torchgauge.counted import counted
from torchgauge.harness.planning.plan import BY_THE_CHECK
from torchgauge.harness.run.rows import DERIVED
from torchgauge.harness.scenarios.scenario import final_metric
from torchgauge.records import (
    BY_FACT,
    CAUSES_OF,
    INCOMPLETE,
    SCHEMA_VERSION,
    Again,
    Modifier,
    Phase,
    RunSettings,
    Status,
    is_metric_name,
)
from torchgauge.registry import metrics
from torchgauge.workflows.ingest.refusal import Reason, RefusedSetError
from torchgauge.workflows.plain_text import is_plain_command

LONGEST_S = 7 * DAY_S
"""From the plan to the last row: a day in GitHub's queue, five days of a job on an own runner, one more."""
MOST_OF_UNIT: Mapping[str, float] = {"s": LONGEST_S, "B": 2.0**53, "count": 1e9, "ratio": 1e9, "share": 1.0}
"""Largest value of a unit that can be: longer than a job may last, more memory than there is."""
LEAST_POSITIVE: Mapping[str, float] = {"s": 1e-12}
"""Least value of a unit above zero that can be: no clock tells less than a picosecond, but two may differ
by less."""
LEAST_OF_ANY = 1e-24
"""Least value above zero in any other unit, as far from one as the largest float."""
WHOLE = frozenset({"B", "count", "FLOP"})
"""Units that nobody has a part of."""
MOST_SAMPLES = RunSettings().max_blocks
"""Samples of one metric that a run takes at most."""
MOST_ATTEMPTS = 100
"""At one case; nobody asks for more."""
MOST_COSINE = 1.0 + 1e-6
"""Of a cosine that was computed in float32."""
OF_A_RUN = DERIVED | {Modifier.DEGRADED, Modifier.FLAKY, *BY_FACT}
"""The modifiers that a run gives; the others are a reader's."""
_REFERENCE = re.compile(
    r"second run|(eager and )?(float64 on the host|([a-z0-9_]+ )?eager (alone|on the host): [^\n]+)"
)
"""What a result is compared with, in the words of ``harness/worker``."""
_UNIT = re.compile(r"[A-Za-z0-9%/*^._-]{1,24}")
_LOG = re.compile(r"(logs/)?([A-Za-z0-9][A-Za-z0-9._+-]*/)?[A-Za-z0-9][A-Za-z0-9._+-]*")


@dataclass(frozen=True)
class Window:
    """When the numbers of a campaign may have been measured, in seconds since the epoch (UTC)."""

    begin: float
    end: float

    def check(self, moment: float, what: str) -> None:
        """Raise where ``moment`` is outside."""
        if not self.begin <= moment <= self.end:
            raise RefusedSetError(Reason.TIME, f"{what} is at {moment:.0f}, outside the campaign's time")


def check_row(row: Any, planned: Any, run_id: str, environments: Container[str], window: Window) -> None:
    """Raise :class:`RefusedSetError` where ``row``, of the case ``planned``, cannot be true."""
    case_id = row.case_id
    if row.run_id != run_id:
        raise RefusedSetError(Reason.ROW, f"{case_id}: the row is of another run")
    if row.schema_version != SCHEMA_VERSION:
        raise RefusedSetError(Reason.SCHEMA, f"{case_id}: the row is of schema {row.schema_version}")
    causes = CAUSES_OF.get(row.status, frozenset())
    if row.cause is not None and row.cause not in causes:
        raise RefusedSetError(Reason.ROW, f"{case_id}: {row.status.value} cannot carry {row.cause.value}")
    if row.cause is None and causes:
        raise RefusedSetError(Reason.UNFOUNDED, f"{case_id}: {row.status.value} without a cause")
    if row.environment_id and row.environment_id not in environments:
        raise RefusedSetError(
            Reason.ENVIRONMENT, f"{case_id}: it names an environment of which no facts came before it"
        )
    if not 0 <= row.duration_s <= window.end - window.begin:
        raise RefusedSetError(Reason.NUMBER, f"{case_id}: it took {row.duration_s:g} s")
    if row.started_at or row.environment_id:
        window.check(row.started_at, f"the start of {case_id}")
    if row.log and not _LOG.fullmatch(row.log):
        raise RefusedSetError(Reason.TEXT, f"{case_id}: its log is not a file of the run")
    _check_command(row.reproduce, case_id)
    _check_numbers(row, case_id)
    _check_modifiers(row, case_id)
    _check_attempts(row, case_id, window)
    if row.accuracy is not None:
        _check_accuracy(row.accuracy, case_id)
    if row.status is Status.PASS:
        _check_pass(row, planned, case_id)


def _limits(said: Any) -> tuple[float, float] | None:
    """Smallest and largest value of the metric of ``said``; None where it is none, or in another unit.

    A metric of a package that is not installed here has no unit of ours: what it is stays its owner's word.
    """
    metric = metrics().get(said.metric)
    fits = metric.unit == said.unit if metric else is_metric_name(said.metric) and _UNIT.fullmatch(said.unit)
    if not fits:
        return None
    most = MOST_OF_UNIT.get(said.unit, math.inf)
    return (-most if metric is None or metric.signed else 0.0), most


def is_check(planned: Any) -> bool:
    """Whether ``planned`` is a check, which judges by itself; its tolerance, the campaign's, says so."""
    said = planned.tolerance
    own = (BY_THE_CHECK.absolute, BY_THE_CHECK.relative, BY_THE_CHECK.rmse_multiplier)
    return (said.absolute, said.relative, said.rmse_multiplier) == own


def _check_pass(row: Any, planned: Any, case_id: str) -> None:
    """A pass says that the numbers are right and were measured: both must be there, and to the end."""
    if not row.environment_id:
        raise RefusedSetError(Reason.UNFOUNDED, f"{case_id}: it passed, and names no environment")
    if row.phase is not Phase.DONE:
        raise RefusedSetError(Reason.UNFOUNDED, f"{case_id}: it passed in phase {row.phase.value}")
    if is_check(planned):
        return
    final = final_metric(row.case.workload.mode)
    number = next((each for each in row.measurements if each.metric == final), None)
    if number is None or not number.samples:
        raise RefusedSetError(Reason.UNFOUNDED, f"{case_id}: it passed without a {final}")
    if row.realised is None:
        raise RefusedSetError(Reason.UNFOUNDED, f"{case_id}: it passed and nothing says what was built")
    compared = row.accuracy is not None and bool(row.accuracy.reference)
    if compared and not _REFERENCE.fullmatch(row.accuracy.reference):
        raise RefusedSetError(Reason.UNFOUNDED, f"{case_id}: it passed, compared with nothing that is known")
    if not compared and Modifier.UNCHECKED not in row.modifiers:
        raise RefusedSetError(Reason.UNFOUNDED, f"{case_id}: it passed, compared with nothing")
    graphs = next((each for each in row.measurements if each.metric == "graph_count"), None)
    captured = graphs is None or not graphs.samples or max(graphs.samples) > 0
    if row.case.configuration.backend != "eager" and not captured and Modifier.DEGRADED not in row.modifiers:
        raise RefusedSetError(Reason.UNFOUNDED, f"{case_id}: nothing was captured, and it is not degraded")


def _check_modifiers(row: Any, case_id: str) -> None:
    """Those that a worker says, each with its reason; those that a run derives are computed again."""
    facts = dict(row.facts)
    if len(facts) != len(row.facts):
        raise RefusedSetError(Reason.ROW, f"{case_id}: a fact is there twice")
    if len(set(row.modifiers)) != len(row.modifiers) or not OF_A_RUN.issuperset(row.modifiers):
        raise RefusedSetError(Reason.ROW, f"{case_id}: its modifiers are not those of a run")
    told = {
        Modifier.DEGRADED: bool(facts.get(Modifier.DEGRADED.value)),
        **{modifier: row.status is Status.PASS and modifier.value in facts for modifier in BY_FACT},
    }
    for modifier, reason in told.items():
        if reason != (modifier in row.modifiers):
            raise RefusedSetError(Reason.UNFOUNDED, f"{case_id}: {modifier.value} and its reason go together")


def _check_attempts(row: Any, case_id: str, window: Window) -> None:
    """All attempts where there were several, in order, with the row's own; flaky is what they show."""
    numbers = [each.number for each in row.attempts]
    if len(numbers) > MOST_ATTEMPTS or not 1 <= row.attempt <= MOST_ATTEMPTS:
        raise RefusedSetError(Reason.TOO_LARGE, f"{case_id}: at most {MOST_ATTEMPTS} attempts")
    if numbers != sorted(set(numbers)) or (numbers and (numbers[0] < 1 or len(numbers) == 1)):
        raise RefusedSetError(Reason.ROW, f"{case_id}: its attempts are not in order")
    own = next((each for each in row.attempts if each.number == row.attempt), None)
    if row.attempts and (own is None or (own.status, own.cause) != (row.status, row.cause)):
        raise RefusedSetError(Reason.ROW, f"{case_id}: none of its attempts is that of the row")
    for each in row.attempts:
        if each.cause is not None and each.cause not in CAUSES_OF.get(each.status, frozenset()):
            raise RefusedSetError(
                Reason.ROW, f"{case_id}: {each.status.value} cannot carry {each.cause.value}"
            )
        if each.log and not _LOG.fullmatch(each.log):
            raise RefusedSetError(Reason.TEXT, f"{case_id}: the log of an attempt is not a file of the run")
        if not 0 <= each.duration_s <= window.end - window.begin:
            raise RefusedSetError(Reason.NUMBER, f"{case_id}: an attempt took {each.duration_s:g} s")
        if each.started_at:
            window.check(each.started_at, f"an attempt at {case_id}")
    told = {
        each.status
        for each in row.attempts
        if each.status not in INCOMPLETE and each.again is not Again.ALONE
    }
    if (len(told) > 1) != (Modifier.FLAKY in row.modifiers) or (len(told) > 1 and row.status is Status.PASS):
        raise RefusedSetError(
            Reason.UNFOUNDED, f"{case_id}: flaky is what its attempts do not show, or hides"
        )


def _check_accuracy(accuracy: Any, case_id: str) -> None:
    rmse, eager, ratio = accuracy.rmse, accuracy.rmse_eager, accuracy.rmse_ratio
    errors = (accuracy.max_abs_error, rmse, eager, ratio, accuracy.eager_spread)
    if any(value is not None and value < 0 for value in errors) or abs(accuracy.cosine or 0.0) > MOST_COSINE:
        raise RefusedSetError(Reason.NUMBER, f"{case_id}: its accuracy has impossible values")
    follows: Any = rmse / eager if rmse is not None and eager else None
    known = ratio is not None and follows is not None
    same = math.isclose(ratio, follows, rel_tol=1e-9) if known else ratio is follows
    if not same:
        raise RefusedSetError(Reason.RECOMPUTED, f"{case_id}: the RMSE ratio is not that of its RMSEs")


def _check_numbers(row: Any, case_id: str) -> None:
    counts: dict[str, int] = {}
    for measurement in row.measurements:
        _check_measurement(measurement, case_id)
        if measurement.metric in counts:
            raise RefusedSetError(Reason.ROW, f"{case_id}: a metric is there twice")
        counts[measurement.metric] = len(measurement.samples)
    for summary in row.summaries:
        _check_summary(summary, counts, case_id)
    if len(row.summaries) != len(counts):
        raise RefusedSetError(
            Reason.ROW, f"{case_id}: measurements and summaries are not of the same metrics"
        )


def _check_measurement(measurement: Any, case_id: str) -> None:
    samples, limits = measurement.samples, _limits(measurement)
    if limits is None:
        raise RefusedSetError(Reason.SCHEMA, f"{case_id}: a metric that cannot be, or in another unit")
    if bool(samples) == bool(measurement.absent):
        raise RefusedSetError(Reason.ROW, f"{case_id}: a metric needs samples or a reason")
    if len(samples) > MOST_SAMPLES:
        raise RefusedSetError(
            Reason.TOO_LARGE, f"{case_id}: {counted(len(samples), 'sample')}; at most {MOST_SAMPLES}"
        )
    if measurement.blocks and len(measurement.blocks) != len(samples):
        raise RefusedSetError(Reason.ROW, f"{case_id}: a metric has blocks for other samples")
    if samples:
        _check_limits(min(samples), max(samples), limits, measurement, case_id)
        if measurement.unit in WHOLE and not all(map(float.is_integer, samples)):
            raise RefusedSetError(Reason.NUMBER, f"{case_id}: a part of one {measurement.unit}")


def _check_summary(summary: Any, counts: Mapping[str, int], case_id: str) -> None:
    limits = _limits(summary)
    if limits is None:
        raise RefusedSetError(Reason.SCHEMA, f"{case_id}: a metric that cannot be, or in another unit")
    if counts.get(summary.metric) != summary.n:
        raise RefusedSetError(Reason.ROW, f"{case_id}: a summary is of other samples")
    low, median, high = summary.low, summary.median, summary.high
    values = [value for value in (low, median, high) if value is not None]
    if values:
        _check_limits(min(values), max(values), limits, summary, case_id)
    if values != sorted(values) or not 0 < summary.confidence < 1:
        raise RefusedSetError(Reason.ROW, f"{case_id}: the interval of {summary.metric} is none")


def _check_limits(low: float, high: float, limits: tuple[float, float], said: Any, case_id: str) -> None:
    """Raise where values of the known metric of ``said`` between ``low`` and ``high`` cannot be."""
    least, most = limits
    tiny = LEAST_OF_ANY if least < 0 else LEAST_POSITIVE.get(said.unit, LEAST_OF_ANY)
    if low < least or high > most or 0 < abs(low) < tiny or 0 < abs(high) < tiny:
        wrong = high if high > most else low
        raise RefusedSetError(Reason.NUMBER, f"{case_id}: {said.metric} of {wrong:g} {said.unit} cannot be")


def _check_command(command: str, case_id: str) -> None:
    """A reader may paste it."""
    if not is_plain_command(command, case_id):
        raise RefusedSetError(Reason.TEXT, f"{case_id}: its command does not just run it again")
