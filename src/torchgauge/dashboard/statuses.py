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
        Look(Status.TIMEOUT, "t", "T/O", "limit", "a phase timed out"),
        Look(Status.UNSUPPORTED, "u", "n/a", "none", "not supported by the device or a library"),
        Look(
            Status.SKIPPED,
            "s",
            "skip",
            "none",
            "skipped: declared in the data file, or a package, data or the network is missing",
        ),
        Look(Status.INFRA, "i", "infra", "infra", "the environment failed: not the fault of the model"),
        Look(Status.NOT_RUN, "n", "not run", "notrun", "planned, but not run"),
    )
}
"""All ten statuses, in the order of bars, counts and legends."""

PARTIAL = Look(
    Status.PASS,
    "q",
    "partial",
    "part",
    "ran, but does not count as passed: another path, another model, or no reference",
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
    "new": "passed in the previous run, failed in the newest",
    "unexpected": "differs from the expectation in the data file (without an entry: pass)",
    "expected": "expected failure (listed in the data file)",
    "other_cause": "expected status, but another cause than expected",
    "degraded": "ran by another path than requested (silent fallback, recompile limit): not a pass",
    "other_model": "number of parameters differs from the declaration of the suite",
    "unchecked": "not compared with a reference: not a pass, and its times are excluded everywhere",
    "unsteady": "unstable step times: a pass, but its times are excluded from means, trends and comparisons",
    "faster_than_peak": "faster than the peak of the device: a pass, but its times are excluded everywhere",
    "leaks": "memory grows with each step: a pass",
    "ties": "integers, booleans or a shape differ because of rounding: a pass",
    "flaky": "different statuses in repeated attempts",
    "contributed": "submitted by a contributor, from a machine of another owner",
    "imported": "imported from the file of another tool, which names machine and versions",
    "stale": "old, or shown in place of a newer attempt that was not run or failed in the environment",
    "retired": "no longer planned: the model was renamed or dropped, and is excluded from counts",
    "superseded": "replaced by a later result of the same run",
}
"""Marks beside a status, counted apart from the ten, with what they mean."""
