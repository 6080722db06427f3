"""What a fresh process found of a case that passed, and how it joins the outcome of the first one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from torchgauge.records import Measurement, Modifier, Outcome, Scalar, absent, from_plain


@dataclass(frozen=True)
class FoundAfresh:
    """Measurements, facts, and by what the fresh process says that the case is degraded."""

    measurements: Sequence[Measurement] = ()
    degraded: Sequence[str] = ()
    facts: Mapping[str, Scalar] = field(default_factory=dict)

    @classmethod
    def of(cls, known: Sequence[Measurement], event: Mapping[str, Any]) -> FoundAfresh:
        """What the ``event`` of a fresh process says, beside what is ``known`` already."""
        measured = [from_plain(Measurement, each) for each in event["measurements"]]
        return cls((*known, *measured), event.get("degraded", ()), event.get("facts", {}))

    @classmethod
    def nothing(cls, known: Sequence[Measurement], wanted: Sequence[str], why: str) -> FoundAfresh:
        """That ``wanted`` is absent, and ``why``."""
        return cls((*known, *(absent(name, why) for name in wanted)))

    def added_to(self, outcome: Outcome) -> Outcome:
        """``outcome`` with what was found; a fact of the first process stays, and what it has measured."""
        known = {each.metric for each in outcome.measurements}
        facts = {**self.facts, **dict(outcome.facts)}
        said = str(facts.get(Modifier.DEGRADED.value, ""))
        more = [text for text in self.degraded if text not in said]
        modifiers = outcome.modifiers
        if more:
            facts[Modifier.DEGRADED.value] = "; ".join([said, *more] if said else more)
            modifiers = tuple(dict.fromkeys((*modifiers, Modifier.DEGRADED)))
        return replace(
            outcome,
            measurements=(
                *outcome.measurements,
                *(each for each in self.measurements if each.samples or each.metric not in known),
            ),
            modifiers=modifiers,
            facts=tuple(sorted(facts.items())),
        )
