"""Claims and their answers for a terminal, a page and a program; nothing in a store's text acts in them."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from torchgauge.clock import utc
from torchgauge.counted import counted
from torchgauge.results import document
from torchgauge.results.claims.answer import Answer, Answers, Part, Where
from torchgauge.results.claims.claim import MEASURES, Aggregation, Claim, Expect, Over, Question
from torchgauge.results.claims.member import COUNTED, Member, MemberState
from torchgauge.results.document import ours
from torchgauge.results.hostile_text import visible
from torchgauge.results.units import integer, interval, quantity, shortened

SCHEMA, VERSION = "torchgauge.claim", 1
MODELS_SHOWN = 8
"""Models of each state, and facts in which sides differ, that are shown unless all are asked for."""
_REASON = 110
_QUIET = (MemberState.YES, MemberState.MEASURED)
"""States that are counted, and named only where all models are asked for."""


def listing_lines(claims: Sequence[Claim]) -> Iterator[str]:
    """One line per claim: its name, its title, and what was published."""
    width = max((len(claim.name) for claim in claims), default=0)
    for claim in claims:
        yield f"{claim.name:<{width}}  {claim.title}  [{published_text(claim)}]"


def terminal_of(found: Answers, *, every: bool = False) -> str:
    """The claim, its question, and each answer; ``every`` names all models."""
    return document.terminal("results/claims/claim", **_data(found, every))


def markdown_of(found: Answers, *, every: bool = False) -> str:
    """The same as one Markdown document."""
    return document.markdown("results/claims/claim", **_data(found, every))


def json_of(found: Sequence[Answers]) -> str:
    """One object: ``schema``, ``version``, and each claim as it was asked, with its answers and notes."""
    claims = [{"exit_code": each.exit_code, **msgspec.to_builtins(each)} for each in found]
    plain = {"schema": SCHEMA, "version": VERSION, "claims": claims}
    return json.dumps(plain, indent=1, allow_nan=False) + "\n"


def _data(found: Answers, every: bool) -> dict[str, Any]:
    return {
        "found": found,
        "claim": found.claim,
        "rates": (found.claim.question.aggregation, found.claim.question.over)
        == (Aggregation.PASS_RATE, Over.PLANNED),
        "states": [each for each in MemberState if every or each not in _QUIET],
        "most": None if every else MODELS_SHOWN,
        "verdict": lambda answer: ours(answer.verdict.value.capitalize()),
        "words": sys.modules[__name__],
    }


def published_text(claim: Claim) -> str:
    """The published number with its N, as far as they were given."""
    published = claim.published
    number = "no number" if published.number is None else number_text(published.number, claim.question.unit)
    return number + (f" of {counted(published.models, 'model')}" if published.models else "")


def question_text(question: Question) -> str:
    """The question in one line."""
    what = question.measure
    if question.sides:
        base, head = question.sides
        what = f"{what} of head ({head}) over base ({base})"
    subject = {
        Aggregation.SHARE: "share of models with "
        + ("head/base " if question.sides else "")
        + f"{question.condition}",
        Aggregation.PASS_RATE: f"share of {question.over.value} models that pass",
        Aggregation.GEOMEAN: f"geometric mean of {what}",
        Aggregation.RATIO: f"geometric mean of {what}",
        Aggregation.MEAN: f"arithmetic mean of {what}",
        Aggregation.MEDIAN: f"median of {what}",
    }[question.aggregation]
    if question.aggregation is Aggregation.SHARE and question.sides:
        subject += f" ({question.sides[1]} over {question.sides[0]})"
    expect = "at least" if question.expect is Expect.AT_LEAST else "at most"
    return (
        f"{subject}: {expect} {number_text(question.threshold, question.unit)}?"
        f" ({question.confidence:.0%} interval, at least {question.minimum} models)"
    )


def counts_text(claim: Claim) -> str:
    """Which models are counted."""
    select = claim.select
    which = ", ".join(select.models) if select.models else f"tier {select.tier}"
    text = f"suites {', '.join(select.suites)}; {which}; {select.mode}, {select.dtype}"
    return f"{text}. {claim.counts}" if claim.counts else text


def number_text(value: float, unit: str) -> str:
    """One number of a claim: a share in per cent."""
    if unit == "ratio":
        return f"{value:.4g}x"
    return f"{100 * value:.4g} %" if unit == "share" else quantity(value, unit)


def estimate_text(answer: Answer | Part, unit: str) -> str:
    """An estimate with its interval and its N."""
    if answer.estimate is None:
        return "no number"
    if unit == "share":
        text = f"{100 * answer.estimate:.1f} %"
        if answer.low is not None and answer.high is not None:
            text += f" [{100 * answer.low:.1f} %, {100 * answer.high:.1f} %]"
    else:
        text = interval(answer.estimate, answer.low, answer.high, unit)
    return f"{text} over {counted(answer.n, 'model')}"


def where_text(where: Where) -> str:
    """The environments behind the numbers of one side."""
    if where.newest_at is None or where.oldest_at is None:
        return "no rows"
    days = dict.fromkeys(f"{utc(at):%Y-%m-%d}" for at in (where.oldest_at, where.newest_at))
    return "; ".join(
        part
        for part in (
            f"torch {', '.join(where.torch)}" if where.torch else "torch not recorded",
            " | ".join(where.machines) or "machine not recorded",
            f"environment {', '.join(where.environments[:4])}" if where.environments else "",
            f"{counted(where.runs, 'run')}, {' to '.join(days)}",
        )
        if part
    )


def workloads_text(answer: Answer) -> str:
    """The settings of what was computed."""
    work = answer.workloads
    parts = [work.mode, work.dtype, *(f"size {size} ({count})" for size, count in work.sizes)]
    if work.batches:
        low, high = work.batches[0], work.batches[-1]
        parts.append(f"batch {low}" if low == high else f"batch {low} to {high}")
    if work.parameters:
        least, most = (integer(each) for each in work.parameters)
        parts.append(f"{least} parameters" if least == most else f"{least} to {most} parameters")
    return ", ".join(parts)


def counts_line(answer: Answer) -> str:
    """Every model once, by its state."""
    parts = [f"{count} {name}" for name, count in answer.counts.items()]
    return f"{' + '.join(parts) or '0'} = {answer.planned} counted"


def value_text(member: Member, question: Question) -> str:
    """The number of one model, or why it has none, in one line."""
    if member.state not in COUNTED or member.value is None:
        return shortened(" ".join(visible(member.reason).split()), _REASON)
    unit = "ratio" if question.sides else MEASURES[question.measure].unit
    return interval(member.value, member.low, member.high, unit)
