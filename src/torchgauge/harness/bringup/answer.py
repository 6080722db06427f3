"""Answers of a bringup: yes, no or unknown, each with its reason, and never yes by absence."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

from torchgauge.counted import counted
from torchgauge.harness.bringup.finding import Finding, Kind
from torchgauge.harness.bringup.part import Part, PartState
from torchgauge.harness.bringup.question import (
    CLOCKS,
    FALLBACKS,
    INFERENCE,
    QUESTIONS,
    SEVERAL,
    TRAINING,
    Question,
    question_of,
)
from torchgauge.harness.bringup.state import Asked, Bringup
from torchgauge.harness.planning.selection import chooser
from torchgauge.suites.conformance.catalogue import catalogue
from torchgauge.suites.conformance.suite import NAME as CONFORMANCE
from torchgauge.suites.suite import HOST

ON_HOST = {
    CLOCKS: "the device is the host, so there is one clock",
    FALLBACKS: "the device is the host itself",
}
"""What follows for the host where no row can show it."""


class Word(str, Enum):
    """What is answered."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Answer:
    """The answer to one question; ``command`` shows its evidence, or gets it."""

    question: Question
    word: Word
    reason: str
    command: str


def answers_of(state: Bringup, findings: Sequence[Finding], again: str) -> tuple[Answer, ...]:
    """The ten answers, and one more where there are two devices; ``again`` is the command itself."""
    asked = (*QUESTIONS, SEVERAL) if state.facts.count > 1 else QUESTIONS
    return tuple(_answer(each, state, findings, again) for each in asked)


def _answer(question: Question, state: Bringup, findings: Iterable[Finding], again: str) -> Answer:
    of_it = [each for each in findings if each.about == question.key and each.decides]
    bad = sorted(
        (each for each in of_it if each.kind in (Kind.DANGER, Kind.NEXT)),
        key=lambda each: each.kind is not Kind.DANGER,
    )
    good = [each for each in of_it if each.kind is Kind.WORKS]
    unsure = [each for each in of_it if each.kind is Kind.UNKNOWN]
    unfinished = [state.of(part) for part in question.parts if state.of(part).state is not PartState.DONE]
    if bad:
        more = f" (and {len(bad) - 1} more)" if len(bad) > 1 else ""
        return Answer(question, Word.NO, bad[0].text + more, bad[0].command)
    if unfinished:
        why = "; ".join(each.said for each in unfinished)
        so_far = f"no failure so far; {why}" if good else why
        asked_for = all(each.state is not PartState.NOT_ASKED for each in unfinished)
        return Answer(question, Word.UNKNOWN, so_far, again if asked_for else _whole(state.asked))
    if unsure:
        return Answer(question, Word.UNKNOWN, unsure[0].text, unsure[0].command)
    shown = {each.part for each in good}
    silent = [part.value for part in question.parts if part.value not in shown]
    if silent:
        told = ON_HOST.get(question.key) if state.facts.torch_type == HOST else None
        if told:
            return Answer(question, Word.YES, told, again)
        why = f"no result of {' and '.join(silent)} answers this question"
        return Answer(question, Word.UNKNOWN, why, _whole(state.asked) if state.asked.checks else again)
    if narrowed := _narrowed(question, state.asked):
        return Answer(question, Word.UNKNOWN, f"no failure so far; {narrowed}", _whole(state.asked))
    return Answer(question, Word.YES, "; ".join(each.text for each in good), good[0].command)


def _whole(asked: Asked) -> str:
    """The command that asks everything; it needs a folder of its own."""
    whole = Asked(asked.device, asked.python, threads=asked.threads)
    return shlex.join(("torchgauge", "bringup", *whole.words, "--out", "NEW-FOLDER"))


def _narrowed(question: Question, asked: Asked) -> str:
    """Which evidence of ``question`` the command leaves out; empty where it leaves out none."""
    if asked.checks and Part.CHECK in question.parts:
        chosen = chooser(asked.checks)
        every = [name for name in catalogue() if question_of(name) == question.key]
        if left := [name for name in every if not chosen(f"{CONFORMANCE}/{name}")]:
            return f"--checks leaves out {len(left)} of the {counted(len(every), 'check')} of this question"
    if asked.ops and Part.OPS in question.parts:
        return "--ops selects only some of the operators"
    if asked.models and question.key in (INFERENCE, TRAINING, FALLBACKS):
        return "--models selects only some of the models"
    return ""
