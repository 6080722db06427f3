"""The operator matrix at the end of a run: how many passed by dtype, and failures by their cause."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from torchgauge.counted import counted
from torchgauge.records import Result, Status, digest
from torchgauge.results import units
from torchgauge.suites.ops.census_static import COMPOSITE

MOST_CAUSES = 15
"""Causes that a person is shown."""
FAILED = (
    Status.FAIL_ACCURACY,
    Status.ERROR,
    Status.OOM,
    Status.TIMEOUT,
    Status.CRASH,
    Status.UNSUPPORTED,
)
"""Statuses that say that an operator does not work on the device; a skip says nothing of it."""


@dataclass(frozen=True)
class Row:
    """One device, variant and dtype: counts by status, and cases that only the host's own dtype confirms.

    ``kernels`` counts by whose kernel ran, where that was watched.
    """

    device: str
    variant: str
    dtype: str
    counts: dict[str, int]
    beyond_wide: int
    kernels: dict[str, int]

    @property
    def planned(self) -> int:
        """All cases of the row."""
        return sum(self.counts.values())

    @property
    def passed(self) -> int:
        """Cases that passed."""
        return self.counts.get(Status.PASS.value, 0)


@dataclass(frozen=True)
class Cause:
    """Failures of one fingerprint on one device; ``cases`` are their ids, ``sample`` one reason in full."""

    fingerprint: str
    device: str
    status: str
    missing_op: str
    sample: str
    operators: tuple[str, ...]
    cases: tuple[str, ...]


def matrix(results: Iterable[Result]) -> list[Row]:
    """One row per device, variant and dtype, in the order in which they were met."""
    counts: dict[tuple[str, str, str], Counter[str]] = {}
    beyond: Counter[tuple[str, str, str]] = Counter()
    kernels: dict[tuple[str, str, str], Counter[str]] = {}
    for result in results:
        workload = result.case.workload
        key = (str(result.case.device), workload.mode, workload.dtype)
        counts.setdefault(key, Counter())[result.status.value] += 1
        facts = dict(result.facts)
        beyond[key] += bool(facts.get("beyond_wide"))
        if kind := facts.get("kernel"):
            kernels.setdefault(key, Counter())[str(kind)] += 1
    return [Row(*key, dict(found), beyond[key], dict(kernels.get(key, {}))) for key, found in counts.items()]


def causes(results: Iterable[Result]) -> list[Cause]:
    """Failures grouped by device and fingerprint, largest first."""
    groups: dict[tuple[str, str, str], list[Result]] = {}
    for result in results:
        if result.status in FAILED:
            key = (str(result.case.device), result.status.value, fingerprint(result))
            groups.setdefault(key, []).append(result)
    found = [
        Cause(
            fingerprint=print_,
            device=device,
            status=status,
            missing_op=next((r.failure.missing_op for r in members if r.failure), ""),
            sample=members[0].reason,
            operators=tuple(dict.fromkeys(r.case.workload.model for r in members)),
            cases=tuple(r.case_id for r in members),
        )
        for (device, status, print_), members in groups.items()
    ]
    return sorted(found, key=lambda cause: (-len(cause.cases), cause.fingerprint))


def fingerprint(result: Result) -> str:
    """What failures have in common: the exception's, else that of status and operator."""
    if result.failure is not None and result.failure.fingerprint:
        return result.failure.fingerprint
    cause = result.cause.value if result.cause is not None else ""
    return digest([result.status.value, cause, result.case.workload.model])


def matrix_lines(results: Sequence[Result]) -> list[str]:
    """The matrix and the largest causes as a person reads them."""
    rows = matrix(results)
    if not rows:
        return []
    width = max(len(row.dtype) for row in rows)
    lines = []
    for row in rows:
        others = ", ".join(f"{n} {name}" for name, n in row.counts.items() if name != Status.PASS.value)
        beyond = f"{row.beyond_wide} agree with the host in {row.dtype} only" if row.beyond_wide else ""
        composed = row.kernels.get(COMPOSITE, 0)
        ran = f"{composed} by PyTorch's composite kernel, without a device kernel" if composed else ""
        notes = "; ".join(filter(None, (others, beyond, ran)))
        lines.append(
            f"  {row.device}  {row.variant:<13} {row.dtype:<{width}}  {row.passed:>4}/{row.planned:<4} pass"
            + (f"  ({notes})" if notes else "")
        )
    found = causes(results)
    if found:
        total = sum(len(cause.cases) for cause in found)
        lines.append(f"{counted(total, 'failure')} of {counted(len(found), 'kind')}, largest first:")
    for cause in found[:MOST_CAUSES]:
        names = ", ".join(cause.operators[:6]) + (", ..." if len(cause.operators) > 6 else "")
        lacks = cause.missing_op and cause.status == Status.ERROR.value
        what = f"{cause.missing_op} is missing" if lacks else units.shortened(cause.sample, 140)
        lines.append(f"  {len(cause.cases):>4} x {cause.status} on {cause.device}: {what}  [{names}]")
    if len(found) > MOST_CAUSES:
        lines.append(f"  ... and {counted(len(found) - MOST_CAUSES, 'more kind')}")
    return lines
