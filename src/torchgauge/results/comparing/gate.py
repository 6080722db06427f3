"""The gate: verdicts and a policy in, an exit code and the reasons out.

The exit code is that of :mod:`torchgauge.results.comparing.gate_verdict`. Silence is never success: a gate
over nothing, or in which something that gates could not be decided, ends with 3.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from torchgauge.counted import counted
from torchgauge.records.comparison import Action, MetricVerdict, Verdict
from torchgauge.results.comparing.gate_verdict import EXIT_CODES, GATE_VERDICTS, Headline, headline
from torchgauge.results.comparing.policy import STEP_TIMES, Policy, Rule
from torchgauge.results.comparing.run_ratio import change_in
from torchgauge.results.comparing.verdict_words import WORSE, in_doubt, named


@dataclass(frozen=True)
class GateResult:
    """What a gate says: its exit code, why, and the verdicts as the policy sees them."""

    exit_code: int
    reasons: tuple[str, ...]
    blocking: tuple[MetricVerdict, ...]
    unmeasured: tuple[MetricVerdict, ...]
    reported: tuple[MetricVerdict, ...]
    undecided: tuple[MetricVerdict, ...]
    verdicts: tuple[MetricVerdict, ...]


def gate(verdicts: Sequence[MetricVerdict], policy: Policy | None = None, incomplete: str = "") -> GateResult:
    """What ``verdicts`` mean under ``policy``; without one, under the policy that they were judged by.

    ``incomplete`` says why the comparison is not whole, and is empty where it is.
    """
    seen = [each if policy is None else under(each, policy) for each in verdicts]
    gating = [each for each in seen if each.action is Action.GATE and not each.control]
    blocking = tuple(each for each in gating if each.verdict in WORSE)
    unmeasured = tuple(each for each in gating if each.verdict is Verdict.NOT_COMPARABLE)
    reported = tuple(
        each for each in seen if each.action is Action.REPORT and not each.control and each.verdict in WORSE
    )
    undecided = tuple(each for each in gating if each.verdict is Verdict.UNDECIDED)
    reasons = [f"incomplete: {incomplete}"] if incomplete else []
    reasons += [f"in doubt: {in_doubt(seen)}"] if in_doubt(seen) else []
    said = headline(seen, incomplete=bool(incomplete))
    reasons += _nothing(seen, gating)
    if said is Headline.NOTHING_COMPARED and not (reasons or unmeasured):
        reasons.append("no step time was compared: the policy ignores step times")
    return GateResult(
        exit_code=EXIT_CODES[GATE_VERDICTS[said]],
        reasons=(*map(_line, blocking), *map(_line, unmeasured), *reasons),
        blocking=blocking,
        unmeasured=unmeasured,
        reported=reported,
        undecided=undecided,
        verdicts=tuple(seen),
    )


def under(verdict: MetricVerdict, policy: Policy) -> MetricVerdict:
    """``verdict`` with the action and the tolerance of ``policy``, for a policy that came after it.

    Only what the numbers still carry is said: a change below half a wider tolerance is none, and a claim of
    "unchanged" within a narrower one must fit into it. Nothing undecided becomes decided.
    """
    suite = verdict.head_case.partition("/")[0]
    rule = policy.rule_of(suite, verdict.head_case, verdict.metric if verdict.pair_key else "suite")
    # The judge itself took controls, and what is watched for harm, out of the gate.
    watched = verdict.control or verdict.metric in ("latency_wall", "latency_tail", "suite")
    softened = rule.action is Action.GATE and verdict.action is not Action.GATE and watched
    action = verdict.action if softened else rule.action
    seen = replace(verdict, action=action)
    if verdict.ratio is None or verdict.metric not in STEP_TIMES:
        return _sized(seen, rule)
    tolerance = rule.tolerated(quarantined=verdict.quarantined)
    return _within(seen, tolerance)


def _within(seen: MetricVerdict, tolerance: float) -> MetricVerdict:
    """A step time under another tolerance."""
    assert seen.ratio is not None
    if tolerance == seen.tolerance:
        return seen
    change = change_in(seen, tolerance)
    small = abs(math.log(seen.ratio)) < math.log1p(tolerance / 2)
    changed = replace(seen, tolerance=tolerance)
    if seen.verdict in (Verdict.REGRESSION, Verdict.IMPROVEMENT) and small:
        reason = f"the {seen.verdict.value} is below half of the policy's tolerance of {tolerance:.1%}"
        return replace(
            changed, verdict=Verdict.UNCHANGED if change.same else Verdict.UNDECIDED, reason=reason
        )
    if seen.verdict is Verdict.UNCHANGED and not change.same:
        reason = f"unchanged within {seen.tolerance:.1%}, but the tolerance of the policy is {tolerance:.1%}"
        return replace(changed, verdict=Verdict.UNDECIDED, reason=reason)
    return changed


def _sized(seen: MetricVerdict, rule: Rule) -> MetricVerdict:
    """Compile time or memory under another tolerance or floor; what is exact stays as it is."""
    if seen.verdict is not Verdict.REGRESSION or seen.ratio is None or not rule.tolerance:
        return seen
    tolerance = rule.tolerated(quarantined=seen.quarantined)
    change = abs((seen.head or 0.0) - (seen.base or 0.0))
    if max(seen.ratio, 1 / seen.ratio) - 1 > tolerance and change > rule.floor:
        return replace(seen, tolerance=tolerance)
    reason = f"the change is within the policy's tolerance of {tolerance:.1%}, or below the policy's floor"
    return replace(seen, tolerance=tolerance, verdict=Verdict.UNCHANGED, reason=reason)


def _nothing(seen: Sequence[MetricVerdict], gating: Sequence[MetricVerdict]) -> list[str]:
    """Why there is nothing to be sure of, in words; empty where all that gates was decided."""
    if not any(not each.control for each in seen):
        return ["nothing was compared"]
    if not gating:
        return ["no compared metric can fail the gate: the policy only reports or ignores these metrics"]
    step_times = [each for each in gating if each.metric in STEP_TIMES]
    decided = [each for each in step_times if each.verdict not in (Verdict.UNDECIDED, Verdict.NOT_COMPARABLE)]
    if step_times and not decided:
        return [f"none of the {len(step_times)} step times that can fail the gate has a verdict"]
    open_ = sum(each.verdict is Verdict.UNDECIDED for each in gating)
    if open_:
        return [f"undecided: {open_} of {counted(len(gating), 'verdict')} that can fail the gate"]
    return []


def _line(verdict: MetricVerdict) -> str:
    """One reason: verdict, metric, pair and what it rests on."""
    shown = named(verdict)
    ratio = f" {shown}" if shown else ""
    why = f": {verdict.reason}" if verdict.reason else ""
    return f"{verdict.verdict.value}: {verdict.metric} of {verdict.pair_id}{ratio}{why}"
