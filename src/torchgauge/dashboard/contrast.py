"""Two sides of the recent history compared, case by case: what differs by more than it does by itself.

Two intervals that do not overlap are no test of a difference, and two that overlap are none of its absence.
The interval of a ratio comes from both: on logarithms, the root of the sum of squares of the halves that face
each other. A row is *better* or *worse* where that interval lies on one side of 1 and the change exceeds the
threshold of its series, *unchanged* where the whole interval lies within the threshold, and *undecided*
otherwise. ``static/contrast.js`` has the same rule for what a reader chooses.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from torchgauge.dashboard.arrow_columns import Bits, Floats, Integers
from torchgauge.dashboard.history import HIGH, LOW, MEDIAN, NOTHING_PLANNED, STATUSES, History
from torchgauge.dashboard.names import CaseName
from torchgauge.dashboard.statuses import LOOKS
from torchgauge.dashboard.trend_lines import mean_and_half
from torchgauge.records import Status
from torchgauge.results.log_ratio import ratio_interval
from torchgauge.results.stored_change import stored_change

ASSUMED = float(np.log(1.1))
"""The threshold of a series with too little history, as a log-ratio; such a row is never unchanged."""

FLOOR = 0.002
"""The least threshold: what repeats to the last digit would otherwise be different for nothing."""


class Word(IntEnum):
    """What is said of one row, in the order in which the page counts."""

    BETTER = 0
    WORSE = 1
    ONLY_A = 2
    ONLY_B = 3
    UNCHANGED = 4
    UNDECIDED = 5
    INCOMPARABLE = 6


@dataclass(frozen=True)
class Side:
    """The cases of one side: rows of the history, -1 where it has none, and a snapshot's place."""

    rows: Integers
    place: int


@dataclass(frozen=True)
class Row:
    """One case on both sides; numbers are median, low and high in the base unit, NaN where missing.

    ``ratio`` is B over A with its interval, ``factor`` the change over ``threshold`` (a log-ratio), which is
    assumed where ``known`` is false.
    """

    case: CaseName
    word: Word
    a: tuple[float, float, float]
    b: tuple[float, float, float]
    ratio: float
    low: float
    high: float
    threshold: float
    known: bool
    factor: float


@dataclass(frozen=True)
class Contrast:
    """All rows of a comparison: ``words`` and ``factor`` by place, and the mean over the common set."""

    words: npt.NDArray[np.int64]
    factor: Floats
    reasons: Mapping[str, int]
    mean: tuple[float, float, float]
    n: int
    rows: Sequence[Row]

    def count(self, word: Word) -> int:
        """How many rows are of ``word``."""
        return int((self.words == word).sum())


def contrast(
    history: History,
    a: Side,
    b: Side,
    *,
    metric: str,
    lower_is_better: bool,
    thresholds: Floats,
    alike: Bits,
    most: int,
) -> Contrast:
    """The cases of ``a`` and ``b``, which correspond by place; ``most`` rows that differ are spelled out.

    What is planned on neither side is left out.

    ``thresholds`` are those of :func:`noise.series_thresholds`, NaN where unknown; ``alike`` says by place
    whether both sides built the same model, as far as is known.
    """
    either = (_status(history, a) != NOTHING_PLANNED) | (_status(history, b) != NOTHING_PLANNED)
    a, b, alike = Side(a.rows[either], a.place), Side(b.rows[either], b.place), alike[either]
    left, right = _numbers(history, a, metric), _numbers(history, b, metric)
    passed = history.counted
    ok_a, ok_b = _bits(passed, a), _bits(passed, b)
    counts = history.comparable(metric)
    sure_a, sure_b = _bits(counts, a), _bits(counts, b)
    usable = ok_a & ok_b & sure_a & sure_b & alike & (left[MEDIAN] > 0) & (right[MEDIAN] > 0)
    ratio, low, high = ratio_interval(left, right)
    limit = np.fmax(_threshold(thresholds, a), _threshold(thresholds, b))
    known = np.isfinite(limit)
    limit = np.where(known, np.maximum(limit, FLOOR), ASSUMED)
    words = _words((ratio, low, high), limit, known, lower_is_better=lower_is_better)
    words = np.where(usable, words, Word.INCOMPARABLE)
    words = np.where(ok_a & _bits(history.failed, b), Word.ONLY_A, words)
    words = np.where(ok_b & _bits(history.failed, a), Word.ONLY_B, words)
    factor = np.where(usable, np.abs(ratio) / limit, -np.inf)
    logs = np.where(usable, ratio, 0.0)
    mean, half = mean_and_half(logs[:, None], usable[:, None])
    n = int(usable.sum())
    middle = (float(np.exp(mean[0])), float(np.exp(mean[0] - half[0])), float(np.exp(mean[0] + half[0])))
    differs = (words == Word.BETTER) | (words == Word.WORSE)
    order = [place for place in np.argsort(-factor, kind="stable").tolist() if differs[place]]
    rows = [
        Row(
            case=history.cases[b.rows[i]],
            word=Word(int(words[i])),
            a=_three(left, i),
            b=_three(right, i),
            ratio=float(np.exp(ratio[i])),
            low=float(np.exp(low[i])),
            high=float(np.exp(high[i])),
            threshold=float(limit[i]),
            known=bool(known[i]),
            factor=float(factor[i]),
        )
        for i in order[:most]
    ]
    reasons: Counter[str] = Counter()
    for i in np.flatnonzero(words == Word.INCOMPARABLE).tolist():
        lacks = (
            _lack(history, a, i, metric, ok=bool(ok_a[i] and sure_a[i])),
            _lack(history, b, i, metric, ok=bool(ok_b[i] and sure_b[i])),
        )
        reasons[_reason(lacks, number_on_a=bool(left[MEDIAN][i] > 0), alike=bool(alike[i]))] += 1
    return Contrast(words, factor, dict(reasons.most_common()), middle, n, rows)


def _words(
    ratio_low_high: tuple[Floats, Floats, Floats], limit: Floats, known: Bits, *, lower_is_better: bool
) -> npt.NDArray[np.int64]:
    ratio, low, high = ratio_low_high
    alone = ~(np.isfinite(low) & np.isfinite(high)) & known  # without an interval the history speaks for it
    low, high = np.where(alone, ratio, low), np.where(alone, ratio, high)
    more, less, same = stored_change(ratio, low, high, least=limit, margin=limit)
    better, worse = (less, more) if lower_is_better else (more, less)
    found = np.where(same & known, Word.UNCHANGED, Word.UNDECIDED)
    return np.where(better, Word.BETTER, np.where(worse, Word.WORSE, found))


def _reason(lacks: tuple[str, str], *, number_on_a: bool, alike: bool) -> str:
    """Why a row has no ratio: what a side lacks, or both, empty where it passed."""
    if lacks[0] and lacks[0] == lacks[1]:
        return f"{lacks[0]} on both"
    if any(lacks):
        return ", ".join(f"{text} on {name}" for text, name in zip(lacks, "AB", strict=True) if text)
    if not alike:
        return "built differently"
    return f"no number on {'B' if number_on_a else 'A'}"


def _lack(history: History, side: Side, i: int, metric: str, *, ok: bool) -> str:
    """Why row ``i`` of ``side`` has no number that counts; empty where it may have one."""
    if ok:
        return ""
    row = int(side.rows[i])
    status = int(history.status[row, side.place]) if row >= 0 else NOTHING_PLANNED
    if status == NOTHING_PLANNED:
        return "not planned"
    if STATUSES[status] is not Status.PASS:
        return LOOKS[STATUSES[status]].code
    return history.apart(metric, row, side.place)


def _three(numbers: Floats, i: int) -> tuple[float, float, float]:
    return float(numbers[MEDIAN][i]), float(numbers[LOW][i]), float(numbers[HIGH][i])


def _numbers(history: History, side: Side, metric: str) -> Floats:
    values = history.values.get(metric)
    if values is None:
        return np.full((3, len(side.rows)), np.nan)
    return np.where(side.rows >= 0, values[:, side.rows, side.place], np.nan)


def _status(history: History, side: Side) -> npt.NDArray[np.uint8]:
    return np.where(side.rows >= 0, history.status[side.rows, side.place], np.uint8(NOTHING_PLANNED))


def _bits(bits: Bits, side: Side) -> Bits:
    found: Bits = (side.rows >= 0) & bits[side.rows, side.place]
    return found


def _threshold(thresholds: Floats, side: Side) -> Floats:
    return np.where(side.rows >= 0, thresholds[side.rows], np.nan)
