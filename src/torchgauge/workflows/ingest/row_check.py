"""A single row of a set: numbers that can be, texts that name what they should, times of the campaign."""

from __future__ import annotations

import re
from collections.abc import Container
from dataclasses import dataclass

from torchgauge.records import SCHEMA_VERSION, Attempt, Result, RunSettings
from torchgauge.results.possible import impossible
from torchgauge.workflows.ingest.refusal import Reason, RefusedSetError
from torchgauge.workflows.plain_text import is_plain_command

MOST_SAMPLES = RunSettings().max_blocks
"""Samples of one metric that a run takes at most."""
MOST_ATTEMPTS = 100
"""At one case."""
_LOG = re.compile(r"(logs/)?([A-Za-z0-9][A-Za-z0-9._+-]*/)?[A-Za-z0-9][A-Za-z0-9._+-]*")


@dataclass(frozen=True)
class Window:
    """When the numbers of a campaign may have been measured, in seconds since the epoch (UTC)."""

    begin: float
    end: float

    def check(self, moment: float, what: str) -> None:
        """Raise where ``moment`` is outside."""
        if not self.begin <= moment <= self.end:
            raise RefusedSetError(
                Reason.TIME, f"{what} is at Unix time {moment:.0f}, before or after the campaign"
            )


def check_row(row: Result, run_id: str, environments: Container[str], window: Window) -> None:
    """Raise :class:`RefusedSetError` where ``row`` cannot be one of the run ``run_id``."""
    case_id = row.case_id
    if row.run_id != run_id:
        raise RefusedSetError(Reason.ROW, f"{case_id}: the row belongs to another run")
    if row.schema_version != SCHEMA_VERSION:
        raise RefusedSetError(Reason.SCHEMA, f"{case_id}: the row has schema version {row.schema_version}")
    if row.environment_id and row.environment_id not in environments:
        words = "no earlier line of the journal describes the environment of this result"
        raise RefusedSetError(Reason.ENVIRONMENT, f"{case_id}: {words}")
    if row.started_at or row.environment_id:
        window.check(row.started_at, f"the start of {case_id}")
    if not is_plain_command(row.reproduce, case_id):  # a reader may paste it
        raise RefusedSetError(Reason.TEXT, f"{case_id}: the reproduce command does more than run the case")
    if len(row.attempts) > MOST_ATTEMPTS:
        raise RefusedSetError(Reason.TOO_LARGE, f"{case_id}: at most {MOST_ATTEMPTS} attempts")
    _check_end(row, case_id, window)
    for attempt in row.attempts:
        _check_end(attempt, case_id, window)
    _check_series(row, case_id)


def _check_end(ended: Result | Attempt, case_id: str, window: Window) -> None:
    """Raise where ``ended``, a row or an attempt, has a log or a duration that it cannot have."""
    if ended.log and not _LOG.fullmatch(ended.log):
        raise RefusedSetError(
            Reason.TEXT, f"{case_id}: the path of the log does not have the form logs/FOLDER/FILE"
        )
    if not 0 <= ended.duration_s <= window.end - window.begin:
        raise RefusedSetError(Reason.NUMBER, f"{case_id}: it took {ended.duration_s:g} s")


def _check_series(row: Result, case_id: str) -> None:
    counts = {series.metric: len(series.samples) for series in row.measurements}
    if max(counts.values(), default=0) > MOST_SAMPLES:
        raise RefusedSetError(Reason.TOO_LARGE, f"{case_id}: more than {MOST_SAMPLES} samples of a metric")
    summaries = [(summary.metric, summary.n) for summary in row.summaries]
    if len(row.measurements) != len(counts) or sorted(summaries) != sorted(counts.items()):
        words = "measurements and summaries differ in metrics or numbers of samples"
        raise RefusedSetError(Reason.ROW, f"{case_id}: {words}")
    if problem := impossible(row, bounded=True):
        raise RefusedSetError(Reason.NUMBER, f"{case_id}: {problem}")
