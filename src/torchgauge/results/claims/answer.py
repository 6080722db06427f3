"""What a claim's question is answered with, one answer per device and configuration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from torchgauge.results.claims.claim import Claim, Expect, Question
from torchgauge.results.claims.member import Member, MemberState
from torchgauge.results.stats import Estimate


class Verdict(str, Enum):
    """What the store says of a claim."""

    SUPPORTED = "supported"
    REFUTED = "refuted"
    UNDECIDED = "undecided"
    NOT_MEASURED = "not measured"


@dataclass(frozen=True)
class Where:
    """What the numbers of an answer, or of one side of it, were measured with.

    ``facts`` are of the newest environment, oldest and newest in seconds since the epoch; None without rows.
    """

    device: str
    configuration: str
    torch: tuple[str, ...]
    systems: tuple[str, ...]
    machines: tuple[str, ...]
    environments: tuple[str, ...]
    runs: int
    oldest_at: float | None
    newest_at: float | None


@dataclass(frozen=True)
class Workloads:
    """What was computed: sizes with their number of models, batches, further shapes and weights."""

    mode: str
    dtype: str
    sizes: tuple[tuple[str, int], ...]
    batches: tuple[int, ...]
    extras: tuple[str, ...]
    parameters: tuple[int, int] | None


@dataclass(frozen=True)
class Part:
    """The same question over one suite: no verdict, since nobody claimed it."""

    suite: str
    planned: int
    estimate: float | None
    low: float | None
    high: float | None
    n: int


@dataclass(frozen=True)
class Answer:
    """The verdict of one device and configuration with all that it rests on.

    ``planned`` is the number of models that the claim counts; ``counts`` has each of them once, by its
    state. ``where`` has one entry, or base and head. ``common`` is the number over the models that all
    answers of one claim share, None where there is one answer only. ``commands`` measure what is missing.
    """

    claim: str
    device: str
    configuration: str
    verdict: Verdict
    why: str
    estimate: float | None
    low: float | None
    high: float | None
    n: int
    unit: str
    method: str
    confidence: float
    planned: int
    counts: Mapping[str, int]
    members: tuple[Member, ...]
    suites: tuple[Part, ...]
    where: tuple[Where, ...]
    workloads: Workloads
    differs: tuple[tuple[str, str, str], ...] = ()
    common: Part | None = None
    notes: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()


@dataclass(frozen=True)
class Answers:
    """A claim as it was asked, with its answers."""

    claim: Claim
    answers: tuple[Answer, ...]
    notes: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """1 where any answer refutes the claim, 3 where any leaves it open, else 0."""
        verdicts = {answer.verdict for answer in self.answers}
        if Verdict.REFUTED in verdicts:
            return 1
        return 0 if verdicts == {Verdict.SUPPORTED} else 3


def judge(found: Estimate, question: Question) -> tuple[Verdict, str]:
    """The verdict on ``found``, and why in a sentence.

    A claim is supported where the whole interval lies on its side of the threshold, and refuted where the
    whole interval lies on the other. On fewer models than the minimum nothing is decided.
    """
    if found.estimate is None:
        return Verdict.NOT_MEASURED, "no model has a measured value"
    verdict, why = _by_interval(found, question)
    if found.n < question.minimum:
        few = f"{found.n} of the {question.minimum} models that the claim requires"
        if verdict is Verdict.UNDECIDED:
            return verdict, f"{few}; {why}"
        return Verdict.UNDECIDED, f"{few}; these models alone would give the verdict {verdict.value}"
    return verdict, why


def _by_interval(found: Estimate, question: Question) -> tuple[Verdict, str]:
    if found.low is None or found.high is None:
        return Verdict.UNDECIDED, "an interval requires more than one model"
    above, asked = question.expect is Expect.AT_LEAST, question.expect.value.replace("_", " ")
    if (found.low >= question.threshold) if above else (found.high <= question.threshold):
        return Verdict.SUPPORTED, f"the whole interval is {asked} the threshold"
    if (found.high < question.threshold) if above else (found.low > question.threshold):
        return Verdict.REFUTED, f"the whole interval is {'below' if above else 'above'} the threshold"
    return Verdict.UNDECIDED, (
        "the interval contains the threshold: consistent with the claim, but not evidence for it"
    )


def states(members: tuple[Member, ...]) -> dict[str, int]:
    """How many of ``members`` have each state, those that none has left out."""
    found = {state.value: 0 for state in MemberState}
    for member in members:
        found[member.state.value] += 1
    return {name: count for name, count in found.items() if count}
