"""What one model says in a claim: exactly one state, with its number or the reason why it has none."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import Enum

from torchgauge.records import ATTEMPTED, INCOMPLETE, Status, doubt, number_counts
from torchgauge.results.claims.claim import MEASURES, Aggregation, Condition, Measure, Question
from torchgauge.results.claims.stored import Number, StoredCase
from torchgauge.results.log_ratio import ratio_interval


class MemberState(str, Enum):
    """Where a model stands; the models of a claim have exactly one each."""

    YES = "yes"
    NO = "no"
    UNDECIDED = "undecided"
    MEASURED = "measured"
    FAILED = "failed"
    REFUSED = "refused"
    NOT_COMPARABLE = "not comparable"
    UNCHECKED = "unchecked"
    UNSTEADY = "unsteady"
    NOT_MEASURED = "not measured"


COUNTED = frozenset({MemberState.YES, MemberState.NO, MemberState.UNDECIDED, MemberState.MEASURED})
"""States with a number, or for a pass rate a status, that enters the answer."""

MISSING = frozenset({MemberState.NOT_MEASURED, MemberState.UNCHECKED, MemberState.UNSTEADY})
"""States of models that a further measurement could give one that counts."""


_LOGARITHMIC = frozenset({Aggregation.GEOMEAN, Aggregation.RATIO})


@dataclass(frozen=True)
class Member:
    """One model; ``value`` with its interval is in the unit of the question's measure.

    ``case_id`` is that of the row that was asked (of the head where there are two sides), empty where there
    is none. ``missing_side`` is the side of two that has no row that says anything.
    """

    suite: str
    model: str
    state: MemberState
    reason: str = ""
    value: float | None = None
    low: float | None = None
    high: float | None = None
    status: Status | None = None
    case_id: str = ""
    run_id: str = ""
    missing_side: str = ""

    @property
    def name(self) -> str:
        """Suite and model as the command line takes them."""
        return f"{self.suite}/{self.model}"


@dataclass(frozen=True)
class Measured:
    """The rows of one model: what was asked, and eager beside it where the measure needs it."""

    case: StoredCase
    eager: StoredCase | None = None


def member_of(key: tuple[str, str], found: Measured | None, question: Question) -> Member:
    """What ``found`` says of the model ``key``; None where no row is there."""
    if found is None:
        return Member(*key, MemberState.NOT_MEASURED, "no row in the store")
    if question.aggregation is Aggregation.PASS_RATE:
        return _passing(key, found.case)
    lack = lacking(found.case) or doubted(found.case, question)
    if lack is not None:
        return _of(key, found.case, *lack)
    number = number_of(found, MEASURES[question.measure])
    if number.median is None:
        return _of(key, found.case, MemberState.NOT_MEASURED, number.absent)
    return _judged(key, found.case, number, question)


def member_of_two(
    key: tuple[str, str], base: Measured | None, head: Measured | None, question: Question
) -> Member:
    """What head over base says of the model ``key``."""
    for name, side in (("base", base), ("head", head)):
        if side is None:
            other = head or base
            if other is None:
                return Member(*key, MemberState.NOT_MEASURED, "no row in the store")
            case, theirs = other.case, "head" if name == "base" else "base"
            reason = f"{name} has no row of this model with the workload of {theirs}"
            return replace(_of(key, case, MemberState.NOT_MEASURED, reason), missing_side=name)
        lack = lacking(side.case) or doubted(side.case, question)
        if lack is not None:
            found = _of(key, side.case, lack[0], f"{name}: {lack[1]}")
            return replace(found, missing_side=name if lack[0] in MISSING else "")
    assert base is not None
    assert head is not None
    if base.case.realised and head.case.realised and base.case.realised != head.case.realised:
        return _of(key, head.case, MemberState.NOT_COMPARABLE, "the two sides built different models")
    numbers = [number_of(side, MEASURES[question.measure]) for side in (base, head)]
    for name, number in zip(("base", "head"), numbers, strict=True):
        if number.median is None:
            return _of(key, head.case, MemberState.NOT_MEASURED, f"{name}: {number.absent}")
    return _judged(key, head.case, quotient(numbers[1], numbers[0]), question)


def number_of(found: Measured, measure: Measure) -> Number:
    """The number of ``measure``, or the reason why there is none."""
    own = found.case.numbers.get(measure.metric, Number(None, None, None, f"{measure.metric} has no row"))
    if own.median is None or not measure.against_eager:
        return own
    if found.eager is None:
        return Number(None, None, None, "eager was not measured in the same run or environment")
    if not found.eager.passed:
        return Number(None, None, None, f"eager: {found.eager.status.value}")
    below = found.eager.numbers.get(measure.metric, Number(None, None, None, f"{measure.metric} has no row"))
    if below.median is None:
        return Number(None, None, None, f"eager: {below.absent}")
    return quotient(below, own)


def quotient(above: Number, below: Number) -> Number:
    """``above`` / ``below`` with the interval of :func:`ratio_interval`.

    Without an interval where a side has none; absent where a side is not positive.
    """
    if not (above.median and below.median and above.median > 0 and below.median > 0):
        return Number(
            None, None, None, f"no ratio of {above.median:g} and {below.median:g}: both must be positive"
        )
    sides = ([each.median, each.low or math.nan, each.high or math.nan] for each in (below, above))
    ratio, *ends = map(float, ratio_interval(*sides))
    low, high = (math.exp(end) if math.isfinite(end) else None for end in ends)
    return (
        Number(math.exp(ratio), low, high) if None not in (low, high) else Number(math.exp(ratio), None, None)
    )


def lacking(case: StoredCase) -> tuple[MemberState, str] | None:
    """Why ``case`` has no number that counts; None where it passed as it was asked to.

    What another model than the named one did says nothing of the named one, not even where it failed.
    """
    if case.other_model:
        return MemberState.NOT_COMPARABLE, f"the built model is not the named one: {case.other_model}"
    if case.passed:
        return None
    if case.status is Status.PASS:
        if case.unchecked:
            return MemberState.UNCHECKED, f"unchecked: {case.unchecked}"
        return MemberState.FAILED, f"degraded: {case.degraded}"
    cause = f" ({case.cause.value})" if case.cause else ""
    reason = f"{case.status.value}{cause}" + (f": {case.reason}" if case.reason else "")
    if case.status in ATTEMPTED:
        return MemberState.FAILED, reason
    return (MemberState.NOT_MEASURED if case.status in INCOMPLETE else MemberState.REFUSED), reason


def doubted(case: StoredCase, question: Question) -> tuple[MemberState, str] | None:
    """Why the number of ``case``, which passed, belongs in no claim; None where it may enter one."""
    if number_counts(MEASURES[question.measure].metric, case.status, case.modifiers):
        return None
    why = doubt(MEASURES[question.measure].metric, case.modifiers)
    return MemberState.UNSTEADY, f"{why}: {getattr(case, why)}"


def decided(condition: Condition, number: Number, *, exact: bool) -> tuple[MemberState, str]:
    """Whether the whole interval fulfils ``condition``, the whole interval does not, or neither."""
    assert number.median is not None
    if exact:
        return (MemberState.YES if condition.holds(number.median) else MemberState.NO), ""
    if number.low is None or number.high is None:
        return MemberState.UNDECIDED, "fewer than six samples have no interval"
    ends = {condition.holds(number.low), condition.holds(number.high)}
    if len(ends) == 2:
        return MemberState.UNDECIDED, "the interval contains the threshold"
    return (MemberState.YES if ends == {True} else MemberState.NO), ""


def _passing(key: tuple[str, str], case: StoredCase) -> Member:
    lack = lacking(case)
    if lack is None:
        return _of(key, case, MemberState.YES, "")
    state, reason = lack
    return _of(key, case, MemberState.NO if state is MemberState.FAILED else state, reason)


def _judged(key: tuple[str, str], case: StoredCase, number: Number, question: Question) -> Member:
    if number.median is None:
        return _of(key, case, MemberState.NOT_MEASURED, number.absent)
    state, reason = MemberState.MEASURED, ""
    if question.condition is not None:
        exact = MEASURES[question.measure].exact
        state, reason = decided(question.condition, number, exact=exact)
    elif question.aggregation in _LOGARITHMIC and not number.median > 0:
        return _of(key, case, MemberState.NOT_MEASURED, f"{number.median:g} has no logarithm")
    found = _of(key, case, state, reason)
    return replace(found, value=number.median, low=number.low, high=number.high)


def _of(key: tuple[str, str], case: StoredCase, state: MemberState, reason: str) -> Member:
    return Member(*key, state, reason, status=case.status, case_id=case.case_id, run_id=case.run_id)
