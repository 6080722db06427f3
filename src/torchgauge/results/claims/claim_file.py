"""Claims as strict YAML: the files that ship with the package, and those of a person's own."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Annotated

import msgspec

from torchgauge.errors import DataFileError, UnknownNameError
from torchgauge.results.claims.claim import (
    MEASURES,
    PER_CENT,
    Aggregation,
    Claim,
    Condition,
    Count,
    Expect,
    Over,
    Positive,
    Published,
    Question,
    Select,
    SelectFields,
    Side,
    Text,
    fault_of_sides,
)
from torchgauge.suites.document import Document, read_document
from torchgauge.suites.schema import Reason, convert, refuse

DATA = Path(__file__).parent / "data"
"""Folder of the claims that ship with the package."""

_CONDITION = re.compile(r"\s*([a-z_]+)\s*(>=|<=|>|<)\s*([0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?)\s*")

ClaimName = Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9][a-z0-9.-]*$")]


class QuestionFields(msgspec.Struct, forbid_unknown_fields=True):
    """What is computed; the fields are those of :class:`Question`."""

    aggregation: Aggregation
    metric: Text | None = None
    condition: Text | None = None
    expect: Expect = Expect.AT_LEAST
    threshold: Positive | None = None
    minimum: Count = 10
    confidence: Annotated[float, msgspec.Meta(ge=0.5, le=0.999)] = 0.95
    over: Over | None = None
    base: Side | None = None
    head: Side | None = None


class ClaimFields(msgspec.Struct, forbid_unknown_fields=True):
    """One claim."""

    name: ClaimName
    title: Text
    statement: Reason
    published: Published
    question: QuestionFields
    select: SelectFields = msgspec.field(default_factory=SelectFields)
    counts: str = ""


class ClaimFileFields(msgspec.Struct, forbid_unknown_fields=True):
    """A whole file."""

    claims: Annotated[tuple[ClaimFields, ...], msgspec.Meta(min_length=1)]


def load_claims(path: Path) -> tuple[Claim, ...]:
    """The claims that ``path`` declares, in its order.

    Raises :class:`DataFileError` with file, line and field: not strict YAML, an unknown field, two claims
    of one name, or a question that has no answer.
    """
    document = read_document(path)
    fields = convert(document, ClaimFileFields)
    found: dict[str, Claim] = {}
    for index, each in enumerate(fields.claims):
        at = f"$.claims[{index}]"
        if each.name in found:
            line = found[each.name].line
            raise refuse(document, f"{at}.name", f"{each.name!r} is declared on line {line} too", "keep one")
        found[each.name] = Claim(
            name=each.name,
            title=each.title.strip(),
            statement=" ".join(each.statement.split()),
            published=each.published,
            question=_question(document, f"{at}.question", each),
            select=Select(**msgspec.structs.asdict(each.select)),
            counts=" ".join(each.counts.split()),
            file=str(path),
            line=document.line_of(at),
        )
    return tuple(found.values())


@cache
def bundled_claims() -> tuple[Claim, ...]:
    """The claims that ship with the package, file by file.

    Raises :class:`DataFileError` where two files have a claim of one name.
    """
    found: dict[str, Claim] = {}
    for path in sorted(DATA.glob("*.yaml")):
        for claim in load_claims(path):
            if claim.name in found:
                raise DataFileError(
                    claim.file, f"{claim.name!r} is in {found[claim.name].file} too", line=claim.line
                )
            found[claim.name] = claim
    return tuple(found.values())


def condition_of(text: str) -> Condition:
    """``text``, such as ``speedup > 1``, as a condition; raises ``ValueError`` where it is none.

    Raises :class:`UnknownNameError` for a metric that no claim can be about.
    """
    found = _CONDITION.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is not a condition")
    if found[1] not in MEASURES:
        raise UnknownNameError("metric", found[1], MEASURES)
    return Condition(found[1], found[2], float(found[3]))


def _question(document: Document, at: str, claim: ClaimFields) -> Question:
    """The question of ``claim``; raises for what no type can say."""
    asked = claim.question
    _check_sides(document, at, asked)
    threshold = asked.threshold if asked.threshold is not None else claim.published.number
    if threshold is None:
        hint = "add `threshold`, or the published `number`"
        raise refuse(document, at, "the claim has no threshold", hint)
    if asked.aggregation in PER_CENT and threshold > 1:
        where = f"{at}.threshold" if asked.threshold is not None else at.replace("question", "published")
        raise refuse(document, where, f"a share of {threshold:g} is above 1", "write 97.5 % as 0.975")
    if asked.over is not None and asked.aggregation is not Aggregation.PASS_RATE:
        raise refuse(document, f"{at}.over", "`over` is valid only for a pass rate", "remove it")
    condition, measure = _measured(document, at, asked)
    return Question(
        aggregation=asked.aggregation,
        threshold=threshold,
        expect=asked.expect,
        measure=measure,
        condition=condition,
        minimum=asked.minimum,
        confidence=asked.confidence,
        over=asked.over or Over.ATTEMPTED,
        base=asked.base,
        head=asked.head,
    )


def _measured(document: Document, at: str, asked: QuestionFields) -> tuple[Condition | None, str]:
    """The condition and the measure of a question, which its aggregation needs or does not take."""
    kind = asked.aggregation.value
    if asked.aggregation is Aggregation.SHARE:
        if asked.metric is not None:
            raise refuse(
                document, f"{at}.metric", "a share must not have a metric beside its `condition`", "remove it"
            )
        if asked.condition is None:
            raise refuse(document, at, "a share needs `condition`", "condition: speedup > 1")
        try:
            condition = condition_of(asked.condition)
        except ValueError as error:
            raise refuse(document, f"{at}.condition", str(error), "condition: speedup > 1") from None
        except UnknownNameError as error:
            raise refuse(document, f"{at}.condition", error.message, error.hint) from None
        return condition, condition.measure
    if asked.condition is not None:
        raise refuse(document, f"{at}.condition", f"a {kind} must not have a condition", "aggregation: share")
    if asked.aggregation is Aggregation.PASS_RATE:
        if asked.metric is not None:
            raise refuse(document, f"{at}.metric", "a pass rate must not have a metric", "remove it")
        return None, ""
    if asked.metric is None:
        raise refuse(document, at, f"a {kind} needs `metric`", f"one of: {', '.join(MEASURES)}")
    if asked.metric not in MEASURES:
        unknown = UnknownNameError("metric", asked.metric, MEASURES)
        raise refuse(document, f"{at}.metric", unknown.message, unknown.hint)
    return None, asked.metric


def _check_sides(document: Document, at: str, asked: QuestionFields) -> None:
    """Raise where two sides are needed and missing, not wanted, equal, or differ in two of the three keys."""
    kind, given = asked.aggregation, [side for side in (asked.base, asked.head) if side is not None]
    if len(given) == 1:
        raise refuse(document, at, "only one of `base` and `head` is given", "give both, or neither")
    if not given:
        if kind is Aggregation.RATIO:
            raise refuse(document, at, "a ratio needs `base` and `head`", "base: {torch: previous}")
        return
    if kind not in (Aggregation.RATIO, Aggregation.SHARE, Aggregation.MEDIAN):
        hint = "set `aggregation: ratio`, the geometric mean of head over base"
        raise refuse(document, f"{at}.aggregation", f"a {kind.value} does not compare two sides", hint)
    assert asked.base is not None
    assert asked.head is not None
    fault = fault_of_sides((asked.base, asked.head))
    if fault is not None:
        raise refuse(document, f"{at}.head", *fault)
