"""Verdicts on what is no step time: compile time, memory and graphs beside the status, one rule for each.

The rules are the table of ``docs/comparison.md``. Each works on the launches of one pair; a launch has one
number of each side, the median of what its worker measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from torchgauge import registry
from torchgauge.counted import counted
from torchgauge.records import Compared, Metric
from torchgauge.records.comparison import Launch, MetricVerdict, Pair, Verdict
from torchgauge.results.comparing.blank_verdict import RuleOf, blank_verdict
from torchgauge.results.comparing.launch_samples import LaunchSamples
from torchgauge.results.comparing.noise import Prior
from torchgauge.results.comparing.sized_change import SizedRule, judge_sized, worse_or_better
from torchgauge.results.comparing.status_verdict import Grade, comparable, grade, judge_status


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
    both = [launch for launch in launches if comparable(launch)]
    found: list[MetricVerdict] = []
    for metric in registry.metrics().values():
        if metric.compared not in (Compared.RATIO, Compared.MEMORY, Compared.EXACT):
            continue
        samples = LaunchSamples.of(metric.name, both)
        if not (samples.refusal or samples.base):
            continue
        rule, exact = rule_of(metric.name), metric.compared is Compared.EXACT
        blank = blank_verdict(
            pair,
            metric.name,
            rule,
            quarantined=quarantined,
            unit=metric.unit,
            estimator="exact" if exact else "median",
            launches=len(samples.base),
        )
        prior = memory_prior if metric.compared is Compared.MEMORY else None
        if samples.refusal:
            found.append(replace(blank, verdict=Verdict.NOT_COMPARABLE, reason=samples.refusal))
        elif exact:
            found.append(_by_count(blank, samples, metric))
        else:
            found.append(judge_sized(blank, samples, SizedRule(metric, blank.tolerance, rule.floor, prior)))
    found = _of_one_coverage(found)
    if any(grade(side) is Grade.DEGRADED for launch in both for side in (launch.base, launch.head)):
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
        reason = f"{counted(round(graphs), 'fewer graph')}, explained by fewer graph breaks or recompilations"
        return [
            replace(each, verdict=Verdict.UNCHANGED, reason=reason) if each.metric == "graph_count" else each
            for each in found
        ]
    reason = (
        f"{counted(round(graphs), 'fewer graph')}, but graph "
        f"breaks and recompilations fell only by {explained:g}: "
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
    reason = "both sides are degraded: the compiled code did not run"
    return replace(verdict, verdict=Verdict.NOT_COMPARABLE, reason=reason, action=verdict.action.softened)


def _by_count(blank: MetricVerdict, samples: LaunchSamples, metric: Metric) -> MetricVerdict:
    """The verdict on what is exact, where it is the same in every launch."""
    for name, values in (("base", samples.base), ("head", samples.head)):
        if len(set(values)) > 1:
            listed = ", ".join(f"{value:g}" for value in sorted(set(values)))
            return replace(blank, reason=f"{name} differs between launches: {listed}")
    base, head = samples.base[0], samples.head[0]
    verdict = Verdict.UNCHANGED if head == base else worse_or_better(head - base, metric)
    ratio = head / base if base > 0 and head > 0 else None
    return replace(blank, base=base, head=head, ratio=ratio, verdict=verdict)
