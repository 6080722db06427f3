"""Verdicts on what is no step time: status, compile time, memory and graphs, one rule for each.

The rules are the table of ``docs/comparison.md``. Each works on the launches of one pair; a launch has one
number of each side, the median of what its worker measured.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from torchgauge.records import ATTEMPTED, Outcome, Status
from torchgauge.records.comparison import Action, Launch, MetricVerdict, Pair, Verdict
from torchgauge.results.comparing.policy import Rule

RuleOf = Callable[[str], Rule]
QUARANTINE_FACTOR = 3.0
"""What is in quarantine gates at so many times its tolerance."""

RATIO_METRICS = {"compile_cold": 3, "compile_warm": 3, "peak_memory": 1}
"""Metrics that are compared by ratio, and the least number of launches that may decide."""

MAY_BE_ZERO = frozenset({"peak_memory"})
"""Metrics of which zero is a reading: what a tiny model holds is lost in what the process held before."""

COUNT_METRICS = ("graph_breaks", "graph_count", "recompiles")
"""Metrics that are compared exactly."""

_UNITS = {"compile_cold": "s", "compile_warm": "s", "peak_memory": "B"}
_TELLING = ATTEMPTED | {Status.UNSUPPORTED}
"""Statuses that say something of the model or its build; the others only say that nothing was measured."""


def judge_other_metrics(
    pair: Pair, launches: Sequence[Launch], rule_of: RuleOf, *, quarantined: bool = False
) -> list[MetricVerdict]:
    """Verdicts on every metric but step times, from all ``launches`` of ``pair``.

    A metric that neither side has gives none. Quarantine triples tolerances, never what is exact.
    """
    judged = _Judged(pair, rule_of, quarantined)
    found = [judge_status(pair, launches, rule_of, quarantined=quarantined)]
    both = [
        launch
        for launch in launches
        if launch.base.status is Status.PASS and launch.head.status is Status.PASS
    ]
    for metric, least in RATIO_METRICS.items():
        found += judged.by_ratio(metric, both, least)
    for metric in COUNT_METRICS:
        found += judged.by_count(metric, both)
    return found


def judge_status(
    pair: Pair, launches: Sequence[Launch], rule_of: RuleOf, *, quarantined: bool = False
) -> MetricVerdict:
    """The verdict on the status: from ``pass`` to another one is broken, once a second launch agrees.

    A side that was not measured (skipped, infra, not run) says nothing: not comparable.
    """
    blank = _Judged(pair, rule_of, quarantined).blank("status", "", len(launches))
    told = [
        launch for launch in launches if launch.base.status in _TELLING and launch.head.status in _TELLING
    ]
    if not told:
        return replace(blank, verdict=Verdict.NOT_COMPARABLE, reason=_untold(launches))
    base = [launch.base for launch in told if launch.base.status is not Status.PASS]
    head = [launch.head for launch in told if launch.head.status is not Status.PASS]
    n = len(told)
    blank = replace(blank, launches=n)
    if not base and not head:
        return replace(blank, verdict=Verdict.UNCHANGED)
    if len(base) == n and len(head) == n:
        if all(each.status is Status.UNSUPPORTED for each in (*base, *head)):
            return _asked_of_nobody(blank, head[0].reason)
        reason = f"both fail: base {_ending(base[0])}; head {_ending(head[0])}"
        return replace(blank, verdict=Verdict.NOT_COMPARABLE, reason=reason)
    if not base:
        return _failed(blank, Verdict.BROKEN, "head", head, n)
    if not head and len(base) == n:
        return _failed(blank, Verdict.FIXED, "base", base, n)
    reason = f"not the same in every launch: base failed in {len(base)} of {n}, head in {len(head)}"
    return replace(blank, verdict=Verdict.UNDECIDED, reason=reason)


def with_status(timed: MetricVerdict, status: MetricVerdict) -> MetricVerdict:
    """``timed`` beside the verdict on the status of its pair: where that explains why there is no step time.

    What was mended has nothing to be compared with, and what both sides refuse nobody asked for: neither may
    keep a gate waiting.
    """
    told = status.verdict is Verdict.FIXED or (
        status.verdict is Verdict.NOT_COMPARABLE and status.action is not Action.GATE
    )
    if timed.verdict is Verdict.NOT_COMPARABLE and timed.action is Action.GATE and told:
        return replace(timed, action=Action.REPORT)
    return timed


def _asked_of_nobody(blank: MetricVerdict, why: str) -> MetricVerdict:
    """Unsupported on both sides: there is nothing to measure, so nothing that a gate could wait for."""
    action = Action.REPORT if blank.action is Action.GATE else blank.action
    reason = "unsupported on both sides" + (f": {why}" if why else "")
    return replace(blank, verdict=Verdict.NOT_COMPARABLE, reason=reason, action=action)


def _failed(
    blank: MetricVerdict, verdict: Verdict, side: str, failed: list[Outcome], n: int
) -> MetricVerdict:
    """The verdict where one side fails and the other never does: it takes two launches, or the only one."""
    reason = f"{side} {_ending(failed[0])}"
    if len(failed) >= 2:
        often = "" if len(failed) == n else f" (in {len(failed)} of {n} launches)"
        return replace(blank, verdict=verdict, reason=reason + often, confirmed=True)
    if n == 1:
        return replace(blank, verdict=verdict, reason=f"{reason} (one launch; a second one was not measured)")
    reason += f" in one of {n} launches, and never again"
    return replace(blank, verdict=Verdict.UNDECIDED, reason=reason, confirmed=False)


@dataclass(frozen=True)
class _Judged:
    pair: Pair
    rule_of: RuleOf
    quarantined: bool

    def blank(self, metric: str, unit: str, launches: int, estimator: str = "exact") -> MetricVerdict:
        rule = self.rule_of(metric)
        return MetricVerdict(
            pair_key=self.pair.key,
            pair_id=self.pair.id,
            base_case=self.pair.base.id,
            head_case=self.pair.head.id,
            metric=metric,
            unit=unit,
            estimator=estimator,
            verdict=Verdict.UNDECIDED,
            tolerance=rule.tolerance * (QUARANTINE_FACTOR if self.quarantined else 1.0),
            launches=launches,
            quarantined=self.quarantined,
            control=self.pair.control,
            action=Action.REPORT if self.pair.control and rule.action is Action.GATE else rule.action,
        )

    def by_ratio(self, metric: str, launches: Sequence[Launch], least: int) -> list[MetricVerdict]:
        sides = _Samples.of(metric, launches)
        blank = self.blank(metric, _UNITS[metric], len(sides.base), "median")
        if sides.refusal or not sides.base:
            return _refused(blank, sides)
        base, head = statistics.median(sides.base), statistics.median(sides.head)
        blank = replace(blank, base=base, head=head)
        if metric in MAY_BE_ZERO and min(base, head) >= 0 and abs(head - base) <= self.rule_of(metric).floor:
            return [
                replace(blank, ratio=head / base if min(base, head) > 0 else None, verdict=Verdict.UNCHANGED)
            ]
        if base <= 0 or head <= 0:
            reason = f"a median of {base:g} and one of {head:g} have no ratio"
            return [replace(blank, verdict=Verdict.NOT_COMPARABLE, reason=reason)]
        blank = replace(blank, ratio=head / base)
        if len(sides.base) >= 3 and min(*sides.base, *sides.head) > 0:
            from torchgauge.results.stats import paired_ratio

            paired = paired_ratio(sides.base, sides.head, blank.confidence)
            blank = replace(blank, low=paired.low, high=paired.high)
        if len(sides.base) < least:
            return [_too_few(blank, len(sides.base), least)]
        return [_sized(blank, self.rule_of(metric).floor, sides)]

    def by_count(self, metric: str, launches: Sequence[Launch]) -> list[MetricVerdict]:
        sides = _Samples.of(metric, launches)
        blank = self.blank(metric, "count", len(sides.base))
        if sides.refusal or not sides.base:
            return _refused(blank, sides)
        for name, values in (("base", sides.base), ("head", sides.head)):
            if len(set(values)) > 1:
                listed = ", ".join(f"{value:g}" for value in sorted(set(values)))
                return [replace(blank, reason=f"{name} is not the same in every launch: {listed}")]
        base, head = sides.base[0], sides.head[0]
        verdict = Verdict.UNCHANGED
        if head != base:
            verdict = Verdict.REGRESSION if head > base else Verdict.IMPROVEMENT
        ratio = head / base if base > 0 and head > 0 else None
        return [replace(blank, base=base, head=head, ratio=ratio, verdict=verdict)]


def _too_few(blank: MetricVerdict, count: int, least: int) -> MetricVerdict:
    """Undecided; what was measured once is shown and can gate nothing, or every comparison would wait for it.

    An A/B run compiles into an empty cache in its first launch only, and an ordinary run has one launch.
    """
    once = count == 1 and blank.action is Action.GATE
    return replace(
        blank,
        reason=f"{count} of the {least} launches that it takes",
        needed=least,
        action=Action.REPORT if once else blank.action,
    )


@dataclass(frozen=True)
class _Samples:
    """One number of each side per launch that has both, or why there is none; all empty: neither has any."""

    base: tuple[float, ...] = ()
    head: tuple[float, ...] = ()
    refusal: str = ""

    @property
    def ratios(self) -> list[float]:
        """Head over base of each launch, where both are positive."""
        return [head / base for base, head in zip(self.base, self.head, strict=True) if min(base, head) > 0]

    @classmethod
    def of(cls, metric: str, launches: Iterable[Launch]) -> _Samples:
        base, head, provenance, missing = [], [], set(), []
        for launch in launches:
            ours, theirs = _reading(launch.base, metric), _reading(launch.head, metric)
            if ours[0] is None and theirs[0] is None:
                continue
            if ours[0] is None or theirs[0] is None:
                side, why = ("base", ours[1]) if ours[0] is None else ("head", theirs[1])
                missing.append(f"{side} has none" + (f": {why}" if why else ""))
                continue
            base.append(ours[0])
            head.append(theirs[0])
            provenance.add((ours[1], theirs[1]))
        unlike = next(((ours, theirs) for ours, theirs in sorted(provenance) if ours != theirs), None)
        if unlike is not None or len(provenance) > 1:
            names = sorted({name or "unknown" for names in provenance for name in names})
            return cls(refusal=f"read in different ways: {', '.join(names)}")
        if missing and not base:
            return cls(refusal=missing[0])
        return cls(tuple(base), tuple(head))


def _reading(outcome: Outcome, metric: str) -> tuple[float | None, str]:
    """The number and its provenance, or None and why it is absent."""
    for measurement in outcome.measurements:
        if measurement.metric == metric:
            if measurement.samples:
                return statistics.median(measurement.samples), measurement.provenance
            return None, measurement.absent
    return None, ""


def _refused(blank: MetricVerdict, sides: _Samples) -> list[MetricVerdict]:
    if not sides.refusal:
        return []
    return [replace(blank, verdict=Verdict.NOT_COMPARABLE, reason=sides.refusal)]


def _sized(blank: MetricVerdict, floor: float, sides: _Samples) -> MetricVerdict:
    """The verdict by size: beyond the tolerance and the floor, and not where launches disagree.

    They do where the interval has 1 in it; fewer launches than have one must all point the same way.
    """
    assert blank.base is not None
    assert blank.head is not None
    assert blank.ratio is not None
    change = blank.head - blank.base
    if max(blank.ratio, 1 / blank.ratio) - 1 <= blank.tolerance or abs(change) <= floor:
        return replace(blank, verdict=Verdict.UNCHANGED)
    low, high = blank.low, blank.high
    if low is None or high is None:
        low, high = min(sides.ratios, default=1.0), max(sides.ratios, default=1.0)
    if low <= 1 <= high:
        return replace(blank, reason="the change is large enough, but launches disagree on it")
    return replace(blank, verdict=Verdict.REGRESSION if change > 0 else Verdict.IMPROVEMENT)


def _ending(outcome: Outcome) -> str:
    cause = f" ({outcome.cause.value})" if outcome.cause else ""
    why = f": {outcome.reason}" if outcome.reason else ""
    return f"ends with {outcome.status.value}{cause} in {outcome.phase.value}{why}"


def _untold(launches: Sequence[Launch]) -> str:
    """Why no launch tells anything of the status."""
    if not launches:
        return "no launch was measured"
    launch = launches[-1]
    for side, outcome in (("base", launch.base), ("head", launch.head)):
        if outcome.status not in _TELLING:
            return f"{side} {_ending(outcome)}"
    return "no launch has both sides"
