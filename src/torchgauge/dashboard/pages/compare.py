"""What did this change? Two sides case by case: counts, what differs, then what cannot be compared."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from torchgauge.dashboard.arrow_columns import Bits, Integers
from torchgauge.dashboard.comparison_files import heard, identities, noise, realised, thresholds_of
from torchgauge.dashboard.context import SiteContext
from torchgauge.dashboard.contrast import ASSUMED, Contrast, Half, Row, Side, Word, contrast
from torchgauge.dashboard.history import History
from torchgauge.dashboard.names import CaseName, device_id
from torchgauge.dashboard.pages import links
from torchgauge.dashboard.pages.environments import Difference, differences, plugin_of
from torchgauge.dashboard.site_data import COMPARED
from torchgauge.dashboard.snapshots import Snapshot
from torchgauge.records import Better, Metric, Modifier, Subject
from torchgauge.results import units
from torchgauge.results.gain import gain_parts

MOST_ROWS = 30
"""Rows that differ which one comparison spells out without scripts."""

FEW_ROWS = 6
"""Rows of each other table that it spells out: ten comparisons are one page."""

MOST_PAIRS = 6
"""Pairs of devices that are compared without scripts."""


@dataclass(frozen=True)
class RowText:
    """A row in words; ``why`` is there where it has no ratio."""

    href: str
    name: str
    variant: str
    on: str
    a: str
    b: str
    doubted: tuple[bool, bool]
    why: str
    word: str
    ratio: str
    interval: str
    factor: str
    noise: str


@dataclass(frozen=True)
class Table:
    """Rows of a comparison; ``more`` are left to the page with scripts. ``numeric`` ones have a ratio."""

    title: str
    gain: str
    numeric: bool
    rows: tuple[RowText, ...]
    more: int


@dataclass(frozen=True)
class Comparison:
    """One comparison, ready for the page; ``counts`` are pairs of a word and how many rows."""

    title: str
    a: str
    b: str
    query: str
    counts: tuple[tuple[str, str, int], ...]
    gain: str
    mean: str
    mean_interval: str
    n: int
    left_out: str
    differing: Table
    one_sided: Table
    others: tuple[Table, ...]
    incomparable: Table
    reasons: tuple[tuple[str, int], ...]
    differences: tuple[Difference, ...]


WORDS: tuple[tuple[Word, str, str], ...] = (
    (Word.BETTER, "better", "better"),
    (Word.WORSE, "worse", "worse"),
    (Word.ONLY_A, "passes on A only", "onlya"),
    (Word.ONLY_B, "passes on B only", "onlyb"),
    (Word.UNCHANGED, "unchanged", "unchanged"),
    (Word.UNDECIDED, "undecided", "undecided"),
    (Word.INCOMPARABLE, "not comparable", "incomparable"),
)
"""The words in the order of the counts, with their style."""


def build(context: SiteContext) -> Iterator[tuple[str, bytes]]:
    """What the page reads, and the page."""
    names = (*(metric.name for metric in context.primaries), *COMPARED)
    metrics = tuple(name for name in dict.fromkeys(names) if name in context.metrics)
    yield from noise(context, metrics)
    page = context.renderer.page(
        "compare",
        "compare.html",
        comparisons=comparisons(context),
        metrics=metrics,
        primaries=tuple(metric.name.replace("_", " ") for metric in context.primaries),
        assumed=f"{np.exp(ASSUMED) - 1:.0%}",
    )
    yield "compare.html", page.encode()


def comparisons(context: SiteContext) -> tuple[Comparison, ...]:
    """The newest snapshot of every device with the one before it, then pairs of devices at their newest."""
    recent = context.recent
    by_device: dict[str, list[int]] = {}
    for row, case in enumerate(recent.cases):
        if case.workload.subject is Subject.MODELS:
            by_device.setdefault(case.device, []).append(row)
    newest = {device: heard(recent, rows) for device, rows in by_device.items()}
    plans: list[tuple[str, str, Side, Side]] = []
    for device, places in newest.items():
        if len(places) >= 2:
            rows = np.array(by_device[device], np.int64)
            plans.append((device, device, Side(rows, places[-2]), Side(rows, places[-1])))
    spoken = [device for device, places in newest.items() if places]
    for left, right in list(_pairs(spoken))[:MOST_PAIRS]:
        both = _matched(recent, by_device[left], by_device[right])
        plans.append((left, right, Side(both[0], newest[left][-1]), Side(both[1], newest[right][-1])))
    if not plans:
        return ()
    metrics = [each for each in context.primaries if each.name in recent.values] or context.primaries[:1]
    thresholds = {metric.name: thresholds_of(recent, metric.name) for metric in metrics}
    built = realised(context)
    hashes = np.array([built.get(case.key) or "" for case in recent.cases])
    used = {recent.snapshots[side.place] for plan in plans for side in plan[2:]}
    said_by = identities(context.store, [snapshot for snapshot in recent.snapshots if snapshot in used])
    found = []
    for left, right, a, b in plans:
        alike = np.ones(len(a.rows), np.bool_) if left == right else _alike(hashes, a.rows, b.rows)
        sides = (recent.snapshots[a.place], recent.snapshots[b.place])
        said = [
            said_by[snapshot.id].get(device) or said_by[snapshot.id].get(plugin_of(device)) or {}
            for device, snapshot in zip((left, right), sides, strict=True)
        ]
        for metric in metrics:
            result = contrast(
                recent,
                a,
                b,
                metric=metric.name,
                lower_is_better=metric.better is not Better.HIGHER,
                thresholds=thresholds[metric.name],
                alike=alike,
            )
            made = _comparison(left, right, sides, result, metric)
            title = f"{made.title}, by {metric.name.replace('_', ' ')}" if len(metrics) > 1 else made.title
            found.append(replace(made, title=title, differences=differences(said)))
    return tuple(found)


def _pairs(devices: Sequence[str]) -> Iterator[tuple[str, str]]:
    yield from pairwise(devices)
    for i, left in enumerate(devices):
        yield from ((left, right) for right in devices[i + 2 :])


def _matched(recent: History, left: Sequence[int], right: Sequence[int]) -> tuple[Integers, Integers]:
    """Rows of both devices that ask for the same workload and configuration; -1 where one has none."""
    sides = [{_subject(recent.cases[row]): row for row in rows} for rows in (left, right)]
    keys = list(dict.fromkeys([*sides[0], *sides[1]]))
    a, b = (np.array([side.get(key, -1) for key in keys], np.int64) for side in sides)
    return a, b


def _subject(case: CaseName) -> tuple[object, str]:
    return case.workload, case.column.configuration


def _alike(hashes: npt.NDArray[np.str_], a: Integers, b: Integers) -> Bits:
    left, right = np.where(a >= 0, hashes[a], ""), np.where(b >= 0, hashes[b], "")
    found: Bits = (left == "") | (right == "") | (left == right)
    return found


def _comparison(
    left: str, right: str, sides: tuple[Snapshot, Snapshot], result: Contrast, metric: Metric
) -> Comparison:
    a, b = sides
    mean, between = gain_parts(metric.better, *result.mean)
    undecided, unchanged = result.count(Word.UNDECIDED), result.count(Word.UNCHANGED)
    apart = result.count(Word.INCOMPARABLE)
    toys = f", including {result.toys} toy" if result.toys else ""
    return Comparison(
        title=f"{left}: latest vs previous snapshot" if left == right else f"{left} with {right}",
        a=_side(left, a),
        b=_side(right, b),
        query=f"a={a.id}&b={b.id}&ad={device_id(left)}&bd={device_id(right)}&metric={metric.name}",
        counts=tuple((title, css, result.count(word)) for word, title, css in WORDS),
        gain=metric.gain,
        mean=mean,
        mean_interval=between,
        n=result.n,
        left_out=f"{len(result.words) - result.n} excluded{toys}",
        differing=_table(result, metric, MOST_ROWS, "Significant differences", Word.BETTER, Word.WORSE),
        one_sided=_table(result, metric, FEW_ROWS, "Passes on one side only", Word.ONLY_A, Word.ONLY_B),
        others=(
            _table(result, metric, FEW_ROWS, f"Undecided: {undecided}", Word.UNDECIDED),
            _table(result, metric, FEW_ROWS, f"Unchanged: {unchanged}", Word.UNCHANGED),
        ),
        incomparable=_table(result, metric, FEW_ROWS, f"All {apart}", Word.INCOMPARABLE),
        reasons=tuple(result.reasons.items()),
        differences=(),
    )


def _side(device: str, snapshot: Snapshot) -> str:
    return f"{device}, all configurations, {snapshot.id} (torch {snapshot.build.version or '?'})"


def _table(result: Contrast, metric: Metric, most: int, title: str, *words: Word) -> Table:
    rows = tuple(_row(row, metric) for row in result.rows(most, *words))
    more = result.count(*words) - len(rows)
    return Table(title, metric.gain, numeric=not (rows and rows[0].why), rows=rows, more=more)


def _row(row: Row, metric: Metric) -> RowText:
    case = row.case
    ratio, between = gain_parts(metric.better, None if row.why else row.ratio, row.low, row.high)
    columns = [half.case.column for half in (row.a, row.b) if half]
    alike = len(columns) == 2 and columns[0].device != columns[1].device
    alike = alike and columns[0].configuration == columns[1].configuration
    on = [columns[0].configuration] if alike else dict.fromkeys(column.name for column in columns)
    return RowText(
        href=f"{links.model_page(case.workload.group)}#{links.case_anchor_of(case.workload, case.column)}",
        name=f"{case.workload.suite}/{case.workload.model}",
        variant=case.workload.variant,
        on=" → ".join(on),
        a=_number(row.a, metric.unit),
        b=_number(row.b, metric.unit),
        doubted=(bool(row.a and row.a.doubt), bool(row.b and row.b.doubt)),
        why=row.why,
        word=row.word.name.lower(),
        ratio=ratio,
        interval=between or "no interval",
        factor=f"{row.factor:.1f}" if row.known else "",
        noise=f"{np.exp(row.threshold) - 1:.1%}" if row.known else "assumed",
    )


def _number(half: Half | None, unit: str) -> str:
    """A number with its interval as ``static/compare.js`` tells it, or why there is none."""
    if half is None:
        return "not planned"
    median, low, high = half.three
    if not np.isfinite(median):
        return half.lack or "no number"
    banded = np.isfinite(low) and np.isfinite(high)
    exact, between = units.interval_parts(median, low if banded else None, high if banded else None, unit)
    if not half.doubt:
        return f"{exact} {between}".rstrip()
    shown = units.rough(median, unit) if half.doubt == Modifier.UNSTEADY else exact
    return " ".join(part for part in (shown, between, f"· {half.doubt}") if part)
