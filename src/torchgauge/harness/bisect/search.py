"""The build at which a case became slower: a noisy binary search over an ordered list of builds.

Each test compares the first build with one further on, by the same comparison as everywhere. Its answer is
evidence and no proof, so the search keeps a probability for each place where the change may have come in,
and stops when one has enough of it: probabilistic bisection (Horstein, *Sequential transmission using
noiseless feedback*, 1963; Ben-Or and Hassidim, *The Bayesian learner is optimal for noisy binary search*,
2008). Both ends are compared first. The comparison is a parameter: this module starts no process.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from torchgauge.counted import counted
from torchgauge.harness.ab.reading import Answer, Reading

ENOUGH = 0.95
"""Probability of one build at which the search ends."""
ERROR = 0.02
"""Share of comparisons that mislead, whatever their interval says; the A/B rule is held to half of it."""
FURTHER_TESTS = 3
"""Tests beyond the binary logarithm of the number of builds."""
_SIGMAS = 3.92
"""Width of a 95 % interval in standard errors."""


class Ending(str, Enum):
    """How a search stands; the value of each end is what the report says first."""

    SEARCHING = "searching"
    FOUND = "found"
    NOT_REPRODUCED = "not_reproduced"
    INCOMPLETE = "incomplete"


@dataclass(frozen=True)
class Step:
    """One test of the search: the place of the build from 0, what was read, and what was known after it.

    ``suspect`` is the likeliest place of the change after this test, with its ``probability``.
    """

    build: int
    label: str
    reading: Reading
    suspect: int | None = None
    probability: float | None = None


@dataclass(frozen=True)
class Search:
    """A search: the labels of the builds in order, and every step so far. All else follows from these."""

    labels: tuple[str, ...]
    steps: tuple[Step, ...] = ()

    @property
    def limit(self) -> int:
        """How many tests it may take, the ends included; builds that cannot be tested do not count."""
        return math.ceil(math.log2(len(self.labels))) + FURTHER_TESTS

    @property
    def tests(self) -> int:
        """Tests that gave an answer."""
        return sum(step.reading.answer is not Answer.UNUSABLE for step in self.steps)

    @property
    def skipped(self) -> tuple[Step, ...]:
        """Builds that could not be built or did not run."""
        return tuple(step for step in self.steps if step.reading.answer is Answer.UNUSABLE)

    @property
    def ends(self) -> Step | None:
        """The comparison of the last build with the first; None before it was made."""
        last = len(self.labels) - 1
        return next((step for step in self.steps if step.build == last), None)

    def weights(self) -> list[float]:
        """Probability that the change came in with build i, for each i; the first build has none."""
        ends = self.ends
        count = len(self.labels)
        weights = [0.0] + [1.0 / (count - 1)] * (count - 1)
        if ends is None or ends.reading.answer is not Answer.CHANGED:
            return weights
        effect = _effect(ends.reading)
        for step in self.steps:
            if step is ends or step.reading.answer is Answer.UNUSABLE:
                continue
            changed = _probability(step.reading, effect)
            weights = [
                weight * (changed if place <= step.build else 1.0 - changed)
                for place, weight in enumerate(weights)
            ]
            total = sum(weights)
            weights = [weight / total for weight in weights]
        return weights

    def blocks(self) -> list[tuple[tuple[int, ...], float]]:
        """Places that no test can tell apart, as builds between them are unusable, with their probability."""
        unusable = {step.build for step in self.skipped}
        weights = self.weights()
        found: list[tuple[tuple[int, ...], float]] = []
        members: list[int] = []
        for place in range(1, len(self.labels)):
            members.append(place)
            if place not in unusable:
                found.append((tuple(members), sum(weights[each] for each in members)))
                members = []
        if members:
            found.append((tuple(members), sum(weights[each] for each in members)))
        return found

    def best(self) -> tuple[tuple[int, ...], float]:
        """The likeliest block of places, with its probability."""
        return max(self.blocks(), key=lambda block: block[1])

    @property
    def ending(self) -> Ending:
        """How the search stands."""
        ends = self.ends
        if ends is None:
            return Ending.SEARCHING
        if ends.reading.answer is Answer.SAME:
            return Ending.NOT_REPRODUCED
        if ends.reading.answer is not Answer.CHANGED:
            return Ending.INCOMPLETE
        places, probability = self.best()
        if probability >= ENOUGH:
            return Ending.FOUND if len(places) == 1 else Ending.INCOMPLETE
        return Ending.SEARCHING if self.tests < self.limit else Ending.INCOMPLETE

    def next(self) -> int | None:
        """The build that the next test compares with the first one; None at the end of the search."""
        if self.ending is not Ending.SEARCHING:
            return None
        if self.ends is None:
            return len(self.labels) - 1
        unusable = {step.build for step in self.skipped}
        weights = self.weights()
        below = [sum(weights[1 : place + 1]) for place in range(len(self.labels))]
        open_ = [place for place in range(1, len(self.labels) - 1) if place not in unusable]
        return min(open_, key=lambda place: (abs(below[place] - 0.5), place)) if open_ else None

    def with_reading(self, build: int, reading: Reading) -> Search:
        """The search after one more test."""
        step = Step(build, self.labels[build], reading)
        after = replace(self, steps=(*self.steps, step))
        ends = after.ends
        if ends is not None and ends.reading.answer is Answer.CHANGED:
            places, probability = after.best()
            step = replace(step, suspect=places[0], probability=probability)
        return replace(self, steps=(*self.steps, step))

    def explanation(self) -> str:
        """One sentence on how it stands."""
        first, last = self.labels[0], self.labels[-1]
        ends = self.ends
        if ends is None:
            return "nothing has been compared yet"
        if ends.reading.answer is Answer.SAME:
            return f"not reproduced: {last} does not differ from {first} ({ends.reading.text})"
        if ends.reading.answer is not Answer.CHANGED:
            return f"base and head could not be distinguished: {ends.reading.reason or ends.reading.text}"
        places, probability = self.best()
        names = [self.labels[place] for place in places]
        if self.ending is Ending.FOUND:
            before = self.labels[places[0] - 1]
            sure = f"probability {probability:.1%}"
            return f"{names[0]} is the first build that differs ({sure}); {before} does not"
        if probability >= ENOUGH:
            return f"the change is in one of {', '.join(names)}; only the last of these can be tested"
        where = f"{' or '.join(names)} is the likeliest, at {probability:.0%}"
        return f"{where}; {self.tests} of at most {self.limit} tests done"


def search(
    begun: Search, compare: Callable[[int], Reading], keep: Callable[[Search], None] = lambda _: None
) -> Search:
    """Go on with ``begun`` to its end; ``keep`` is called after each step and makes it resumable."""
    current = begun
    while (build := current.next()) is not None:
        current = current.with_reading(build, compare(build))
        keep(current)
    return current


def begin(labels: Sequence[str]) -> Search:
    """A search over ``labels``, oldest first; raises ``ValueError`` for fewer than two or a repetition."""
    if len(labels) < 2 or len(set(labels)) != len(labels):
        raise ValueError(f"{counted(len(labels), 'build')}, {len(set(labels))} of them different")
    return Search(tuple(labels))


def _effect(reading: Reading) -> float | None:
    if reading.answer is not Answer.CHANGED or not reading.ratio or reading.ratio <= 0.0:
        return None
    return math.log(reading.ratio)


def _probability(reading: Reading, effect: float | None) -> float:
    """Probability, before anything else is known, that the build of ``reading`` has the change.

    The odds of the measured ratio under "all of the effect" and under "nothing of it", where its interval
    says how exact it is; never surer than the error that a comparison may have.
    """
    if (
        effect is None
        or reading.ratio is None
        or not reading.low
        or not reading.high
        or reading.high <= reading.low
    ):
        return {Answer.CHANGED: 1.0 - ERROR, Answer.SAME: ERROR}.get(reading.answer, 0.5)
    error = (math.log(reading.high) - math.log(reading.low)) / _SIGMAS
    measured = math.log(reading.ratio)
    odds = (measured**2 - (measured - effect) ** 2) / (2.0 * error**2)
    changed = 1.0 / (1.0 + math.exp(-max(-50.0, min(50.0, odds))))
    return min(1.0 - ERROR, max(ERROR, changed))
