"""Nights that a device lost whole: its runner died, and no row of it says anything of any case."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from torchgauge.dashboard.latest_results import Entry, LatestResults
from torchgauge.results import units
from torchgauge.results.hostile_text import first_line


@dataclass(frozen=True)
class LostNight:
    """The newest attempt at ``cases`` cases of a device, on ``date``, was lost.

    ``known`` of them have an older result, which is what pages show; ``reason`` is the most frequent one.
    """

    device: str
    date: str
    cases: int
    known: int
    reason: str

    @property
    def sentence(self) -> str:
        """It in one line."""
        lost = "its one case has no result" if self.cases == 1 else f"none of {self.cases} cases has a result"
        shown = "What is shown is older." if self.known else "Nothing older is known."
        return f"{self.device} lost the night of {self.date}: {lost} ({self.reason}). {shown}"


def lost_nights(latest: LatestResults) -> tuple[LostNight, ...]:
    """What was lost and not measured since, by device and date."""
    found: dict[tuple[str, str], list[Entry]] = {}
    for entry in latest.entries.values():
        if entry.lost:
            date = units.day(entry.newest["run_created_at"].timestamp())
            found.setdefault((entry.column.device, date), []).append(entry)
    return tuple(
        LostNight(device, date, len(members), sum(each.stands_in for each in members), _reason(members))
        for (device, date), members in sorted(found.items())
    )


def _reason(members: Sequence[Entry]) -> str:
    rows = (each.newest for each in members)
    said = Counter(row["reason"] or row["error_message"] or row["cause"] or row["status"] for row in rows)
    return first_line(said.most_common(1)[0][0], 160)
