"""What ``torchgauge results trend`` found last, kept for readers that run no detector of their own.

::

    STORE/trend/findings.json

One look is the answer to one question (a metric and the globs that select series); asking again replaces it.
A later look counts for the series that it selects, whatever an earlier one said of them.
"""

from __future__ import annotations

import fcntl
import fnmatch
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torchgauge.errors import DamagedJournalError
from torchgauge.records import RecordError, from_plain
from torchgauge.records.codec import LATER, to_json
from torchgauge.results.atomic_file import storage_errors, write_atomically
from torchgauge.results.log_ratio import change_of
from torchgauge.results.store import Store
from torchgauge.results.trends.trend_outcomes import TrendOutcome, TrendState

if TYPE_CHECKING:
    from torchgauge.results.trends.trend import SeriesTrend, Suspicion, Trend

SCHEMA = 1
"""Version of the file's layout."""

MOST_LOOKS = 32
"""Looks that are kept, newest first."""

_BASELINE, _SINCE = 90, 30
"""Nights at most whose median a level is: the detector's own bounds."""
_MEDIAN_S_LOSS = math.sqrt(math.pi / 2)
"""By how much a median of normal values spreads more than their mean."""
_NORMAL_95 = 1.96
_LAST = 9.5e10


@dataclass(frozen=True)
class TrendFilter:
    """Which series are wanted: globs, empty for all; ``since`` in seconds since the epoch.

    ``modes`` are names of scenarios, none for all.
    """

    metric: str = "latency"
    suite: str = ""
    model: str = ""
    device: str = ""
    configuration: str = ""
    since: float = 0.0
    reference: str = ""
    modes: tuple[str, ...] = ()

    def selects(self, found: Finding) -> bool:
        """Whether the series of ``found`` is among those asked for; an older one has no scenario."""
        of_it = not self.modes or found.mode in ("", *self.modes)
        return self.metric == found.metric and of_it and self.fits(vars(found))

    def fits(self, names: Mapping[str, Any]) -> bool:
        """Whether the globs fit suite, model, device and configuration among ``names``."""
        return all(
            not (pattern := getattr(self, name)) or fnmatch.fnmatchcase(names[name], pattern)
            for name in ("suite", "model", "device", "configuration")
        )

    @property
    def asked(self) -> tuple[str, ...]:
        """What makes two questions the same one, however far back they look."""
        names = (self.suite, self.model, self.device, self.configuration, self.reference)
        return (self.metric, *names, *self.modes)


@dataclass(frozen=True)
class Finding:
    """One change of level in one series.

    ``size`` is relative (0.05 is 5 % more) with ``low`` and ``high`` as its interval at 95 %, None where
    there are too few nights for one. ``before`` and ``after`` are in ``unit``. ``good_run`` is the last run
    before the change with a number and ``suspect_run`` the first with the new level; the first bad run lies
    behind ``safe_run``, up to and including ``latest_run``, with 90 % probability. ``suspect_at`` and
    ``decided_at`` are in seconds since the epoch (the latter None where nothing was measured again),
    ``nights_since`` counts the runs from the suspect one on. ``worse`` is None where neither direction is
    better. ``code_changed`` says whether the code of the model differs between the good and the suspect run.
    """

    key: str
    case_key: str
    case_id: str
    suite: str
    model: str
    device: str
    configuration: str
    metric: str
    unit: str
    machine: str
    worse: bool | None
    size: float
    low: float | None
    high: float | None
    before: float
    after: float
    score: float
    good_run: str
    suspect_run: str
    safe_run: str
    latest_run: str
    good_torch: str
    suspect_torch: str
    good_at: float
    suspect_at: float
    nights_since: int
    state: TrendState
    reason: str = ""
    comparison: str = ""
    decided_at: float | None = None
    mode: str = ""
    code_changed: bool = field(default=False, metadata={LATER: True})

    @property
    def series(self) -> tuple[str, str, str]:
        """What names the series."""
        return (self.case_key, self.metric, self.machine)


@dataclass(frozen=True)
class Look:
    """The answer to one question.

    ``as_of`` is the newest run that was looked at, created at ``as_of_at``; ``generated_at`` is when it was
    looked. Of ``series`` series ``ready`` were long enough to say anything.
    """

    question: TrendFilter
    as_of: str
    as_of_at: float
    generated_at: float
    series: int
    ready: int
    findings: tuple[Finding, ...]


@dataclass(frozen=True)
class TrendFindings:
    """All looks that are kept, newest first."""

    schema: int = SCHEMA
    looks: tuple[Look, ...] = ()

    def standing(self, outcomes: Iterable[TrendOutcome] = ()) -> tuple[Finding, ...]:
        """What counts: of every series what the newest look at it says, with what was measured since."""
        found: dict[str, Finding] = {}
        for place, look in enumerate(self.looks):
            newer = [each.question for each in self.looks[:place]]
            for finding in look.findings:
                if finding.key not in found and not any(each.selects(finding) for each in newer):
                    found[finding.key] = finding
        last = {(each.case_key, each.metric, each.machine, each.suspect_run): each for each in outcomes}
        return tuple(
            _with_outcome(each, last.get((*each.series, each.suspect_run))) for each in found.values()
        )


def path_of(store: Store) -> Path:
    """Where the findings of ``store`` are."""
    return store.path / "trend" / "findings.json"


def read_findings(store: Store) -> TrendFindings | None:
    """What was kept last; None where nothing was.

    Raises :class:`DamagedJournalError` for a file that does not fit its schema.
    """
    path = path_of(store)
    try:
        data = json.loads(path.read_bytes(), parse_constant=_no_constant)
        if isinstance(data, dict) and data.get("schema") != SCHEMA:
            raise RecordError(f"schema {data.get('schema')!r} is not {SCHEMA}")
        return _checked(from_plain(TrendFindings, data))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError, OverflowError) as error:
        raise DamagedJournalError(
            f"{path} cannot be read: {error}", hint="torchgauge results trend --store STORE rewrites the file"
        ) from error


def keep(store: Store, found: Trend, wanted: TrendFilter, now: float) -> Path:
    """Keep ``found`` as the answer to ``wanted``, durable on return; ``now`` is in seconds since the epoch.

    A file that cannot be read is replaced. Raises :class:`InfrastructureError` on a failing disk.
    """
    path = path_of(store)
    look = look_of(found, wanted, now)
    with _locked(path):
        try:
            earlier = read_findings(store)
        except DamagedJournalError:
            earlier = None
        others = [
            each for each in (earlier.looks if earlier else ()) if each.question.asked != look.question.asked
        ]
        write_atomically(path, to_json(TrendFindings(looks=(look, *others)[:MOST_LOOKS])).encode() + b"\n")
    return path


def look_of(found: Trend, wanted: TrendFilter, now: float) -> Look:
    """``found`` as the answer to ``wanted``, seen at ``now`` (seconds since the epoch)."""
    nights = [each.series.nights[-1] for each in found.series]
    newest = max(nights, key=lambda night: (night.at, night.run_id), default=None)
    return Look(
        question=wanted,
        as_of=newest.run_id if newest else "",
        as_of_at=newest.at if newest else 0.0,
        generated_at=now,
        series=len(found.series),
        ready=sum(each.findings.ready for each in found.series),
        findings=tuple(_finding(each, trend) for trend in found.series for each in trend.suspicions),
    )


def _finding(each: Suspicion, trend: SeriesTrend) -> Finding:
    series, change = each.series, each.change
    low, high = _interval(each, trend)
    safe = next((n for n in reversed(series.nights[: change.first]) if n.value is not None), series.nights[0])
    outcome = each.outcome
    return Finding(
        key=each.key,
        case_key=series.case_key,
        case_id=series.case_id,
        suite=series.suite,
        model=series.model,
        mode=series.mode,
        device=series.device,
        configuration=series.configuration,
        metric=series.metric,
        unit=series.unit,
        machine=series.machine,
        worse=each.worse,
        size=change.size,
        low=low,
        high=high,
        before=change.before,
        after=change.after,
        score=change.score,
        good_run=each.good.run_id,
        suspect_run=each.suspect.run_id,
        safe_run=safe.run_id,
        latest_run=series.nights[change.last].run_id,
        good_torch=each.good.torch_version,
        suspect_torch=each.suspect.torch_version,
        good_at=each.good.at,
        suspect_at=each.suspect.at,
        nights_since=len(series.nights) - change.index,
        state=each.state,
        reason=outcome.reason if outcome else "",
        comparison=outcome.comparison if outcome else "",
        decided_at=outcome.decided_at if outcome else None,
        code_changed=each.code_changed,
    )


def _interval(each: Suspicion, trend: SeriesTrend) -> tuple[float | None, float | None]:
    """The interval of a relative change between two medians of nights, at 95 %.

    Normal, on logarithms, from the robust noise of the series (relative, about its levels); nights that
    resemble their neighbours count for fewer, as in an autoregression of first order.
    """
    noise, index, size = trend.findings.noise, each.change.index, each.change.size
    values = [night.value for night in trend.series.nights]
    later = [one.change.index for one in trend.suspicions if one.change.index > index]
    end = min([*later, len(values), index + _SINCE])
    before = sum(value is not None for value in values[max(0, index - _BASELINE) : index])
    after = sum(value is not None for value in values[index:end])
    if noise is None or before < 2 or after < 2 or size <= -1.0:
        return None, None
    rho = min(max(trend.findings.autocorrelation or 0.0, 0.0), 0.9)
    spread = noise * _MEDIAN_S_LOSS * math.sqrt((1 / before + 1 / after) * (1 + rho) / (1 - rho))
    half, at = _NORMAL_95 * spread, math.log1p(size)
    return change_of(at - half), change_of(at + half)


def _with_outcome(finding: Finding, outcome: TrendOutcome | None) -> Finding:
    """``finding`` as it stands after ``outcome``; a change that was measured again has that interval."""
    if outcome is None:
        return finding
    found = replace(
        finding,
        state=outcome.state,
        reason=outcome.reason,
        comparison=outcome.comparison,
        decided_at=outcome.decided_at if _is_moment(outcome.decided_at) else None,
    )
    ratio, low, high = outcome.ratio, outcome.low, outcome.high
    if outcome.state is not TrendState.CONFIRMED or ratio is None or low is None or high is None:
        return found
    if not (0 < ratio < math.inf and math.isfinite(low) and math.isfinite(high)):
        return found
    return replace(found, size=ratio - 1, low=low - 1, high=high - 1)


def _checked(found: TrendFindings) -> TrendFindings:
    """``found``, where its numbers are numbers; raises :class:`RecordError` otherwise."""
    for look in found.looks:
        for each in look.findings:
            numbers = (each.size, each.before, each.after, each.score, each.low, each.high)
            if not all(value is None or math.isfinite(value) for value in numbers) or each.size <= -1.0:
                raise RecordError(f"a change of {each.case_id!r:.80} has impossible numbers")
            if not all(map(_is_moment, (each.suspect_at, each.good_at, each.decided_at or 0.0))):
                raise RecordError(f"a change of {each.case_id!r:.80} has an impossible date")
        if not all(map(_is_moment, (look.as_of_at, look.generated_at))):
            raise RecordError("a scan has an impossible date")
    return found


def _is_moment(seconds: float) -> bool:
    """Whether ``seconds`` since the epoch is a moment before the year 5000."""
    return 0 <= seconds < _LAST


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not a number")


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Only one writer reads and replaces the file at a time."""
    with storage_errors(path):
        path.parent.mkdir(exist_ok=True)
        file = (path.parent / "findings.lock").open("a")
    with file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
