"""Two sides of the recent history compared, case by case: what differs by more than it does by itself.

Two intervals that do not overlap are no test of a difference, and two that overlap are none of its absence.
The interval of a ratio comes from both: on logarithms, the root of the sum of squares of the halves that face
each other. A row is *better* or *worse* where that interval lies on one side of 1 and the change exceeds the
threshold of its series, *unchanged* where the whole interval lies within the threshold, and *undecided*
otherwise. ``static/contrast.js`` has the same rule for what a reader chooses.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from torchgauge.dashboard.arrow_columns import Bits, Floats, Integers
from torchgauge.dashboard.history import MEDIAN, NOTHING_PLANNED, STATUSES, History
from torchgauge.dashboard.names import CaseName
from torchgauge.dashboard.statuses import LOOKS
from torchgauge.dashboard.trend_lines import mean_and_half
from torchgauge.records import Status, doubt, uncounted
from torchgauge.results.log_ratio import ratio_interval
from torchgauge.results.stored_change import stored_change

ASSUMED = round(float(np.log(1.1)), 5)
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
class Half:
    """One side of a row: median, low and high in the base unit, NaN where missing.

    ``lack`` says why it is no pass that counts, empty where it is one, and ``doubt`` which modifier keeps its
    number out.
    """

    case: CaseName
    three: tuple[float, float, float]
    lack: str
    doubt: str


@dataclass(frozen=True)
class Row:
    """One case on both sides, None where it was not planned; ``why`` it has no ratio, empty where it has one.

    ``ratio`` is B over A with its interval, ``factor`` the change over ``threshold`` (a log-ratio), which is
    assumed where ``known`` is false.
    """

    a: Half | None
    b: Half | None
    word: Word
    why: str
    ratio: float
    low: float
    high: float
    threshold: float
    known: bool
    factor: float

    @property
    def case(self) -> CaseName:
        """The case: that of B where both were planned."""
        half = self.b or self.a
        assert half is not None  # what nobody planned is no row
        return half.case


@dataclass(frozen=True)
class Contrast:
    """All rows of a comparison by place, and the mean over the common set.

    ``whys`` says of each why it has no ratio; ``ratios`` are logarithms of B over A with both ends of the
    interval. ``n`` are in the mean, and ``toys`` have a ratio but are excluded from it.
    """

    history: History
    metric: str
    a: Side
    b: Side
    words: npt.NDArray[np.int64]
    whys: Sequence[str]
    ratios: tuple[Floats, Floats, Floats]
    limit: Floats
    known: Bits
    factor: Floats
    mean: tuple[float, float, float]
    n: int
    toys: int

    def count(self, *words: Word) -> int:
        """How many rows are of one of ``words``."""
        return int(np.isin(self.words, words).sum())

    @property
    def reasons(self) -> Mapping[str, int]:
        """How many rows are not comparable, by the reason, the most frequent first."""
        places = np.flatnonzero(self.words == Word.INCOMPARABLE).tolist()
        found = Counter(self.whys[i] for i in places)
        return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))

    def rows(self, most: int, *words: Word) -> list[Row]:
        """The first ``most`` rows of ``words``: the largest factor first, then by reason and name."""
        places = np.flatnonzero(np.isin(self.words, words)).tolist()
        places.sort(key=lambda i: (-self.factor[i], self.whys[i], *_name(self._case(i))))
        return [self._row(i) for i in places[:most]]

    def _case(self, i: int) -> CaseName:
        row = int(self.b.rows[i]) if _planned(self.history, self.b, i) else int(self.a.rows[i])
        return self.history.cases[row]

    def _row(self, i: int) -> Row:
        ratio, low, high = (float(np.exp(each[i])) for each in self.ratios)
        return Row(
            a=_half(self.history, self.a, i, self.metric),
            b=_half(self.history, self.b, i, self.metric),
            word=Word(int(self.words[i])),
            why=self.whys[i],
            ratio=ratio,
            low=low,
            high=high,
            threshold=float(self.limit[i]),
            known=bool(self.known[i]),
            factor=float(self.factor[i]),
        )


def contrast(
    history: History,
    a: Side,
    b: Side,
    *,
    metric: str,
    lower_is_better: bool,
    thresholds: Floats,
    alike: Bits,
) -> Contrast:
    """The cases of ``a`` and ``b``, which correspond by place; what is planned on neither side is left out.

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
    averaged = usable & ~history.toys[b.rows]
    mean, half = mean_and_half(logs[:, None], averaged[:, None])
    n = int(averaged.sum())
    middle = (float(np.exp(mean[0])), float(np.exp(mean[0] - half[0])), float(np.exp(mean[0] + half[0])))
    whys = [""] * len(words)
    for i in np.flatnonzero(~usable).tolist():
        lacks = (
            _lack(history, a, i, metric, ok=bool(ok_a[i] and sure_a[i])),
            _lack(history, b, i, metric, ok=bool(ok_b[i] and sure_b[i])),
        )
        if words[i] in (Word.ONLY_A, Word.ONLY_B):
            lacks = ("", lacks[1]) if words[i] == Word.ONLY_A else (lacks[0], "")
        whys[i] = _reason(lacks, number_on_a=bool(left[MEDIAN][i] > 0), alike=bool(alike[i]))
    ratios = (ratio, low, high)
    return Contrast(
        history, metric, a, b, words, whys, ratios, limit, known, factor, middle, n, int(usable.sum()) - n
    )


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
    half = _half(history, side, i, metric)
    return half.lack or half.doubt if half else "not planned"


def _half(history: History, side: Side, i: int, metric: str) -> Half | None:
    if not _planned(history, side, i):
        return None
    row = int(side.rows[i])
    status = STATUSES[int(history.status[row, side.place])]
    marks = [name for name, bits in history.marks.items() if bits[row, side.place]]
    numbers = history.values.get(metric)
    median, low, high = (
        (math.nan,) * 3 if numbers is None else (float(each[row, side.place]) for each in numbers)
    )
    return Half(
        case=history.cases[row],
        three=(median, low, high),
        lack=uncounted(marks) if status is Status.PASS else LOOKS[status].code,
        doubt=doubt(metric, marks),
    )


def _planned(history: History, side: Side, i: int) -> bool:
    row = int(side.rows[i])
    return row >= 0 and int(history.status[row, side.place]) != NOTHING_PLANNED


def _name(case: CaseName) -> tuple[str, str]:
    return case.workload.name, case.column.configuration


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
