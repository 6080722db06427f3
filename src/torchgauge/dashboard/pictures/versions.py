"""Version against version: what another torch did to the latency of every case of a device."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from torchgauge.dashboard.arrow_columns import Floats
from torchgauge.dashboard.comparison_files import heard
from torchgauge.dashboard.contrast import Side, Word, contrast
from torchgauge.dashboard.history import History
from torchgauge.dashboard.names import device_id
from torchgauge.dashboard.pages import links
from torchgauge.dashboard.pages.noise import series_thresholds
from torchgauge.dashboard.pictures.course import release_of
from torchgauge.dashboard.pictures.picture import Picture, dated, nothing
from torchgauge.dashboard.pictures.ratio_picture import ratio_picture
from torchgauge.dashboard.pictures.ratios import (
    Edge,
    Lack,
    Ratio,
    RatioChart,
    RatioGroup,
    Tone,
    counts_text,
    group_of,
    labels_of,
)
from torchgauge.records import METRICS, Subject
from torchgauge.results import units
from torchgauge.results.log_ratio import ratio_of
from torchgauge.suites.toy.suite import toy

if TYPE_CHECKING:
    from torchgauge.dashboard.context import SiteContext

KIND = "versions"
METRIC = "latency"
MOST = 4
"""Devices that are drawn."""

METHOD = (
    "Each point is one case of the device: the speed-up of the newest snapshot over an "
    "older snapshot. The older snapshot is the latest one with another release of torch. If all snapshots "
    "have one release, it is the oldest recent snapshot with another nightly build. 2x is twice as fast. "
    "The whisker is the 95 % interval of the ratio. It is coloured if it excludes 1 and the change "
    "exceeds the noise of the case, as on the page Compare. A change of the machine changes these "
    "numbers too. Toys, and cases without a ratio, are counted with the reason."
)

_Row = tuple[int, Ratio | Lack]
_RATIOS = frozenset({Word.BETTER, Word.WORSE, Word.UNCHANGED, Word.UNDECIDED})
_TONES = {Word.BETTER: Tone.BETTER, Word.WORSE: Tone.WORSE}


def pictures(context: SiteContext) -> Iterator[Picture]:
    """One for each device that ran two versions of torch, or why there is none."""
    recent = context.recent
    by_device: dict[str, list[int]] = {}
    for row, case in enumerate(recent.cases):
        if case.workload.subject is Subject.MODELS:
            by_device.setdefault(case.device, []).append(row)
    sides = {device: found for device, rows in by_device.items() if (found := _sides(recent, rows))}
    if not sides:
        yield nothing(
            KIND, "Version against version", "No device has results with two versions of torch yet."
        )
        return
    thresholds = series_thresholds(recent, METRIC)
    for device in list(sides)[:MOST]:
        yield _picture(context, device, (by_device[device], *sides[device]), thresholds)


def _sides(recent: History, rows: list[int]) -> tuple[int, int] | None:
    """Places of the snapshots that are compared; None where there is one version only."""
    version = {
        place: name for place in heard(recent, rows) if (name := recent.snapshots[place].build.version)
    }
    if not version:
        return None
    places = list(version)
    newest = places[-1]
    others = [place for place in places if release_of(version[place]) != release_of(version[newest])]
    if others:
        return others[-1], newest
    others = [place for place in places if version[place] != version[newest]]
    return (others[0], newest) if others else None


def _picture(
    context: SiteContext, device: str, sides: tuple[list[int], int, int], thresholds: Floats
) -> Picture:
    recent, (rows, before, after) = context.recent, sides
    old, new = (recent.snapshots[place] for place in (before, after))
    labels = labels_of(sorted({recent.cases[row].workload for row in rows}))
    by_name: dict[str, list[Ratio | Lack]] = {}
    for row, found in _found(recent, sides, thresholds):
        case = recent.cases[row]
        labelled = replace(found, label=labels[case.workload.name])
        by_name.setdefault(case.column.configuration, []).append(labelled)
    groups = tuple(group_of(name, found) for name, found in by_name.items())
    chart = RatioChart(
        f"torch {new.build.version} against {old.build.version}, {device}",
        ("workload", old.id, new.id),
        groups,
        dated(context),
        ends=2,
        lacks_in_words=True,
    )
    says = "; ".join(_said(chart, group) for group in groups)
    return ratio_picture(KIND, f"{KIND}-{device_id(device)}", replace(chart, says=f"{says}."), METHOD)


def _said(chart: RatioChart, group: RatioGroup) -> str:
    return f"{group.caption} {chart.mean_text(group)}: {counts_text(group, 'faster', 'slower')}"


def _found(recent: History, sides: tuple[list[int], int, int], thresholds: Floats) -> Iterator[_Row]:
    """What every case that is planned on either side shows; words and reasons are those of Compare."""
    rows, *places = sides
    both = (Side(np.array(rows, np.int64), place) for place in places)
    alike = np.ones(len(rows), np.bool_)
    result = contrast(recent, *both, metric=METRIC, lower_is_better=True, thresholds=thresholds, alike=alike)
    members = result.b.rows
    values = recent.values.get(METRIC)
    numbers = np.full((3, len(members), 2), np.nan) if values is None else values[:, members][:, :, places]
    logs = np.stack(result.ratios, axis=1).tolist()
    for row, word, why, log, three in zip(
        members.tolist(), result.words.tolist(), result.whys, logs, numbers.transpose(1, 2, 0).tolist(),
        strict=True,
    ):  # fmt: skip
        name = recent.cases[row].workload.name
        out = toy(recent.cases[row].workload)
        if out or word not in _RATIOS or not all(math.isfinite(each) for each in log):
            reason = out or (why.partition(" on ")[0] if word not in _RATIOS else "no interval")
            yield row, Lack(name, Edge.NOWHERE, reason or "no number", href=_href(recent, row))
            continue
        text = tuple(units.interval(each[0], each[1], each[2], METRICS[METRIC].unit) for each in three)
        ends = ratio_of(-log[0]), ratio_of(-log[2]), ratio_of(-log[1])  # of a time
        yield row, Ratio(name, *ends, _TONES.get(word, Tone.OPEN), text, href=_href(recent, row))


def _href(recent: History, row: int) -> str:
    case = recent.cases[row]
    return f"{links.model_page(case.workload.group)}#{links.case_anchor_of(case.workload, case.column)}"
