"""Cases of one night that ended alike and not as they should: one finding for each cause.

What fails alike is one cluster: 200 models without one operator are one finding.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from torchgauge.records import INCOMPLETE, Result, Status
from torchgauge.records.codec import digest


@dataclass(frozen=True)
class FailedCase:
    """One case that ended other than expected."""

    case_id: str
    case_key: str
    device: str
    run_id: str
    reason: str
    reproduce: str


@dataclass(frozen=True)
class FailureCluster:
    """Cases that end alike: one fingerprint, or one status of one model where there is none.

    ``ended`` is how the cases ended: a status, a status with `` of another cause``, a modifier, or
    ``not planned``.
    """

    key: str
    ended: str
    expected: Status
    title: str
    missing_op: str
    fingerprint: str
    cases: tuple[FailedCase, ...]

    @property
    def members(self) -> tuple[str, ...]:
        """Keys of the cases."""
        return tuple(each.case_key for each in self.cases)


def clusters(rows: Iterable[Result]) -> tuple[FailureCluster, ...]:
    """The unexpected ones of ``rows`` that were attempted, in clusters, the largest first."""
    found: dict[str, list[Result]] = {}
    for row in rows:
        if row.unexpected and row.status not in INCOMPLETE:
            found.setdefault(_key(row), []).append(row)
    return largest_first(_cluster(key, members) for key, members in found.items())


def largest_first(made: Iterable[FailureCluster]) -> tuple[FailureCluster, ...]:
    """``made`` in the order in which they are shown."""
    return tuple(sorted(made, key=lambda each: (-len(each.cases), each.key)))


def failed_case(row: Result, reason: str = "") -> FailedCase:
    """``row`` as a member of a cluster; ``reason`` where the row itself has none."""
    told = row.reason or (row.failure.message if row.failure else "") or reason
    return FailedCase(row.case_id, row.case.key, str(row.case.device), row.run_id, told, row.reproduce)


def _key(row: Result) -> str:
    fingerprint = row.failure.fingerprint if row.failure else ""
    model = (row.case.workload.suite, row.case.workload.model)
    return digest([row.status.value, fingerprint or list(model)])


def _cluster(key: str, rows: Sequence[Result]) -> FailureCluster:
    first = rows[0]
    failure = first.failure
    expected = first.expected or Status.PASS
    if failure is not None:
        title = f"{failure.type}: {failure.message}" if failure.type else failure.message
    else:
        title = first.reason or f"{first.status.value} where {expected.value} is expected"
    return FailureCluster(
        key=key,
        ended=first.status.value + (" of another cause" if first.other_cause else ""),
        expected=expected,
        title=title,
        missing_op=failure.missing_op if failure else "",
        fingerprint=failure.fingerprint if failure else "",
        cases=tuple(failed_case(row) for row in sorted(rows, key=lambda each: each.case_id)),
    )
