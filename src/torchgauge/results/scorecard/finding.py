"""What a rule finds of an item: how many points rows show, or that they do not and what is missing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from torchgauge.results.scorecard.evidence import Says, Seen

SHOWN = 4
"""Case ids that stand for the rest of a finding."""


@dataclass(frozen=True)
class Finding:
    """``points`` are None where rows do not decide; then no more than ``at_most`` can come of them.

    ``because`` is one sentence, ``cases`` are rows that it rests on, the ones against it first, ``command``
    is what would measure what is missing.
    """

    points: int | None
    at_most: int
    because: str
    cases: tuple[str, ...] = ()
    command: str = ""


@dataclass(frozen=True)
class Count:
    """Rows by what they say."""

    yes: tuple[Seen, ...]
    no: tuple[Seen, ...]
    nothing: tuple[Seen, ...]
    excused: tuple[Seen, ...]

    @property
    def cases(self) -> tuple[str, ...]:
        """A few of them, those against it first."""
        ranked = (*self.no, *self.nothing, *self.yes)
        return tuple(f"{row.case_id} ({row.run_id})" for row in ranked[:SHOWN])


def counted(rows: Iterable[Seen]) -> Count:
    """``rows`` by what they say, in order of their ids."""
    found: dict[Says, list[Seen]] = {says: [] for says in Says}
    for row in sorted(rows, key=lambda row: row.case_id):
        found[row.says].append(row)
    return Count(*(tuple(found[says]) for says in (Says.YES, Says.NO, Says.NOTHING, Says.EXCUSED)))


def listed(names: Iterable[str]) -> str:
    """A few names, and how many more."""
    found = list(names)
    more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    return ", ".join(found[:SHOWN]) + more
