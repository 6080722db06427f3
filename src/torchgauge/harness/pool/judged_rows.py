"""Rows of an attempt at a group: whose fault they may be, and which cases are attempted again for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torchgauge.records import Cause, Group, Result, Status

BROKEN = frozenset({Cause.KILLED, Cause.LOST_WORKER, Cause.NO_DEVICE})
"""Causes of ``infra`` after which another try may do: a full disk stays full."""


@dataclass(frozen=True)
class Done:
    """One attempt at a group: its rows, and whether another runner had work while it ran.

    ``earlier`` are rows of cases of which somebody wants further attempts.
    """

    group: Group
    rows: list[Result]
    beside: bool
    earlier: tuple[Result, ...] = ()


def is_broken(row: Result) -> bool:
    """Whether the environment broke under a case, in a way that may pass."""
    return row.status is Status.INFRA and row.cause in BROKEN


def part_of(group: Group, rows: Sequence[Result]) -> Group:
    """``group`` with the cases of ``rows`` alone."""
    return group.only({row.case.key for row in rows})


def suspicious(rows: Sequence[Result]) -> bool:
    """Whether a row says something that neighbours may have brought about."""
    return any(row.status is Status.OOM or row.cause is Cause.KILLED for row in rows)


def why_suspicious(rows: Sequence[Result]) -> str:
    """What makes ``rows`` suspicious, in words."""
    return next(row.reason for row in rows if suspicious([row])) or "a case ran out of memory"


def named(group: Group) -> str:
    """``group`` as notes call it."""
    return f"{group.workload.suite}/{group.workload.model} ({group.workload.mode})"
