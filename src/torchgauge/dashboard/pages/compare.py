"""What did this change? Two sides case by case: counts, what differs, then what cannot be compared."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from torchgauge.dashboard.arrow_columns import Bits, Integers
from torchgauge.dashboard.comparison_files import heard, identities, noise, realised
from torchgauge.dashboard.context import SiteContext
from torchgauge.dashboard.contrast import ASSUMED, Contrast, Row, Side, Word, contrast
from torchgauge.dashboard.history import History
from torchgauge.dashboard.names import CaseName, device_id
from torchgauge.dashboard.pages import links
from torchgauge.dashboard.pages.environments import Difference, differences, plugin_of
from torchgauge.dashboard.pages.noise import series_thresholds
from torchgauge.dashboard.pages.number_text import change
from torchgauge.dashboard.snapshots import Snapshot
from torchgauge.records import METRICS, Subject, View, in_view
from torchgauge.results import units

METRIC = "latency"
COMPARED = in_view(View.HISTORY)
"""The metrics that can be compared, where the store has them."""

MOST_ROWS = 30
"""Rows that differ which one comparison spells out without scripts."""

MOST_PAIRS = 6
"""Pairs of devices that are compared without scripts."""


@dataclass(frozen=True)
class RowText:
    """A row that differs, in words."""

    href: str
    name: str
    column: str
    word: str
    css: str
    a: str
    b: str
    change: str
    interval: str
    factor: str
    noise: str


@dataclass(frozen=True)
class Comparison:
    """One comparison, ready for the page; ``counts`` are pairs of a word and how many rows."""

    title: str
    a: str
    b: str
    query: str
    counts: tuple[tuple[str, str, int], ...]
    mean: str
    mean_interval: str
    n: int
    left_out: int
    rows: tuple[RowText, ...]
    more: int
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
    metrics = tuple(name for name in COMPARED if name in context.metrics)
    yield from noise(context, metrics)
    page = context.renderer.page(
        "compare",
        "compare.html",
        comparisons=comparisons(context),
        metrics=metrics,
        assumed=f"{np.exp(ASSUMED) - 1:.0%}",
        most_rows=MOST_ROWS,
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
    thresholds = series_thresholds(recent, METRIC)
    built = realised(context)
    hashes = np.array([built.get(case.key) or "" for case in recent.cases])
    used = {recent.snapshots[side.place] for plan in plans for side in plan[2:]}
    said_by = identities(context.store, [snapshot for snapshot in recent.snapshots if snapshot in used])
    found = []
    for left, right, a, b in plans:
        alike = np.ones(len(a.rows), np.bool_) if left == right else _alike(hashes, a.rows, b.rows)
        result = contrast(
            recent,
            a,
            b,
            metric=METRIC,
            lower_is_better=True,
            thresholds=thresholds,
            alike=alike,
            most=MOST_ROWS,
        )
        sides = (recent.snapshots[a.place], recent.snapshots[b.place])
        said = [
            said_by[snapshot.id].get(device) or said_by[snapshot.id].get(plugin_of(device)) or {}
            for device, snapshot in zip((left, right), sides, strict=True)
        ]
        found.append(_comparison(left, right, sides, result, differences(said)))
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
    left: str, right: str, sides: tuple[Snapshot, Snapshot], result: Contrast, differ: tuple[Difference, ...]
) -> Comparison:
    a, b = sides
    same = left == right
    low, high = result.mean[1:]
    shown = tuple(_row(row) for row in result.rows)
    return Comparison(
        title=f"{left}: the newest snapshot with the one before" if same else f"{left} with {right}",
        a=f"{left} at {a.id}",
        b=f"{right} at {b.id}",
        query=f"a={a.id}&b={b.id}&ad={device_id(left)}&bd={device_id(right)}&metric={METRIC}",
        counts=tuple((title, css, result.count(word)) for word, title, css in WORDS),
        mean=change(result.mean[0], None) if result.n else "",
        mean_interval=f"[{change(low, None)}, {change(high, None)}]" if result.n > 1 else "",
        n=result.n,
        left_out=len(result.words) - result.n,
        rows=shown,
        more=result.count(Word.BETTER) + result.count(Word.WORSE) - len(shown),
        reasons=tuple(result.reasons.items()),
        differences=differ,
    )


def _row(row: Row) -> RowText:
    case = row.case
    unit = METRICS[METRIC].unit
    banded = np.isfinite(row.low) and np.isfinite(row.high)
    return RowText(
        href=f"{links.model_page(case.workload.group)}#{links.case_anchor_of(case.workload, case.column)}",
        name=case.workload.name,
        column=case.column.configuration,
        word="better" if row.word is Word.BETTER else "worse",
        css="better" if row.word is Word.BETTER else "worse",
        a=_number(row.a, unit),
        b=_number(row.b, unit),
        change=change(row.ratio, None),
        interval=f"[{change(row.low, None)}, {change(row.high, None)}]" if banded else "no interval",
        factor=f"{row.factor:.1f}" if row.known else "",
        noise=f"{np.exp(row.threshold) - 1:.1%}" if row.known else "assumed",
    )


def _number(three: tuple[float, float, float], unit: str) -> str:
    median, low, high = three
    banded = np.isfinite(low) and np.isfinite(high)
    return units.interval(median, low if banded else None, high if banded else None, unit)
