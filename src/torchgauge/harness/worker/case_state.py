"""What a worker knows of one case so far, and what of it a row says."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from torchgauge.harness.backends.prepared import Prepared
from torchgauge.records import (
    BY_FACT,
    Accuracy,
    Measurement,
    Modifier,
    Outcome,
    OutputError,
    Phase,
    PlannedCase,
    Scalar,
    Status,
)


def _not_prepared() -> None:
    """What stands for the call of a case until its backend has made one."""
    raise AssertionError("this case was not prepared")


@dataclass
class CaseState:
    """The state of one case of the group so far; ``changed`` lists its changes to the whole process.

    ``grows`` is a sentence about memory that the steps seem to keep, or empty. ``ours`` are reasons for being
    degraded that checks with other inputs have caused. ``draws_as_eager`` is true if its code draws the
    random numbers of eager.
    """

    planned: PlannedCase
    index: int
    phase: Phase = Phase.START
    measurements: list[Measurement] = field(default_factory=list)
    facts: dict[str, Scalar] = field(default_factory=dict)
    degraded: list[str] = field(default_factory=list)
    accuracy: Accuracy | None = None
    ended: bool = False
    draws_as_eager: bool = False
    grows: str = ""
    changed: list[str] = field(default_factory=list)
    outputs: tuple[OutputError, ...] = ()
    ours: set[str] = field(default_factory=set)
    prepared: Prepared = field(default_factory=lambda: Prepared(_not_prepared))

    @property
    def key(self) -> str:
        """The case's key in events."""
        return self.planned.case.key

    @contextmanager
    def with_other_inputs(self) -> Iterator[None]:
        """Note by what the case is degraded inside: a program may compile anew for each new value."""
        before = {*self.prepared.degraded}
        try:
            yield
        finally:
            self.ours |= {*self.prepared.degraded} - before

    def told(self, outcome: Outcome) -> Outcome:
        """``outcome`` with what is known by now: also what the backend says, which may still change."""
        made = self.prepared
        degraded = [why for why in (*made.degraded, *self.degraded) if why not in self.ours]
        modifiers = [Modifier.DEGRADED] if degraded else []
        if outcome.status is Status.PASS:
            modifiers += [modifier for modifier in BY_FACT if modifier.value in self.facts]
        facts = {**self.facts, **made.evidence, **({"degraded": "; ".join(degraded)} if degraded else {})}
        return replace(
            outcome,
            measurements=(*self.measurements, *made.measurements),
            modifiers=tuple(modifiers),
            accuracy=self.accuracy,
            facts=tuple(sorted(facts.items())),
            outputs=self.outputs,
        )
