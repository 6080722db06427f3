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


def told(nights: Sequence[LostNight]) -> str:
    """The lost ``nights`` of one device, in words that follow its name; the reason is that of the newest."""
    dates, newest = sorted(each.date for each in nights), max(nights, key=lambda each: each.date)
    when = f"the nightly run of {newest.date}"
    if len(dates) > 1:
        when = f"{len(dates)} nightly runs, from {dates[0]} to {newest.date}"
    cases = sum(each.cases for each in nights)
    lost = "the only case has no result" if cases == 1 else f"none of {cases} cases has a result"
    return f"lost {when}: {lost} ({newest.reason})"


def _reason(members: Sequence[Entry]) -> str:
    rows = (each.newest for each in members)
    said = Counter(row["reason"] or row["error_message"] or row["cause"] or row["status"] for row in rows)
    return first_line(said.most_common(1)[0][0], 160)
