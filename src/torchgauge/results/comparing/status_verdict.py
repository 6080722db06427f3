"""The verdict on how a pair ended: passing, degraded or failing, and what that leaves of the other metrics.

A degraded pass is no pass of what was asked for, so it stands between the two: from pass to degraded is
broken as from pass to error, and whatever a metric gained by it is no improvement.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from enum import IntEnum

from torchgauge.counted import counted
from torchgauge.records import ATTEMPTED, Modifier, Outcome, Status, undeclared_skip
from torchgauge.records.comparison import Action, Launch, MetricVerdict, Pair, Side, Verdict
from torchgauge.results.comparing.blank_verdict import RuleOf, blank_verdict
from torchgauge.results.comparing.outputs import not_seen, outputs_differ

BOTH_FAIL = "both fail"
"""Begins the reason of a verdict on the status where neither side passed."""
_TELLING = ATTEMPTED | {Status.UNSUPPORTED}
"""Statuses that say something of the model or its build; the others only say that nothing was measured."""

_UNTOLD = (Modifier.OTHER_MODEL, Modifier.UNCHECKED)
"""Modifiers of a pass that says nothing of the named model, or of which nobody knows whether it is right."""


class Grade(IntEnum):
    """What came of one side of a launch, the better the higher."""

    FAILED = 0
    DEGRADED = 1
    PASSED = 2


def grade(outcome: Outcome) -> Grade:
    """Where ``outcome`` stands."""
    if outcome.status is not Status.PASS:
        return Grade.FAILED
    return Grade.DEGRADED if Modifier.DEGRADED in outcome.modifiers else Grade.PASSED


def unfit(launch: Launch) -> str:
    """Why the step times of ``launch`` are compared with nobody's; empty where they are compared."""
    failed = [
        f"{side.value} {outcome.status.value}{': ' if outcome.reason else ''}{outcome.reason}"
        for side, outcome in sides(launch)
        if outcome.status is not Status.PASS
    ]
    return (
        "; ".join(failed)
        or _first_marked(launch, (*_UNTOLD, Modifier.FASTER_THAN_PEAK, Modifier.UNSTEADY))
        or unlike(launch)
        or outputs_differ(launch)
    )


def unlike(launch: Launch) -> str:
    """Which side of ``launch`` alone is degraded and why; empty where both are, or neither."""
    marked = [side for side in sides(launch) if grade(side[1]) is Grade.DEGRADED]
    if len(marked) != 1:
        return ""
    ((side, outcome),) = marked
    return f"{side.value} is {_marked(outcome, Modifier.DEGRADED)}"


def comparable(launch: Launch) -> bool:
    """Return whether both sides of ``launch`` passed, checked, with equal results of the named model."""
    passed = launch.base.status is launch.head.status is Status.PASS
    return passed and not (_untold(launch) or unlike(launch) or outputs_differ(launch))


def sides(launch: Launch) -> tuple[tuple[Side, Outcome], tuple[Side, Outcome]]:
    """Both sides of ``launch`` with how they ended."""
    return (Side.BASE, launch.base), (Side.HEAD, launch.head)


def judge_status(
    pair: Pair, launches: Sequence[Launch], rule_of: RuleOf, *, quarantined: bool = False
) -> MetricVerdict:
    """Return the verdict on the status: from ``pass`` to worse is broken, once a second launch agrees.

    Where both passed, their outputs are compared; that they differ takes a second launch as well.
    A side that was not measured (skipped, infra, not run), has another model or is unchecked is not
    comparable. Where the base passed and the head is skipped, the verdict is broken, unless a data file
    declares the skip.
    """
    blank = blank_verdict(pair, "status", rule_of("status"), quarantined=quarantined, launches=len(launches))
    told = [launch for launch in launches if not _untold(launch)]
    if not told:
        why = _untold(launches[-1]) if launches else "no launch was measured"
        return replace(blank, verdict=Verdict.NOT_COMPARABLE, reason=why)
    blank = replace(blank, launches=len(told))
    base, head = {grade(each.base) for each in told}, {grade(each.head) for each in told}
    apart = [why for each in told if (why := outputs_differ(each))]
    if apart:
        return _changed(blank, Verdict.OUTPUTS_DIFFER, apart)
    if len(base) == 1 and base == head:
        return _alike(blank, told[0], *base)
    worse = [f"head {_ending(each.head)}" for each in told if grade(each.head) < grade(each.base)]
    better = [f"base {_ending(each.base)}" for each in told if grade(each.head) > grade(each.base)]
    if len(base) == 1 and not better:
        return _changed(blank, Verdict.BROKEN, worse)
    if len(head) == 1 and len(better) == len(told):
        return _changed(blank, Verdict.FIXED, better)
    base_failed = sum(grade(each.base) is not Grade.PASSED for each in told)
    head_failed = sum(grade(each.head) is not Grade.PASSED for each in told)
    counts = f"base failed in {base_failed} of {len(told)}, head in {head_failed}"
    reason = f"status differs between launches: {counts}"
    return replace(blank, verdict=Verdict.UNDECIDED, reason=reason)


def with_status(timed: MetricVerdict, status: MetricVerdict) -> MetricVerdict:
    """``timed`` beside the verdict on the status of its pair: where that explains why there is no step time.

    What was fixed has nothing to be compared with, and what both sides refuse nobody asked for: neither may
    keep a gate waiting.
    """
    told = status.verdict is Verdict.FIXED or (
        status.verdict is Verdict.NOT_COMPARABLE and status.action is not Action.GATE
    )
    if timed.verdict is Verdict.NOT_COMPARABLE and timed.action is Action.GATE and told:
        return replace(timed, action=Action.REPORT)
    return timed


def _alike(blank: MetricVerdict, launch: Launch, both: Grade) -> MetricVerdict:
    """Both sides ended alike in every launch."""
    if both is Grade.PASSED:
        unseen = not_seen(launch)
        reason = f"outputs were not compared: {unseen}" if unseen else ""
        return replace(blank, verdict=Verdict.UNCHANGED, reason=reason)
    if both is Grade.DEGRADED:
        reason = f"both are {_marked(launch.head, Modifier.DEGRADED)}"
        return replace(blank, verdict=Verdict.UNCHANGED, reason=reason)
    if launch.base.status is launch.head.status is Status.UNSUPPORTED:
        # there is nothing to measure, so nothing that a gate could wait for
        reason = "unsupported on both sides" + (f": {launch.head.reason}" if launch.head.reason else "")
        return replace(blank, verdict=Verdict.NOT_COMPARABLE, reason=reason, action=blank.action.softened)
    reason = f"{BOTH_FAIL}: base {_ending(launch.base)}; head {_ending(launch.head)}"
    return replace(blank, verdict=Verdict.NOT_COMPARABLE, reason=reason)


def _changed(blank: MetricVerdict, verdict: Verdict, reasons: list[str]) -> MetricVerdict:
    """Return the verdict where launches show a change, for ``reasons``: it takes two, or the only one."""
    n, reason = blank.launches, reasons[0]
    if len(reasons) >= 2:
        often = "" if len(reasons) == n else f" (in {len(reasons)} of {counted(n, 'launch')})"
        return replace(blank, verdict=verdict, reason=reason + often, confirmed=True)
    if n == 1:
        return replace(blank, verdict=verdict, reason=f"{reason} (one launch; a second one was not measured)")
    reason += f" in one of {counted(n, 'launch')}, and did not recur"
    return replace(blank, verdict=Verdict.UNDECIDED, reason=reason, confirmed=False)


def _untold(launch: Launch) -> str:
    """Why ``launch`` tells nothing of the status; empty where it does."""
    skips = undeclared_skip(launch.head.status, launch.head.cause)
    lost = skips and launch.base.status is Status.PASS
    for side, outcome in sides(launch):
        if outcome.status not in _TELLING and not (lost and side is Side.HEAD):
            return f"{side.value} {_ending(outcome)}"
    return _first_marked(launch, _UNTOLD)


def _first_marked(launch: Launch, modifiers: Sequence[Modifier]) -> str:
    """The first side that passed with one of ``modifiers``, and why; empty where none did."""
    found = (
        f"{side.value} is {_marked(outcome, modifier)}"
        for side, outcome in sides(launch)
        for modifier in modifiers
        if outcome.status is Status.PASS and modifier in outcome.modifiers
    )
    return next(found, "")


def _marked(outcome: Outcome, modifier: Modifier) -> str:
    """The modifier with its reason, which is the fact of its name."""
    why = dict(outcome.facts).get(modifier.value)
    return modifier.value.replace("_", " ") + (f": {why}" if why else "")


def _ending(outcome: Outcome) -> str:
    if outcome.status is Status.PASS:
        return f"is {_marked(outcome, Modifier.DEGRADED)}"
    cause = f" ({outcome.cause.value})" if outcome.cause else ""
    why = f": {outcome.reason}" if outcome.reason else ""
    return f"ends with {outcome.status.value}{cause} in {outcome.phase.value}{why}"
