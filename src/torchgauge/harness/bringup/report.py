"""The report of a bringup: what works, what to write next and what is dangerous, from state and store."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torchgauge
from torchgauge.clock import SYSTEM_CLOCK, utc
from torchgauge.counted import counted
from torchgauge.devices.discover import Presence
from torchgauge.errors import TorchgaugeError
from torchgauge.harness.bringup.answer import Answer, Word, answers_of
from torchgauge.harness.bringup.evidence import findings_of, plain
from torchgauge.harness.bringup.finding import Finding, Kind
from torchgauge.harness.bringup.part import ENDED, Part, PartRecord
from torchgauge.harness.bringup.question import HERE, INFERENCE, TRAINING
from torchgauge.harness.bringup.state import STORE, Bringup
from torchgauge.records import Result
from torchgauge.results.blockers.evidence import evidence_of
from torchgauge.results.blockers.ranking import Question, RankedStep, blockers
from torchgauge.results.lookup import results_of
from torchgauge.results.scorecard.gathering import scorecards
from torchgauge.results.store import Store
from torchgauge.suites.census.data import load

SHOWN = 12
"""Lines of each list; the store has the others, and one page has room for these."""
STEPS = 5
"""Of them, operators to write by the models that they unblock."""
FIRST = 10**6
"""The count of a step that stands before everything that no step was made of."""
SIMULATED = "(simulated)"
"""How the model of a device ends that is no hardware."""
RANKED_DTYPE = "float32"


@dataclass(frozen=True)
class Listed:
    """One list of the report: its heading, its first findings, how many more there are, and where."""

    title: str
    findings: tuple[Finding, ...]
    more: int
    command: str


@dataclass(frozen=True)
class Report:
    """Everything on the page; ``at`` is in seconds since the epoch (UTC), ``again`` the command itself.

    ``verified`` is the sentence for the device's page where the hardware was seen to work, else why not.
    """

    state: Bringup
    at: float
    version: str
    answers: tuple[Answer, ...]
    lists: tuple[Listed, ...]
    scorecard: str
    again: str
    verified: str
    verified_yaml: str = ""

    @property
    def left(self) -> tuple[PartRecord, ...]:
        """The parts that are not done."""
        return tuple(each for each in self.state.parts if each.state not in ENDED)

    def count(self, word: str) -> int:
        """How many answers are ``word``."""
        return sum(each.word.value == word for each in self.answers)

    @property
    def exit_code(self) -> int:
        """1 where something was found, 3 where the device is not here or a question has no answer, else 0."""
        absent = self.state.facts.presence == Presence.ABSENT.value
        danger = any(each.title == TITLES[Kind.DANGER] and each.findings for each in self.lists)
        if not absent and (danger or self.count("no")):
            return 1
        return 3 if absent or self.count("unknown") else 0


TITLES = {
    Kind.WORKS: "What works",
    Kind.NEXT: "To implement next",
    Kind.DANGER: "What is dangerous",
    Kind.UNKNOWN: "Unknown",
}
ORDER = (Kind.DANGER, Kind.NEXT, Kind.WORKS, Kind.UNKNOWN)


def report_of(folder: Path, state: Bringup, now: float | None = None) -> Report:
    """The report on what ``folder`` holds."""
    store = Store.open(folder / STORE, create=True)
    rows = _rows(store, state)
    device, where = state.asked.device, shlex.quote(str(folder / STORE))
    own = [replace(each, part=record.part.value) for record in state.parts for each in record.findings]
    found = [*own, *findings_of(rows)]
    again = shlex.join(("torchgauge", "bringup", *state.asked.words, "--out", str(folder)))
    answers = answers_of(state, found, again)
    shown = {kind: [each for each in found if each.kind is kind] for kind in Kind}
    shown[Kind.NEXT] = [*_steps(store, device, where), *shown[Kind.NEXT]]
    for kind in (Kind.NEXT, Kind.DANGER, Kind.UNKNOWN):
        shown[kind].sort(
            key=lambda each: (not (each.decides and each.about) and each.count < FIRST, -each.count)
        )
    at = SYSTEM_CLOCK.now() if now is None else now
    verified, entry = _verified(state, answers, found, at)
    return Report(
        state,
        at,
        torchgauge.__version__,
        answers,
        tuple(_listed(kind, shown[kind], where) for kind in ORDER),
        _scorecard(str(store.path), device),
        again,
        verified,
        entry,
    )


def _rows(store: Store, state: Bringup) -> list[Result]:
    """The rows of all parts; those of doctor are its findings already."""
    runs = [each.run_id for each in state.parts if each.run_id and each.part is not Part.DOCTOR]
    known = set(store.run_ids())
    return [row for run in runs if run in known for row in results_of(store, run)]


def _listed(kind: Kind, found: Sequence[Finding], where: str) -> Listed:
    commands = {
        Kind.NEXT: f"torchgauge results query status=unsupported --store {where}",
        Kind.DANGER: f"torchgauge results triage --store {where}",
        Kind.WORKS: f"torchgauge results list --store {where}",
        Kind.UNKNOWN: f"torchgauge results query status=not_run --store {where}",
    }
    return Listed(TITLES[kind], tuple(found[:SHOWN]), len(found[SHOWN:]), commands[kind])


def _steps(store: Store, device: str, where: str) -> list[Finding]:
    """Operators to implement or correct, by the models that they unblock."""
    try:
        evidence = evidence_of(store, device)
        ranking = blockers(Question(evidence, load(None), "eager", ()), RANKED_DTYPE)
    except TorchgaugeError:
        return []  # nothing is published yet
    command = f"torchgauge ops blockers --device {device} --store {where}"
    return [_step(each, command) for each in ranking.steps[:STEPS]]


def _step(step: RankedStep, command: str) -> Finding:
    gained = step.unblocks or step.fixes or step.perhaps
    models = list(dict.fromkeys(name.partition(":")[0] for name in gained))
    verb = "unblocks" if step.unblocks else "puts right" if step.fixes else "perhaps helps"
    told = f"{', '.join(step.operators)} {verb} {counted(len(models), 'model')}"
    return Finding(Kind.NEXT, "", plain(told), plain(", ".join(models[:6])), command, count=FIRST)


def _scorecard(store: str, device: str) -> str:
    """The points of PyTorch's quality levels as far as rows show them."""
    try:
        card = scorecards((store,), (device,)).cards[0].card
    except TorchgaugeError:
        return "none yet, because no result counts"
    return f"{card.lowest} to {card.highest} of {counted(card.file.total, 'point')}"


def _verified(
    state: Bringup, answers: Sequence[Answer], found: Sequence[Finding], at: float
) -> tuple[str, str]:
    """The sentence of the device's page and its entry in the data file; or why there is none."""
    models = [each for each in found if each.kind is Kind.WORKS and each.subject.startswith("models")]
    if not any(each.about in (INFERENCE, TRAINING) for each in models):
        return "none yet: no model passed on this device", ""
    if next(each for each in answers if each.question.key == HERE).word is not Word.YES:
        return "none yet: question 1 is not answered with yes", ""
    if SIMULATED in state.facts.model:
        return "none: the device is simulated", ""
    facts, day = state.facts, utc(at).date().isoformat()
    machine = f"{facts.count} x {facts.model or facts.label}"
    parts = [
        machine,
        f"driver {facts.driver}" if facts.driver else "",
        facts.provider,
        f"torch {facts.torch}",
    ]
    where = plain(", ".join(part for part in parts if part))
    entry = f'  {state.asked.device}:\n    date: "{day}"\n    machine: {where}\n'
    return f"Verified on hardware: {day}, {where}.", entry
