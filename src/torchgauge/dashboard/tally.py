"""Counts of the ten statuses that must sum to the plan, and the bar that shows them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from torchgauge.dashboard.dashboard_error import DashboardError
from torchgauge.dashboard.latest_results import Column, Entry, LatestResults
from torchgauge.dashboard.plain_rows import Row
from torchgauge.dashboard.statuses import LOOKS, MARKS, PARTIAL, Look
from torchgauge.records import ATTEMPTED, INCOMPLETE, Status, counts_as_pass


@dataclass(frozen=True)
class Segment:
    """One part of a stacked bar; ``x`` and ``width`` are in thousandths of the bar."""

    look: Look
    count: int
    x: str
    width: str


@dataclass(frozen=True)
class Tally:
    """How many cases ended how; ``passed`` leaves out what :func:`counts_as_pass` does."""

    counts: Mapping[Status, int]
    passed: int
    marks: Mapping[str, int]

    @property
    def planned(self) -> int:
        """All cases."""
        return sum(self.counts.values())

    @property
    def attempted(self) -> int:
        """Cases whose end says something of the model."""
        return sum(self.counts[status] for status in ATTEMPTED)

    @property
    def incomplete(self) -> int:
        """Cases that were lost or never reached."""
        return sum(self.counts[status] for status in INCOMPLETE)

    @property
    def present(self) -> list[tuple[Look, int]]:
        """The statuses that occur, with their counts; passes that count as none are apart from the others."""
        found = {LOOKS[Status.PASS]: self.passed, PARTIAL: self.counts[Status.PASS] - self.passed}
        found |= {look: self.counts[status] for status, look in LOOKS.items() if status is not Status.PASS}
        return [(look, count) for look, count in found.items() if count]

    @property
    def sentence(self) -> str:
        """The counts in words, for those who do not see the bar."""
        return ", ".join(f"{count} {look.code}" for look, count in self.present) or "no case"

    @property
    def segments(self) -> list[Segment]:
        """The stacked bar."""
        found, x = [], 0.0
        for look, count in self.present:
            width = 1000.0 * count / self.planned
            found.append(Segment(look, count, f"{x:.1f}", f"{width:.1f}"))
            x += width
        return found


def tally(entries: Iterable[Entry]) -> Tally:
    """The counts over ``entries``."""
    statuses: Counter[Status] = Counter()
    marks: Counter[str] = Counter()
    passed = 0
    for entry in entries:
        statuses[entry.status] += 1
        marks.update(entry.marks)
        passed += entry.fully_passed
    return Tally({status: statuses[status] for status in LOOKS}, passed, _in_order(marks))


def tally_of_rows(rows: Collection[Row]) -> Tally:
    """The counts over ``rows`` as they ended, whatever stands for their cases since; without marks."""
    statuses = [Status(row["status"]) for row in rows]
    passed = sum(counts_as_pass(row["status"], row["modifiers"] or ()) for row in rows)
    return Tally({status: statuses.count(status) for status in LOOKS}, passed, {})


def _in_order(marks: Counter[str]) -> dict[str, int]:
    return {mark: marks[mark] for mark in [*MARKS, *sorted(marks.keys() - MARKS.keys())] if marks[mark]}


def tally_by_column(latest: LatestResults) -> dict[Column, Tally]:
    """The counts of every column of ``latest``, in order."""
    members: dict[Column, list[Entry]] = {column: [] for column in latest.columns}
    for entry in latest.entries.values():
        members[entry.column].append(entry)
    return {column: tally(entries) for column, entries in members.items()}


def check_latest(latest: LatestResults) -> None:
    """Raise :class:`DashboardError` where the latest statuses do not sum to the cases in the store."""
    counted = sum(tally(latest.of_device(device)).planned for device in latest.devices)
    if counted + latest.superseded + len(latest.retired) != latest.planned:
        raise DashboardError(
            f"{counted} statuses were counted for {len(latest.entries)} planned cases",
            hint="report this: the pages would hide a case",
        )
