"""The mean under each column of a view: of its ratios to its baseline, over what both of the two have.

Columns are compared with their baseline one by one: a set that is common to all of them is small where there
are many, and empty soon. ``static/means.js`` works the same out for the rows that a reader left.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from torchgauge.dashboard.latest_results import Column, LatestResults
from torchgauge.dashboard.pages import geomean, links
from torchgauge.dashboard.pages.latest import numbers_of
from torchgauge.dashboard.pages.number_text import TIMES, change, digits
from torchgauge.dashboard.pages.views import Against, Readers, View, baselines, first_baseline

OWN = ""
"""Stands for the baseline of a column whose cells are ratios by themselves."""

NONE = "-"
"""Stands for the baseline of a column that has none."""


@dataclass(frozen=True)
class ColumnMean:
    """One mean in words: ``beside`` is its interval with n, ``left_out`` how many cases it lacks, and why.

    ``to`` is the anchor of the column that is the baseline, or :data:`OWN` or :data:`NONE`.
    """

    name: str
    text: str
    beside: str
    left_out: str
    to: str


@dataclass(frozen=True)
class ColumnMeans:
    """The means of a view, by column; ``label`` says of what they are, ``numbers`` in which file."""

    label: str
    numbers: str
    columns: tuple[ColumnMean, ...]


def column_means(
    latest: LatestResults, view: View, columns: Sequence[Column], readers: Readers
) -> ColumnMeans:
    """The means of the cells of ``view``, which are ratios."""
    to, read = baselines(latest, view), readers.of(view)
    own = view.against in (Against.BEFORE, Against.NOTHING)
    found = []
    for column in columns:
        base = to.get(column)
        anchor = OWN if own else links.column_anchor(base) if base else NONE
        if base == column:
            found.append(ColumnMean(column.name, "baseline", "", "", anchor))
            continue
        readings = [read(entry) for w in latest.workloads if (entry := latest.entries.get((w, column)))]
        mean = geomean.mean_of([each.value for each in readings if each.value and not each.out])
        reasons = Counter(each.out for each in readings if each.out)
        text = ""
        if mean is not None:
            text = change(mean.estimate) if view.against is Against.BEFORE else digits(mean.estimate, None)
        found.append(
            ColumnMean(
                name=column.name,
                text=text if view.against is Against.BEFORE or not text else f"{text}{TIMES}",
                beside=f"{geomean.interval_text(mean)}, n {mean.n}" if mean else "",
                left_out=", ".join(f"{n} {why}" for why, n in sorted(reasons.items(), key=_order)),
                to=anchor,
            )
        )
    label, base = view.label, first_baseline(latest)
    if view.of.unit == "ratio":
        label = f"{view.of.gain} {label}"
    if view.against is Against.COLUMN:
        label = f"{view.of.gain} over {latest.dated(base.device)} · {base.configuration}"
    return ColumnMeans(label, numbers_of(view), tuple(found))


def _order(reason: tuple[str, int]) -> tuple[int, str]:
    return -reason[1], reason[0]
