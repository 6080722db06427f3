"""A claim and its answers for a terminal, and the list of claims."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from torchgauge.clock import utc
from torchgauge.results.claims.answer import Answer, Answers, Part, Where
from torchgauge.results.claims.claim import MEASURES, Aggregation, Claim, Expect, Over, Question
from torchgauge.results.claims.member import COUNTED, Member, Standing
from torchgauge.results.hostile_text import visible
from torchgauge.results.units import integer, interval, quantity, shortened

MODELS_SHOWN = 8
"""Models of each standing that are named unless all are asked for."""
_REASON = 110
_NAMED = (
    Standing.FAILED,
    Standing.REFUSED,
    Standing.NOT_COMPARABLE,
    Standing.UNCHECKED,
    Standing.UNSTEADY,
    Standing.NOT_MEASURED,
)
_CLEAR = (Standing.YES, Standing.NO, Standing.UNDECIDED, Standing.MEASURED)


def listing_lines(claims: Sequence[Claim]) -> Iterator[str]:
    """One line per claim: its name, its title, and what was published."""
    width = max((len(claim.name) for claim in claims), default=0)
    for claim in claims:
        yield visible(f"{claim.name:<{width}}  {claim.title}  [{published_text(claim)}]")


def answer_lines(found: Answers, *, every: bool = False) -> Iterator[str]:
    """The claim, its question, and each answer; ``every`` names all models."""
    for line in _lines(found, every=every):
        yield visible(line)


def _lines(found: Answers, *, every: bool) -> Iterator[str]:
    claim = found.claim
    yield f"{claim.name}: {claim.title}"
    yield f"  said       {claim.statement}"
    yield f"  by         {claim.published.by}, {claim.published.date}, {claim.published.link}"
    yield f"  published  {published_text(claim)}"
    if claim.published.settings:
        yield f"  theirs     {claim.published.settings}"
    yield f"  question   {question_text(claim.question)}"
    yield f"  counts     {counts_text(claim)}"
    for answer in found.answers:
        yield ""
        yield from _answer(answer, claim, every=every)
    for note in found.notes:
        yield f"note: {note}"


def published_text(claim: Claim) -> str:
    """The published number with its N, as far as they were given."""
    published = claim.published
    number = "no number" if published.number is None else number_text(published.number, claim.question.unit)
    return number + (f" of {published.models} models" if published.models else "")


def question_text(question: Question) -> str:
    """The question in one line."""
    what = question.measure
    if question.sides:
        base, head = question.sides
        what = f"{what} of head ({head}) over base ({base})"
    subject = {
        Aggregation.SHARE: f"share of models with {question.condition}"
        + (", the metric as head over base" if question.sides else ""),
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
    return f"{text} over {answer.n} models" if answer.n != 1 else f"{text} over 1 model"


def where_text(where: Where) -> str:
    """The environments behind the numbers of one side."""
    if where.newest_at is None or where.oldest_at is None:
        return "no rows"
    days = dict.fromkeys(f"{utc(at):%Y-%m-%d}" for at in (where.oldest_at, where.newest_at))
    runs = "1 run" if where.runs == 1 else f"{where.runs} runs"
    return "; ".join(
        part
        for part in (
            f"torch {', '.join(where.torch)}" if where.torch else "torch not recorded",
            " | ".join(where.machines) or "machine not recorded",
            f"environment {', '.join(where.environments[:4])}" if where.environments else "",
            f"{runs}, {' to '.join(days)}",
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
    """Every model once, by its standing."""
    parts = [f"{count} {name}" for name, count in answer.counts.items()]
    return f"{' + '.join(parts) or '0'} = {answer.planned} counted"


def reason_text(member: Member) -> str:
    """Why a model has no number, in one line."""
    return shortened(" ".join(visible(member.reason).split()), _REASON)


def value_text(member: Member, question: Question) -> str:
    """The number of one model."""
    if member.value is None:
        return member.reason
    unit = "ratio" if question.sides else MEASURES[question.measure].unit
    return interval(member.value, member.low, member.high, unit)


def _answer(answer: Answer, claim: Claim, *, every: bool) -> Iterator[str]:
    place = ", ".join(part for part in (answer.device or "any device", answer.configuration) if part)
    yield f"{answer.verdict.value.upper()}  {place}: {estimate_text(answer, answer.unit)}"
    yield f"  because    {answer.why}"
    yield f"  published  {published_text(claim)}"
    yield f"  models     {counts_line(answer)}"
    if claim.question.aggregation is Aggregation.PASS_RATE and claim.question.over is Over.PLANNED:
        yield "             what was not measured or refused counts as not passing"
    for part in answer.suites:
        yield f"  {part.suite:<10} {estimate_text(part, answer.unit)}, {part.planned} counted"
    if answer.common is not None:
        yield f"  common     {estimate_text(answer.common, answer.unit)}: those that every answer counts"
    yield f"  settings   {workloads_text(answer)}"
    names = ("measured",) if len(answer.where) == 1 else ("base", "head")
    for name, where in zip(names, answer.where, strict=True):
        yield f"  {name:<10} {where_text(where)}"
    for fact, old, new in answer.differs[: None if every else MODELS_SHOWN]:
        yield f"  differs    {fact}: {shortened(old, 60)} -> {shortened(new, 60)}"
    if len(answer.differs) > MODELS_SHOWN and not every:
        yield f"  differs    and in {len(answer.differs) - MODELS_SHOWN} more facts: --all shows them"
    yield from _models(answer, claim.question, every=every)
    for note in answer.notes:
        yield f"  note       {note}"
    for command in answer.commands:
        yield f"  to measure what is missing: {command}"


def _models(answer: Answer, question: Question, *, every: bool) -> Iterator[str]:
    shown = (*_CLEAR, *_NAMED) if every else (Standing.NO, Standing.UNDECIDED, *_NAMED)
    for standing in shown:
        members = [each for each in answer.members if each.standing is standing]
        if not members:
            continue
        yield f"  {standing.value} ({len(members)}):"
        limit = len(members) if every else MODELS_SHOWN
        for each in members[:limit]:
            text = value_text(each, question) if standing in COUNTED else reason_text(each)
            yield f"    {each.name}  {shortened(text, _REASON)}".rstrip()
        if len(members) > limit:
            yield f"    and {len(members) - limit} more: --all names them"
