"""Changes that ``torchgauge results trend`` or the build found, with later measurements of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from torchgauge.dashboard.context import SiteContext
from torchgauge.dashboard.snapshots import TorchBuild
from torchgauge.dashboard.trend_scan import scan
from torchgauge.errors import DamagedJournalError
from torchgauge.results.trends.trend_findings import Finding, Look, TrendFindings, read_findings
from torchgauge.results.trends.trend_outcomes import TrendOutcome, TrendState, read_outcomes

_ORDER = (
    TrendState.CONFIRMED,
    TrendState.SUSPECTED,
    TrendState.NOT_CONFIRMABLE,
    TrendState.ENVIRONMENT,
    TrendState.NOT_REPRODUCED,
)


@dataclass(frozen=True)
class Change:
    """One change of level; ``ended_at`` is when the level went back the other way, None where it did not."""

    finding: Finding
    ended_at: float | None

    @property
    def open(self) -> bool:
        """Whether the level still holds and was not explained away."""
        explained = (TrendState.ENVIRONMENT, TrendState.NOT_REPRODUCED)
        return self.ended_at is None and self.finding.state not in explained


@dataclass(frozen=True)
class TrendChanges:
    """The changes, worst first; ``never`` where nobody looked, ``problems`` where a file is damaged.

    ``scanned`` says that the build looked, since trend was never run; ``why`` it did not, where nobody did.
    ``looks`` are the questions that were asked, newest first. ``others`` are outcomes of changes that no
    finding is about.
    """

    changes: tuple[Change, ...]
    looks: tuple[Look, ...]
    others: tuple[TrendOutcome, ...]
    problems: tuple[str, ...]
    never: bool
    scanned: bool = False
    why: str = ""


def read_changes(context: SiteContext) -> TrendChanges:
    """The changes that the store keeps, or that its series say; a damaged file is said and no error."""
    problems, outcomes, findings, why = [], [], None, ""
    store = context.store
    try:
        outcomes = read_outcomes(store)
    except (DamagedJournalError, OSError) as error:
        problems.append(f"the confirmations cannot be read: {_text(error)}")
    try:
        findings = read_findings(store)
    except DamagedJournalError as error:
        problems.append(f"the findings of torchgauge results trend cannot be read: {_text(error)}")
    scanned = False
    if findings is None and not problems:
        looks, why = scan(context)
        findings, scanned = (TrendFindings(looks=looks), True) if looks else (None, False)
    standing = findings.standing(outcomes) if findings else ()
    known = {(*each.series, each.suspect_run) for each in standing}
    others = tuple(
        each
        for each in reversed(outcomes)
        if (each.case_key, each.metric, each.machine, each.suspect_run) not in known
    )
    by_series: dict[tuple[str, str, str], list[Finding]] = {}
    for each in standing:
        by_series.setdefault(each.series, []).append(each)
    changes = sorted((Change(each, _ended(each, by_series[each.series])) for each in standing), key=_rank)
    looks = findings.looks if findings else ()
    never = findings is None
    return TrendChanges(tuple(changes), looks, others, tuple(problems), never, scanned, why)


def builds_of(context: SiteContext) -> Mapping[str, TorchBuild]:
    """The build of torch of every published run."""
    return {run.run_id: run.build for run in context.dated}


def _ended(finding: Finding, series: list[Finding]) -> float | None:
    back = [
        each.suspect_at
        for each in series
        if each.suspect_at > finding.suspect_at
        and (each.size > 0) != (finding.size > 0)
        and each.state is not TrendState.NOT_REPRODUCED
    ]
    return min(back, default=None)


def _rank(change: Change) -> tuple[object, ...]:
    found = change.finding
    return (
        not change.open, found.worse is not True, _ORDER.index(found.state), -abs(found.size),
        found.case_id, found.key,
    )  # fmt: skip


def _text(error: Exception) -> str:
    return error.message if isinstance(error, DamagedJournalError) else str(error)
