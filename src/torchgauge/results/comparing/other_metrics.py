"""Verdicts on what is no step time: compile time, memory and graphs beside the status, one rule for each.

The rules are the table of ``docs/comparison.md``. Each works on the launches of one pair; a launch has one
number of each side, the median of what its worker measured.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace

from torchgauge import registry
from torchgauge.records import Better, Compared, Metric
from torchgauge.records.comparison import Action, Launch, MetricVerdict, Pair, Verdict
from torchgauge.results.comparing.blank_verdict import BlankVerdicts, RuleOf
from torchgauge.results.comparing.launch_samples import LaunchSamples
from torchgauge.results.comparing.memory_change import MemoryRule, judge_memory
from torchgauge.results.comparing.noise import Prior
from torchgauge.results.comparing.status_verdict import Standing, comparable, judge_status, standing


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
    for metric in registry.metrics().values():
        if metric.compared is Compared.RATIO:
            found += judged.by_ratio(metric, both)
        elif metric.compared is Compared.MEMORY:
            found += judged.memory(metric, both, memory_prior)
        elif metric.compared is Compared.EXACT:
            found += judged.by_count(metric, both)
    found = _of_one_coverage(found)
    if any(standing(side) is Standing.DEGRADED for launch in both for side in (launch.base, launch.head)):
        found = [_unclaimed(each) if _of_the_compiler(each) else each for each in found]
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
        if _of_the_compiler(each) and each.verdict is Verdict.IMPROVEMENT
        else each
        for each in found
    ]


def _of_the_compiler(verdict: MetricVerdict) -> bool:
    """Whether nothing is claimed of its metric where neither side ran what it was to compile."""
    known = registry.metrics().get(verdict.metric)
    return known is not None and known.of_the_compiler


def _unclaimed(verdict: MetricVerdict) -> MetricVerdict:
    """A metric of the compiler where both sides are degraded: shown, and nothing said of it."""
    action = Action.REPORT if verdict.action is Action.GATE else verdict.action
    reason = "both sides are degraded: what was compiled is not what runs"
    return replace(verdict, verdict=Verdict.NOT_COMPARABLE, reason=reason, action=action)


@dataclass(frozen=True)
class _Judged(BlankVerdicts):
    def by_ratio(self, metric: Metric, launches: Sequence[Launch]) -> list[MetricVerdict]:
        sides = LaunchSamples.of(metric.name, launches)
        blank = self.blank(metric.name, metric.unit, len(sides.base), "median")
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
        if len(sides.base) < metric.launches:
            return [_too_few(blank, len(sides.base), metric.launches)]
        return [_sized(blank, self.rule_of(metric.name).floor, sides, metric.better)]

    def memory(self, metric: Metric, launches: Sequence[Launch], prior: Prior | None) -> list[MetricVerdict]:
        sides = LaunchSamples.of(metric.name, launches)
        blank = self.blank(metric.name, metric.unit, len(sides.base), "median")
        if sides.refusal or not sides.base:
            return _refused(blank, sides)
        rule = MemoryRule(blank.tolerance, self.rule_of(metric.name).floor, prior)
        return [judge_memory(blank, sides, rule)]

    def by_count(self, metric: Metric, launches: Sequence[Launch]) -> list[MetricVerdict]:
        sides = LaunchSamples.of(metric.name, launches)
        blank = self.blank(metric.name, metric.unit, len(sides.base))
        if sides.refusal or not sides.base:
            return _refused(blank, sides)
        for name, values in (("base", sides.base), ("head", sides.head)):
            if len(set(values)) > 1:
                listed = ", ".join(f"{value:g}" for value in sorted(set(values)))
                return [replace(blank, reason=f"{name} is not the same in every launch: {listed}")]
        base, head = sides.base[0], sides.head[0]
        verdict = Verdict.UNCHANGED
        if head != base:
            verdict = _worse_or_better(head - base, metric.better)
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


def _sized(blank: MetricVerdict, floor: float, sides: LaunchSamples, better: Better) -> MetricVerdict:
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
    return replace(blank, verdict=_worse_or_better(change, better))


def _worse_or_better(change: float, better: Better) -> Verdict:
    """What ``change`` is; of a metric without a direction more is worse, since nobody asked for it."""
    worse = change < 0 if better is Better.HIGHER else change > 0
    return Verdict.REGRESSION if worse else Verdict.IMPROVEMENT
