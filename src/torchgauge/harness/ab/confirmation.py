"""The second look at a suspicion: last good build against suspect build, interleaved, on one machine, now.

Nightly numbers of different nights differ in everything that a night changes. So a change in their history is
believed only where the two builds differ when they are measured together; where they do not, and what did
not change moved as well, it was the environment. The comparison is a parameter.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import metadata
from pathlib import Path

from torchgauge.clock import SYSTEM_CLOCK, Clock
from torchgauge.errors import TorchgaugeError
from torchgauge.harness.ab.reading import Answer, Reading
from torchgauge.harness.interpreter.interpreter import interpreter
from torchgauge.records.comparison import SideSpec
from torchgauge.results.gain import change_text
from torchgauge.results.trends.trend import Night, Series, Suspicion
from torchgauge.results.trends.trend_outcomes import TrendOutcome, TrendState

Measure = Callable[[SideSpec, SideSpec, Suspicion], Reading]
"""Compares the last good build with the suspect one on the case of a suspicion."""
SHARE = 0.5
"""What must have moved at least as well, as a share of the suspected change on a logarithmic scale."""
PART = 0.25
"""What a measured change must be at least, as such a share: less is another change, or a false alarm."""
_SLACK_S = 43_200.0
"""Half a day: how far apart the nights of two series may begin and still be one night."""
_NIGHTS = 3


@cache
def torch_version(python: str) -> str:
    """The version of the torch of ``python``; empty where it has none or does not answer."""
    try:
        target = interpreter(python)
        report = target.report
        if report is None:
            return metadata.version("torch")
        return dict(report.packages).get("torch", "")
    except (TorchgaugeError, metadata.PackageNotFoundError):
        return ""


def _one_version(found: str, wanted: str) -> bool:
    """Whether two texts name one version of torch; its package may lack what torch says behind the +."""
    return found == wanted or (found.partition("+")[0] == wanted.partition("+")[0] and "+" not in found)


@dataclass(frozen=True)
class Confirmer:
    """Confirms suspicions with ``measure``.

    ``builds`` maps runs, or versions of torch, to interpreters, and ``missing`` runs to the reason why their
    build could not be made. ``reference`` finds the series of the pinned build for a series, None where
    there is none.
    """

    measure: Measure
    builds: Mapping[str, str] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)
    reference: Callable[[Series], Series | None] = lambda _: None
    version_of: Callable[[str], str] = torch_version
    clock: Clock = SYSTEM_CLOCK

    def confirm(self, suspicion: Suspicion) -> TrendOutcome:
        """What became of ``suspicion``; measures for minutes where both builds are there."""
        known = self.known(suspicion)
        if known is not None:
            return known
        good, suspect = suspicion.good, suspicion.suspect
        moved = moved_with(suspicion, self.reference(suspicion.series))
        pair = [self._spec(night) for night in (good, suspect)]
        for each in pair:
            if isinstance(each, str):
                if moved:
                    return self._outcome(suspicion, TrendState.ENVIRONMENT, moved)
                return self._outcome(suspicion, TrendState.NOT_CONFIRMABLE, each)
        base, head = pair
        assert isinstance(base, SideSpec)
        assert isinstance(head, SideSpec)
        if base.python == head.python:
            reason = f"builds {base.label} and {head.label} have the same interpreter, {base.python}"
            return self._outcome(suspicion, TrendState.NOT_CONFIRMABLE, reason)
        reading = self.measure(base, head, suspicion)
        return self._outcome(suspicion, *judged(suspicion, reading, moved), reading)

    def known(self, suspicion: Suspicion) -> TrendOutcome | None:
        """What became of ``suspicion`` where that is known without measuring; None where it is not."""
        if not ran_one_build(suspicion):
            return None
        version = suspicion.good.torch_version or "the same packages"
        reason = f"both nightly runs used build {version}, so the build did not change"
        return self._outcome(suspicion, TrendState.ENVIRONMENT, reason)

    def not_confirmable(self, suspicion: Suspicion, reason: str) -> TrendOutcome:
        """That ``suspicion`` cannot be measured, and why."""
        return self._outcome(suspicion, TrendState.NOT_CONFIRMABLE, reason)

    def _spec(self, night: Night) -> SideSpec | str:
        """The build of ``night``, or why it cannot be measured any more."""
        version = night.torch_version
        label = version or night.run_id
        if night.run_id in self.missing:
            return f"torch {label} cannot be measured: {self.missing[night.run_id]}"
        named = self.builds.get(night.run_id) or self.builds.get(version)
        python = named or night.python
        ask = f"try: --build {label}=PYTHON"
        if not python or not Path(python).exists():
            gone = f"{python} no longer exists" if python else "its run did not record the interpreter"
            return f"torch {label} cannot be measured: {gone}; {ask}"
        found = self.version_of(python) if version else ""
        if version and not _one_version(found, version):
            return f"torch {label} cannot be measured: {python} has torch {found or '(none)'} now; {ask}"
        return SideSpec(label, python)

    def _outcome(
        self, suspicion: Suspicion, state: TrendState, reason: str, reading: Reading | None = None
    ) -> TrendOutcome:
        series = suspicion.series
        return TrendOutcome(
            case_key=series.case_key,
            case_id=series.case_id,
            metric=series.metric,
            machine=series.machine,
            good_run=suspicion.good.run_id,
            suspect_run=suspicion.suspect.run_id,
            state=state,
            reason=reason,
            decided_at=self.clock.now(),
            ratio=reading.ratio if reading else None,
            low=reading.low if reading else None,
            high=reading.high if reading else None,
            comparison=reading.comparison if reading else "",
        )


def ran_one_build(suspicion: Suspicion) -> bool:
    """Whether the nights on both sides ran the same packages, of the same commit as far as that is known."""
    good, suspect = suspicion.good, suspicion.suspect
    if good.commit and suspect.commit and good.commit != suspect.commit:
        return False  # what was installed from the repository may differ under one version
    return bool(good.environment_id) and good.environment_id == suspect.environment_id


def judged(suspicion: Suspicion, reading: Reading, moved: str) -> tuple[TrendState, str]:
    """State and reason of a suspicion that was measured; ``moved`` says that the reference moved, and how.

    An interval that excludes half of the suspected change is an answer, even where it decides nothing else.
    """
    expected = math.log1p(suspicion.change.size)
    if reading.answer is Answer.UNUSABLE or reading.ratio is None or reading.ratio <= 0.0:
        if moved:
            return TrendState.ENVIRONMENT, moved
        return TrendState.NOT_CONFIRMABLE, reading.reason or "the comparison gave no ratio"
    measured = math.log(reading.ratio)
    alike = measured * expected > 0.0 and not _excludes(reading.low, reading.high, PART * expected)
    if reading.answer is Answer.CHANGED and alike:
        return TrendState.CONFIRMED, f"measured again, {reading.text}"
    if reading.answer is Answer.UNCLEAR and not _excludes(reading.low, reading.high, SHARE * expected):
        return TrendState.NOT_CONFIRMABLE, f"undecided, {reading.text}: {reading.reason}".rstrip(": ")
    again = f"measured again, {reading.text}"
    if moved:
        return TrendState.ENVIRONMENT, f"{again}; {moved}"
    good = _last_good_moved(suspicion, reading)
    if good:
        return TrendState.ENVIRONMENT, f"{again}; {good}"
    return TrendState.NOT_REPRODUCED, again


def moved_with(suspicion: Suspicion, reference: Series | None) -> str:
    """How the pinned build moved between the two nights, if it did so as well; empty otherwise."""
    if reference is None:
        return ""
    before = _values(n for n in reference.nights if n.at <= suspicion.good.at + _SLACK_S)[-_NIGHTS:]
    after = _values(n for n in reference.nights if n.at >= suspicion.suspect.at - _SLACK_S)[:_NIGHTS]
    if suspicion.suspect.at - suspicion.good.at < 2 * _SLACK_S:  # neighbouring nights: split between them
        middle = (suspicion.good.at + suspicion.suspect.at) / 2.0
        before = _values(n for n in reference.nights if n.at <= middle)[-_NIGHTS:]
        after = _values(n for n in reference.nights if n.at > middle)[:_NIGHTS]
    if not before or not after:
        return ""
    step = math.log(statistics.median(after) / statistics.median(before))
    if step / math.log1p(suspicion.change.size) < SHARE:
        return ""
    moved = change_text(math.expm1(step), suspicion.series.unit)
    return f"the pinned reference build also changed by {moved} between these nightly runs"


def _values(nights: Iterable[Night]) -> list[float]:
    return [night.value for night in nights if night.value is not None and night.value > 0.0]


def _last_good_moved(suspicion: Suspicion, reading: Reading) -> str:
    """Whether the last good build is itself today where the suspect was; says so, or is empty."""
    if reading.base is None or reading.base <= 0.0:
        return ""
    step = math.log(reading.base / suspicion.change.before)
    expected = math.log1p(suspicion.change.size)
    if not SHARE <= step / expected <= 2.0 - SHARE:
        return ""
    off = change_text(math.expm1(step), suspicion.series.unit)
    return f"the last good build, measured again, differs by {off} from its nightly runs"


def contradiction(outcome: TrendOutcome, suspicion: Suspicion, tolerance: float) -> str:
    """How the numbers of ``outcome``, which a stranger wrote, contradict its state; empty where they do not.

    By :func:`judged` a suspicion is confirmed by an interval without 1 that has room for part of the change,
    and closed by one without room for half of it, or within ``tolerance`` (relative), where builds are alike.
    """
    ratio, low, high = outcome.ratio, outcome.low, outcome.high
    if (low is None) is not (high is None) or (ratio is None and low is not None):
        return "a ratio whose interval has only one bound"
    if ratio is None:
        return "a decision on a suspected change without a ratio" if outcome.state.decided else ""
    if low is not None and high is not None and not low <= ratio <= high:
        return "a ratio outside its interval"
    expected = math.log1p(suspicion.change.size)
    if low is None or high is None:
        return "a decision on a suspected change without an interval" if outcome.state.decided else ""
    if outcome.state is TrendState.CONFIRMED:
        beyond = math.log(low) > 0.0 if expected > 0.0 else math.log(high) < 0.0
        alike = beyond and not _excludes(low, high, PART * expected)
        return "" if alike else "a confirmed change that its interval does not support"
    same = (math.log(high) if expected > 0.0 else -math.log(low)) <= math.log1p(tolerance)
    if outcome.state.closed and not same and not _excludes(low, high, SHARE * expected):
        return "a rejected change, although half of it lies within the interval"
    return ""


def _excludes(low: float | None, high: float | None, change: float) -> bool:
    """Whether an interval has no room for ``change`` (a log ratio) or more of it."""
    if not low or not high:
        return False
    return math.log(high) < change if change > 0.0 else math.log(low) > change


def open_suspicions(suspicions: Sequence[Suspicion], limit: int) -> list[Suspicion]:
    """The suspicions that are worth measuring, the worst and likeliest first, ``limit`` at most.

    What could not be confirmed is tried again behind what nobody has tried yet.
    """
    waiting = [each for each in suspicions if each.state.open]
    order = sorted(waiting, key=_urgency)
    return order[:limit]


def _urgency(each: Suspicion) -> tuple[bool, bool, float, float]:
    tried = each.state is not TrendState.SUSPECTED
    return (each.worse is False, tried, -each.suspect.at, -each.change.score)
