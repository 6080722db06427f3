"""How a status looks: its short code, its colour class and what it means, one table for every page.

A code is always written out, so that colour only repeats what the text says. Statuses that ask for the same
reaction share a colour; ``static/style.css`` has one rule per class.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from torchgauge.records import ATTEMPTED, Status, counts_as_pass


@dataclass(frozen=True)
class Look:
    """How one status is shown; ``letter`` stands for it in histories and is the class of its cells."""

    status: Status
    letter: str
    code: str
    css: str
    meaning: str

    @property
    def attempted(self) -> bool:
        """Whether the status counts as an attempt."""
        return self.status in ATTEMPTED


LOOKS: dict[Status, Look] = {
    look.status: look
    for look in (
        Look(Status.PASS, "p", "pass", "pass", "ran, and the numbers are right"),
        Look(Status.FAIL_ACCURACY, "a", "acc", "acc", "ran, but the numbers are wrong"),
        Look(Status.ERROR, "e", "err", "err", "raised an exception"),
        Look(Status.CRASH, "c", "crash", "err", "the process died"),
        Look(Status.OOM, "o", "OOM", "limit", "ran out of memory, on the device or at the host's limit"),
        Look(Status.TIMEOUT, "t", "T/O", "limit", "exceeded the deadline of a phase"),
        Look(Status.UNSUPPORTED, "u", "n/a", "none", "the device or a library says that it cannot"),
        Look(
            Status.SKIPPED,
            "s",
            "skip",
            "none",
            "skipped by a declaration, or for a missing or conflicting package, missing data or network",
        ),
        Look(Status.INFRA, "i", "infra", "infra", "the environment failed: not a fault of the model"),
        Look(Status.NOT_RUN, "n", "not run", "notrun", "planned and never reached"),
    )
}
"""All ten statuses, in the order of bars, counts and legends."""

PARTIAL = Look(
    Status.PASS,
    "q",
    "partial",
    "part",
    "ran, and does not count as a pass: by another path, as another model, or compared with nothing",
)
"""A pass that :func:`counts_as_pass` leaves out, in bars, chips, cells and counts; its status is ``pass``."""


def look_of(status: Status, marks: Collection[str]) -> Look:
    """How a case is shown that ended in ``status`` with ``marks``."""
    return PARTIAL if status is Status.PASS and not counts_as_pass(status, marks) else LOOKS[status]


NOTHING_PLANNED = "."
"""The letter of a snapshot, or a cell, for which nobody planned the case."""

SAYS_NOTHING = frozenset({Status.INFRA, Status.NOT_RUN})
"""The statuses behind which the last known result is looked for."""

MARKS: dict[str, str] = {
    "new": "failed at its newest result, and did better at the one before",
    "unexpected": "differs from the data file's expectation for this device (a pass without an entry)",
    "expected": "not a pass, as the data file expects, with a reason",
    "other_cause": "has the expected status, but not the expected cause",
    "degraded": "ran, but not by the requested path (a silent fallback, a recompile limit): not a pass",
    "other_model": "built with another number of parameters than its suite declares for size full",
    "unchecked": "compared with no reference: not a pass, and its times count nowhere",
    "unsteady": "its step times are in doubt: a pass, whose times enter no mean, trend or comparison",
    "faster_than_peak": "its steps exceed the device's peak rate: a pass, whose times count nowhere",
    "leaks": "memory grows with each step: a pass",
    "ties": "integers, booleans or a shape differ in values that rounding decides: a pass",
    "flaky": "ended differently when it was repeated",
    "contributed": "submitted by a contributor, from a machine that is not of the store's owners",
    "imported": "read from a file that another tool wrote: machine and versions are those that it names",
    "stale": "old, or standing in for a newer attempt that was never reached or lost to the environment",
    "retired": "planned no longer: its model was renamed or dropped, and no count has it",
    "superseded": "replaced by a later result of the same run",
}
"""Marks beside a status, counted apart from the ten, with what they mean."""
