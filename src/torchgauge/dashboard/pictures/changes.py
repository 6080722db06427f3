"""The largest changes of level of the last week, as ``torchgauge results trend`` found them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchgauge.clock import DAY_S
from torchgauge.counted import counted
from torchgauge.dashboard.pictures.entry_number import has_interval
from torchgauge.dashboard.pictures.picture import Picture, dated, nothing
from torchgauge.dashboard.pictures.ratio_picture import ratio_picture
from torchgauge.dashboard.pictures.ratios import Edge, Lack, Ratio, RatioChart, RatioGroup, Tone
from torchgauge.dashboard.trend_changes import Change
from torchgauge.results import units
from torchgauge.results.gain import gain_names, inverse
from torchgauge.results.trends.trend_outcomes import TrendState

if TYPE_CHECKING:
    from torchgauge.dashboard.context import SiteContext

KIND = "changes"
WEEK_S = 7 * DAY_S
MOST = 20
"""Changes that are drawn, the largest ones."""

METHOD = (
    "Each row is one change of level that torchgauge results trend found in nightly history and that "
    "began in the seven days before this site's newest data: the ratio of both levels with its 95 % "
    "interval, above 1 for the better. A filled point was confirmed by a side-by-side measurement; a hollow "
    "one is only suspected. Changes of the machine, and changes that a side-by-side measurement did not "
    "reproduce, are left out."
)

_EXPLAINED = (TrendState.ENVIRONMENT, TrendState.NOT_REPRODUCED)


def pictures(context: SiteContext) -> Iterator[Picture]:
    """The changes of the week, or that there are none."""
    found = context.changes
    week = [
        each
        for each in found.changes
        if 0 <= context.now - each.finding.suspect_at <= WEEK_S
        and each.finding.state not in _EXPLAINED
        and 1 + each.finding.size > 0
    ]
    title = "Top changes of the week"
    if not week:
        why = "No regression or improvement this week."
        if found.never:
            reason = found.why or "the findings cannot be read"
            begun = reason.startswith("not computed")
            why = f"N{reason[1:]}." if begun else f"Not computed: {reason}."
        yield nothing(KIND, title, why, KIND)
        return
    week.sort(
        key=lambda each: (-abs(math.log1p(each.finding.size)), each.finding.case_id, each.finding.metric)
    )
    rows = [_found(each) for each in week[:MOST]]
    ratios = sorted((each for each in rows if isinstance(each, Ratio)), key=lambda each: each.ratio)
    group = RatioGroup("", tuple(ratios), tuple(each for each in rows if isinstance(each, Lack)))
    worse = sum(each.finding.worse is True for each in week)
    confirmed = sum(each.finding.state is TrendState.CONFIRMED for each in week)
    says = (
        f"{counted(len(week), 'metric')} changed: {worse} got worse; "
        f"{confirmed} confirmed, the rest (hollow marks) only suspected."
    )
    chart = RatioChart(
        title, ("case", "before", "after"), (group,), dated(context), says, "worse", "better",
        gain_names(each.finding.metric for each in week),
    )  # fmt: skip
    yield ratio_picture(KIND, KIND, chart, METHOD)


def _found(change: Change) -> Ratio | Lack:
    found = change.finding
    sides = units.quantity(found.before, found.unit), units.quantity(found.after, found.unit)
    href = "regressions.html#changes"
    name = f"{found.case_id}: {found.metric}"
    label = f"{found.model} {found.configuration}, {found.device}: {found.metric}"
    if found.low is None or found.high is None or not has_interval(1 + found.low, 1 + found.high):
        return Lack(name, Edge.NOWHERE, "no interval", sides=sides, href=href, label=label)
    undecided = found.worse is None or found.low <= 0 <= found.high
    tone = Tone.OPEN if undecided else Tone.WORSE if found.worse else Tone.BETTER
    ratio = 1 + found.size, 1 + found.low, 1 + found.high
    if found.worse is not None and found.worse == (found.size > 0):  # lower is better
        ratio = inverse(*ratio)
    return Ratio(
        name, *ratio, tone, sides, found.state.value.replace("_", " "),
        href, label, sure=found.state is TrendState.CONFIRMED,
    )  # fmt: skip
