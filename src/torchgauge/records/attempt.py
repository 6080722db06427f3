"""One of several attempts at a case, and what several of them say together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from torchgauge.counted import counted
from torchgauge.records.status import INCOMPLETE, Cause, Phase, Status

MEASURED_ON = "measured_on"
"""The fact that names the device which measured a case in the place of its own."""


class Again(str, Enum):
    """Why a case was attempted once more: the closed list.

    ``infrastructure``: the environment broke. ``alone``: what ran beside it may have been to blame, so that
    the attempt says nothing. ``asked``: somebody wants several.
    """

    INFRASTRUCTURE = "infrastructure"
    ALONE = "alone"
    ASKED = "asked"


@dataclass(frozen=True)
class Attempt:
    """How one attempt at a case ended, and on which device; ``again`` says why it was not the last one.

    ``number`` counts from 1; ``started_at`` is in seconds since the epoch, UTC, ``duration_s`` in seconds.
    """

    number: int
    status: Status
    phase: Phase
    cause: Cause | None
    reason: str
    device: str
    started_at: float
    duration_s: float
    log: str
    again: Again | None = None

    @property
    def tells(self) -> bool:
        """Whether it says something of the case: it came to an end of its own, with nothing to blame."""
        return self.status not in INCOMPLETE and self.again is not Again.ALONE


def are_flaky(attempts: Sequence[Attempt]) -> bool:
    """Whether attempts at one case that tell something of it ended in different statuses."""
    return len({each.status for each in attempts if each.tells}) > 1


def say_flaky(attempts: Sequence[Attempt]) -> str:
    """``2 of 3 attempts pass: error, pass, pass``."""
    told = [each.status for each in attempts if each.tells]
    passed = sum(status is Status.PASS for status in told)
    return f"{passed} of {counted(len(told), 'attempt')} pass: {', '.join(status.value for status in told)}"
