"""Rules that look at many runs and not at the newest row: builds, flaky cases, and outages."""

from __future__ import annotations

from itertools import pairwise

from torchgauge.clock import DAY_S
from torchgauge.counted import counted
from torchgauge.records import INCOMPLETE
from torchgauge.results.scorecard.evidence import Evidence, Moment
from torchgauge.results.scorecard.finding import Finding
from torchgauge.results.scorecard.scorecard_file import Item, Measured

_LOST = {status.value for status in INCOMPLETE}
_NIGHTS = "torchgauge ci init"
"""What sets up nightly runs, of which these rules ask."""


def builds(item: Item, rule: Measured, evidence: Evidence) -> Finding:
    """Cases passed with a nightly and with a release of torch, within so many days of the newest row."""
    recent = _within(evidence, rule.days or 1)
    kinds = {each.release.final for each in recent if each.counts and each.release is not None}
    missing = [word for final, word in ((True, "a release"), (False, "a nightly")) if final not in kinds]
    if missing:
        because = (
            f"no case passed with {' and with '.join(missing)} in the last {counted(rule.days or 1, 'day')}"
        )
        return Finding(None, item.points, because, (), _NIGHTS)
    return Finding(item.points, item.points, "cases passed with a nightly and with a release")


def flaky(item: Item, rule: Measured, evidence: Evidence) -> Finding:
    """The share of cases that ended differently in one environment, of those seen often enough."""
    found: dict[tuple[str, str], list[str]] = {}
    for each in _within(evidence, rule.days or 1):
        if each.status not in _LOST:
            found.setdefault((each.key, each.environment), []).append(each.status)
    often = {key: said for key, said in found.items() if len(said) >= (rule.minimum or 1)}
    if not often:
        because = (
            f"no case was measured {rule.minimum} times in one "
            f"environment in the last {counted(rule.days or 1, 'day')}"
        )
        return Finding(None, item.points, because, (), _NIGHTS)
    changed = sum(len(set(said)) > 1 for said in often.values())
    because = f"{changed} of {counted(len(often), 'case')} had different statuses in one environment"
    points = item.points if changed < (rule.share or 0.0) * len(often) else 0
    return Finding(points, points, because)


def outages(item: Item, rule: Measured, evidence: Evidence) -> Finding:
    """The longest time in which no row said anything of the device, over so many days."""
    days, longest = rule.days or 1, rule.longest_days or 1
    said = sorted({each.at for each in evidence.moments if each.status not in _LOST})
    recent = [
        (late - early) / DAY_S for early, late in pairwise(said) if evidence.newest_at - late <= days * DAY_S
    ]
    worst = max(recent, default=0.0)
    if worst > longest:
        because = f"{worst:.1f} days passed without a row of the device"
        return Finding(0, 0, because)
    if not said or (said[-1] - said[0]) / DAY_S < days:
        span = (said[-1] - said[0]) / DAY_S if said else 0.0
        because = f"the rows span {span:.1f} days, and {days} are needed"
        return Finding(None, item.points, because, (), _NIGHTS)
    because = f"the longest time without a row in the last {days} days is {worst:.1f} days"
    return Finding(item.points, item.points, because)


def _within(evidence: Evidence, days: int) -> list[Moment]:
    return [each for each in evidence.moments if evidence.newest_at - each.at <= days * DAY_S]
