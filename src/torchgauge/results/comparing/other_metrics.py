"""Verdicts on what is no step time: compile time, memory and graphs beside the status, one rule for each.

The rules are the table of ``docs/comparison.md``. Each works on the launches of one pair; a launch has one
number of each side, the median of what its worker measured.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace

from torchgauge.records.comparison import Action, Launch, MetricVerdict, Pair, Verdict
from torchgauge.results.comparing.blank_verdict import BlankVerdicts, RuleOf
from torchgauge.results.comparing.launch_samples import LaunchSamples
from torchgauge.results.comparing.memory_change import METRIC as MEMORY
from torchgauge.results.comparing.memory_change import MemoryRule, judge_memory
from torchgauge.results.comparing.noise import Prior
from torchgauge.results.comparing.status_verdict import Standing, comparable, judge_status, standing

RATIO_METRICS = {"compile_cold": 3, "compile_warm": 3}
"""Times that are compared by ratio, and the least number of launches that may decide."""

COUNT_METRICS = ("graph_breaks", "graph_count", "recompiles")
"""Metrics that are compared exactly."""

OF_THE_COMPILER = ("compile_cold", "compile_warm", *COUNT_METRICS)
"""Metrics of which nothing is claimed where neither side ran what it was to compile."""


def judge_other_metrics(
    pair: Pair,
    launches: Sequence[Launch],
    rule_of: RuleOf,
    *,
    quarantined: bool = False,
    memory_prior: Prior | None = None,
) -> list[MetricVerdict]:
    """Verdicts on every metric but step times, from all ``launches`` of ``pair``.

    A metric that neither side has gives none. Quarantine triples tolerances, never what is exact.
    ``memory_prior`` is how memory differed between launches of equal code.
    """
    judged = _Judged(pair, rule_of, quarantined)
    both = [launch for launch in launches if comparable(launch)]
    found: list[MetricVerdict] = []
    for metric, least in RATIO_METRICS.items():
        found += judged.by_ratio(metric, both, least)
    found += judged.memory(both, memory_prior)
    for metric in COUNT_METRICS:
        found += judged.by_count(metric, both)
    found = _of_one_coverage(found)
    if any(standing(side) is Standing.DEGRADED for launch in both for side in (launch.base, launch.head)):
        found = [_unclaimed(each) if each.metric in OF_THE_COMPILER else each for each in found]
    return [judge_status(pair, launches, rule_of, quarantined=quarantined), *found]


def _of_one_coverage(found: list[MetricVerdict]) -> list[MetricVerdict]:
    """``found`` without gains that come of compiling less of the model: fewer graphs are no improvement.

    A break or a recompilation that went away takes a graph with it. Where more graphs went than that, what
    they held may run eager now, so nothing that the compiler does is better for it.
    """
    fell = {each.metric: (each.base or 0.0) - (each.head or 0.0) for each in found if each.unit == "count"}
    graphs = fell.get("graph_count", 0.0)
    if graphs <= 0:
        return found
    explained = max(0.0, fell.get("graph_breaks", 0.0)) + max(0.0, fell.get("recompiles", 0.0))
    if graphs <= explained:
        reason = f"{graphs:g} fewer, as many as graph breaks or recompilations went away"
        return [
            replace(each, verdict=Verdict.UNCHANGED, reason=reason) if each.metric == "graph_count" else each
            for each in found
        ]
    reason = (
        f"{graphs:g} fewer graphs, and {explained:g} graph breaks and recompilations: "
        "less of the model may be compiled"
    )
    return [
        replace(each, verdict=Verdict.UNDECIDED, reason=reason)
        if each.metric in OF_THE_COMPILER and each.verdict is Verdict.IMPROVEMENT
        else each
        for each in found
    ]


def _unclaimed(verdict: MetricVerdict) -> MetricVerdict:
    """A metric of the compiler where both sides are degraded: shown, and nothing said of it."""
    action = Action.REPORT if verdict.action is Action.GATE else verdict.action
    reason = "both sides are degraded: what was compiled is not what runs"
    return replace(verdict, verdict=Verdict.NOT_COMPARABLE, reason=reason, action=action)


@dataclass(frozen=True)
class _Judged(BlankVerdicts):
    def by_ratio(self, metric: str, launches: Sequence[Launch], least: int) -> list[MetricVerdict]:
        sides = LaunchSamples.of(metric, launches)
        blank = self.blank(metric, "s", len(sides.base), "median")
        if sides.refusal or not sides.base:
            return _refused(blank, sides)
        base, head = statistics.median(sides.base), statistics.median(sides.head)
        blank = replace(blank, base=base, head=head)
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

    def memory(self, launches: Sequence[Launch], prior: Prior | None) -> list[MetricVerdict]:
        sides = LaunchSamples.of(MEMORY, launches)
        blank = self.blank(MEMORY, "B", len(sides.base), "median")
        if sides.refusal or not sides.base:
            return _refused(blank, sides)
        rule = MemoryRule(blank.tolerance, self.rule_of(MEMORY).floor, prior)
        return [judge_memory(blank, sides, rule)]

    def by_count(self, metric: str, launches: Sequence[Launch]) -> list[MetricVerdict]:
        sides = LaunchSamples.of(metric, launches)
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


def _refused(blank: MetricVerdict, sides: LaunchSamples) -> list[MetricVerdict]:
    if not sides.refusal:
        return []
    return [replace(blank, verdict=Verdict.NOT_COMPARABLE, reason=sides.refusal)]


def _sized(blank: MetricVerdict, floor: float, sides: LaunchSamples) -> MetricVerdict:
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
