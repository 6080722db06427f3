"""A claim and its answers as Markdown; nothing in a store's text acts in it."""

from __future__ import annotations

from collections.abc import Iterator

from torchgauge.results.claims.answer import Answer, Answers
from torchgauge.results.claims.claim import Claim
from torchgauge.results.claims.claim_text import (
    counts_line,
    counts_text,
    estimate_text,
    published_text,
    question_text,
    reason_text,
    value_text,
    where_text,
    workloads_text,
)
from torchgauge.results.claims.member import COUNTED, Standing
from torchgauge.results.markdown_text import code, fenced, table

MODELS_SHOWN = 200
"""Rows of models in one answer."""


def render(found: Answers, *, every: bool = False) -> str:
    """The whole document; ``every`` has a row for models that fulfil the condition too."""
    return "\n".join(_lines(found, every=every)) + "\n"


def _lines(found: Answers, *, every: bool) -> Iterator[str]:
    claim = found.claim
    yield f"# Claim: {code(claim.title)}"
    yield ""
    yield f"- said: {code(claim.statement, 600)}"
    yield f"- by: {code(claim.published.by)}, {claim.published.date}, <{claim.published.link}>"
    yield f"- published: {code(published_text(claim))}"
    if claim.published.settings:
        yield f"- their settings: {code(claim.published.settings, 400)}"
    yield f"- question: {code(question_text(claim.question), 400)}"
    yield f"- counts: {code(counts_text(claim), 600)}"
    for answer in found.answers:
        yield ""
        yield from _answer(answer, claim, every=every)
    for note in found.notes:
        yield f"- note: {code(note, 400)}"


def _answer(answer: Answer, claim: Claim, *, every: bool) -> Iterator[str]:
    place = ", ".join(part for part in (answer.device or "any device", answer.configuration) if part)
    yield f"## {answer.verdict.value.capitalize()} on {code(place)}"
    yield ""
    published = code(published_text(claim))
    why = answer.why[:1].upper() + answer.why[1:]
    yield f"{code(estimate_text(answer, answer.unit))}; published {published}. {why}."
    yield ""
    yield f"- models: {code(counts_line(answer), 400)}"
    yield f"- settings: {code(workloads_text(answer), 400)}"
    names = ("measured",) if len(answer.where) == 1 else ("base", "head")
    for name, where in zip(names, answer.where, strict=True):
        yield f"- {name}: {code(where_text(where), 600)}"
    if answer.common is not None:
        yield f"- over the models that every answer counts: {code(estimate_text(answer.common, answer.unit))}"
    yield from (f"- note: {code(note, 400)}" for note in answer.notes)
    if answer.suites:
        yield ""
        yield from table(
            ["suite", "counted", "answer"],
            [
                [code(part.suite), str(part.planned), code(estimate_text(part, answer.unit))]
                for part in answer.suites
            ],
        )
    if answer.differs:
        rows = [[code(name), code(old), code(new)] for name, old, new in answer.differs]
        yield from ["", *table(["fact", "base", "head"], rows)]
    yield from _models(answer, claim, every=every)
    for command in answer.commands:
        yield from ["", "To measure what is missing:", "", fenced(command)]


def _models(answer: Answer, claim: Claim, *, every: bool) -> Iterator[str]:
    quiet = () if every else (Standing.YES, Standing.MEASURED)
    members = [each for each in answer.members if each.standing not in quiet]
    members.sort(key=lambda each: (list(Standing).index(each.standing), each.name))
    rows = [
        [
            code(each.name),
            each.standing.value,
            code(value_text(each, claim.question) if each.standing in COUNTED else reason_text(each)),
        ]
        for each in members[:MODELS_SHOWN]
    ]
    if rows:
        yield from ["", *table(["model", "standing", "number or reason"], rows)]
    if len(members) > len(rows):
        yield from ["", f"and {len(members) - len(rows)} more models"]
