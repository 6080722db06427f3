"""Change points in one nightly series: the sensitive first stage of the trend.

Why our own: public detectors assume normal noise, so that two modes or fat tails either raise alarms or
hide steps, and some call one spike at the end of a series a change. Here the noise is whatever the history
of the series says: its distribution is estimated with a kernel density, and each night the likelihood of
"one level all along" is weighed against "another level since night t", for every t within reach (a
generalised likelihood ratio: Basseville and Nikiforov, *Detection of abrupt changes*, 1993, section 2.4; with
a density in place of the normal law). A night counts for a bounded number of nats, and two nights at least
must lie behind a change.

A series has to show more where its past gives reason to doubt it: where neighbouring nights resemble each
other (waves look like steps while they last), where it raised alarms that nobody confirmed, where its scores
are usually high, and where its history is short. Only a change that was confirmed is taken as a new level
when the noise is judged; any other may have been noise itself.

Everything is computed on logarithms, so a size is relative and no unit matters.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

Vector = npt.NDArray[np.float64]

_KERNEL_DF = 3.0
"""Degrees of freedom of the kernel: tails that fall slowly, since a history of 40 nights has seen little."""
_STRAY_SHARE = 0.03
"""Share of nights that may lie anywhere: bounds what one night can count for."""
_STRAY_WIDTH = 8.0
"""Scale of those, in robust standard deviations."""
_SMALLEST_NOISE = 0.001
"""Relative noise below which no history is believed: clocks and medians are not finer than that."""
_CELLS = 400
"""Cells of the grid of levels, at most."""
_USUAL_SCORE = 2.0
"""90 % quantile of the nightly scores of white noise, in nats (simulated: normal, Laplace, two modes)."""
_USUAL_AUTOCORRELATION = 0.2
"""What white noise may show in 60 nights (1.5 standard errors)."""
_PER_CRY = 0.4
"""What each alarm that nobody confirmed adds to the doubt."""
_SETTLING = 14
"""Nights after a change whose scores still hold it."""


@dataclass(frozen=True)
class DetectorSettings:
    """How sensitive the detector is.

    ``threshold`` is in nats. ``smallest`` is the relative change that is worth a word. ``warm_up`` nights
    must be known before anything is said, ``nights_after`` behind a change and ``nights_before`` between
    two. A change is looked for in the last ``reach`` nights, and ``memory`` nights make the baseline.
    """

    threshold: float = 2.75
    smallest: float = 0.01
    warm_up: int = 20
    nights_after: int = 2
    nights_before: int = 4
    reach: int = 30
    memory: int = 90


@dataclass(frozen=True)
class ChangePoint:
    """A change of level; positions count the nights as they were given, missing ones included.

    ``index`` is the first night of the new level, which lies from ``first`` to ``last`` with 90 %
    probability. ``noticed`` is the night on which it was first said. ``size`` is relative (0.05 is 5 %
    more), ``before`` and ``after`` are medians in the unit of the series, ``score`` is in nats.
    """

    index: int
    first: int
    last: int
    noticed: int
    size: float
    before: float
    after: float
    score: float


@dataclass(frozen=True)
class Findings:
    """What the detector says of one series.

    ``noise`` is the robust relative spread about the levels, ``autocorrelation`` that of neighbouring
    nights; None where there are fewer than three nights. ``unusable`` counts values that are no positive
    number. ``ready`` is false where the history is too short to say anything.
    """

    points: tuple[ChangePoint, ...]
    nights: int
    missing: int
    unusable: int
    noise: float | None
    autocorrelation: float | None
    ready: bool


@dataclass(frozen=True)
class Alarm:
    """A change that tonight's value made known: ``start`` counts usable nights from 0; ``score`` in nats."""

    start: int
    score: float


@dataclass
class Watch:
    """A series as it grows, one usable night at a time, in logarithms."""

    settings: DetectorSettings = field(default_factory=DetectorSettings)
    values: list[float] = field(default_factory=list)
    starts: list[int] = field(default_factory=lambda: [0])
    scores: list[float] = field(default_factory=list)
    known: int = 0

    def night(self, value: float) -> Alarm | None:
        """Take the logarithm of one night's value; an alarm where it completes a change."""
        self.values.append(value)
        best = self.best()
        self.scores.append(best.score if best else 0.0)
        if best is None:
            return None
        score = best.score / self.doubt()
        if score < self.settings.threshold or abs(self._size(best.start)) < self.settings.smallest:
            return None
        self.restart(best.start)
        return Alarm(best.start, score)

    def restart(self, start: int, *, known: bool = False) -> None:
        """Begin a new level at usable night ``start``; ``known`` where it is no mere suspicion."""
        if start > self.starts[-1]:
            self.starts.append(start)
        if known:
            self.known = start

    def best(self) -> Alarm | None:
        """The likeliest beginning of another level, with its raw score; None where nothing can be said."""
        rules, count = self.settings, len(self.values)
        begin = max(self.starts[-1], count - rules.memory)
        low = max(begin + rules.nights_before, count - rules.reach)
        high = count - rules.nights_after
        if count < rules.warm_up or low > high:
            return None
        sums = _sums(np.asarray(self.values[begin:]), self.residuals())
        starts = np.arange(low, high + 1)
        before = sums[starts - begin]
        split = before.max(axis=1) + (sums[-1] - before).max(axis=1)
        scores = split - sums[-1].max()
        place = int(scores.argmax())
        return Alarm(int(starts[place]), float(scores[place]))

    def residuals(self) -> Vector:
        """Noise of the past: distances from the median of each level, without the nights that are judged."""
        count = len(self.values)
        until = max(count - _SETTLING, 2 * count // 3)
        return _residuals(self.values, self.starts, max(0, count - 2 * self.settings.memory), until)

    def _size(self, start: int) -> float:
        begin = max(self.starts[-1], len(self.values) - self.settings.memory)
        step = np.median(self.values[start:]) - np.median(self.values[begin:start])
        return math.expm1(float(step))

    def doubt(self) -> float:
        """By how much tonight's score is divided, 1 at least; the module says what for."""
        since = max(self.known, len(self.values) - self.settings.memory)
        history = 1.0 + 10.0 / len(self.residuals())
        cries = 1.0 + _PER_CRY * sum(start > since for start in self.starts)
        past = self.values[since : len(self.values) - _SETTLING // 2]
        alike = max(0.0, min(0.9, _alike(past) - _USUAL_AUTOCORRELATION))
        # The variance of a mean grows by (1 + r) / (1 - r); half of that, as the first night is not alike.
        waves = math.sqrt((1.0 + alike) / (1.0 - alike))
        return history * cries * waves * self._usual()

    def _usual(self) -> float:
        """How much higher this series' scores usually are than those of white noise; 1 at least."""
        past = [
            score
            for night, score in enumerate(self.scores[:-_SETTLING])
            if score > 0.0 and not any(0 <= night - start <= _SETTLING for start in self.starts[1:])
        ]
        return 1.0 if len(past) < 10 else max(1.0, float(np.quantile(past, 0.9)) / _USUAL_SCORE)


def change_points(
    values: Sequence[float | None],
    settings: DetectorSettings | None = None,
    known: Sequence[int] = (),
) -> Findings:
    """All changes in ``values`` (one per night, None where it is missing), as they would have been noticed.

    ``known`` are positions at which a new level is known to begin: they restart the baseline and are reported
    without a score. Values that are zero, negative or not finite are left out and counted.
    """
    places = [place for place, value in enumerate(values) if _usable(value)]
    logs = [math.log(float(values[place] or 0.0)) for place in places]
    given = sorted({_position(places, each) for each in known} - {0, len(places)})
    watch = Watch(settings or DetectorSettings())
    alarms: list[tuple[Alarm, int]] = []
    for night, value in enumerate(logs):
        if night in given:
            watch.restart(night, known=True)
            alarms.append((Alarm(night, 0.0), night))
        alarm = watch.night(value)
        if alarm is not None and not _repeats(alarm.start, given):
            alarms.append((alarm, night))
    points = _refined(watch, alarms, places)
    missing = sum(value is None for value in values)
    noise, autocorrelation = _noise(watch)
    return Findings(
        points=tuple(points),
        nights=len(places),
        missing=missing,
        unusable=len(values) - len(places) - missing,
        noise=noise,
        autocorrelation=autocorrelation,
        ready=len(places) >= watch.settings.warm_up,
    )


def _usable(value: float | None) -> bool:
    return value is not None and math.isfinite(value) and value > 0.0


def _position(places: Sequence[int], night: int) -> int:
    return next((index for index, place in enumerate(places) if place >= night), len(places))


def _repeats(start: int, given: Sequence[int]) -> bool:
    """Whether a change is one of those that are known: found a night or two beside it."""
    return any(abs(start - each) <= 2 for each in given)


def _refined(watch: Watch, alarms: Sequence[tuple[Alarm, int]], places: Sequence[int]) -> list[ChangePoint]:
    """The changes with position, interval and size from all nights between their neighbours."""
    logs = np.asarray(watch.values)
    found = []
    for alarm, noticed in alarms:
        at = watch.starts.index(alarm.start)
        left = watch.starts[at - 1]
        right = watch.starts[at + 1] if at + 1 < len(watch.starts) else len(logs)
        left, right = max(left, alarm.start - watch.settings.memory), min(right, alarm.start + 30)
        residuals = _residuals(watch.values, watch.starts, left, right)
        sums = _sums(logs[left:right], residuals)
        inner = np.arange(1, right - left)
        scores = sums[inner].max(axis=1) + (sums[-1] - sums[inner]).max(axis=1) - sums[-1].max()
        scores = np.where(np.abs(inner + left - alarm.start) <= 7, scores, -np.inf)
        best = int(inner[scores.argmax()]) + left
        first, last = _interval(inner + left, scores)
        before, after = (float(np.exp(np.median(part))) for part in (logs[left:best], logs[best:right]))
        found.append(
            ChangePoint(
                index=places[best],
                first=places[first],
                last=places[last],
                noticed=places[noticed],
                size=after / before - 1.0,
                before=before,
                after=after,
                score=alarm.score,
            )
        )
    return found


def _interval(starts: Any, scores: Vector) -> tuple[int, int]:
    """The likeliest positions that together have 90 % of the weight, as first and last."""
    weights = np.exp(scores - scores.max())
    order = np.argsort(-weights)
    enough = int(np.searchsorted(np.cumsum(weights[order]) / weights.sum(), 0.9)) + 1
    chosen = starts[order[:enough]]
    return int(chosen.min()), int(chosen.max())


def _sums(values: Vector, residuals: Vector) -> Vector:
    """Running sums of log likelihood: row i is that of the first i ``values`` at each level of a grid."""
    spread = max(_spread(residuals), _SMALLEST_NOISE)
    width = 0.9 * spread * max(len(residuals), 1) ** -0.2  # Silverman, 1986, equation 3.31
    low, high = float(values.min()), float(values.max())
    cell = max(width / 4.0, (high - low) / (_CELLS - 1))
    cells = int((high - low) / cell) + 2
    table = _log_density(np.arange(-cells, cells + 1) * cell, residuals, width, spread)
    rows = np.rint((values - low) / cell).astype(np.intp)
    nights = table[rows[:, None] - np.arange(cells)[None, :] + cells]
    sums = np.zeros((len(values) + 1, cells))
    np.cumsum(nights, axis=0, out=sums[1:])
    return sums


def _log_density(at: Vector, residuals: Vector, width: float, spread: float) -> Vector:
    """Logarithm of the noise's density: kernels on past residuals, and a few nights that may lie anywhere."""
    squares = ((at[:, None] - residuals[None, :]) / width) ** 2
    shape = (_KERNEL_DF + 1.0) / 2.0
    norm = math.gamma(shape) / (math.sqrt(_KERNEL_DF * math.pi) * math.gamma(_KERNEL_DF / 2.0) * width)
    kernels = norm * np.mean((1.0 + squares / _KERNEL_DF) ** -shape, axis=1)
    wide = _STRAY_WIDTH * spread
    strays = 1.0 / (math.pi * wide * (1.0 + (at / wide) ** 2))
    density: Vector = np.log((1.0 - _STRAY_SHARE) * kernels + _STRAY_SHARE * strays)
    return density


def _residuals(values: Sequence[float], starts: Sequence[int], since: int, until: int) -> Vector:
    parts = []
    for start, end in zip(starts, [*starts[1:], len(values)], strict=True):
        part = np.asarray(values[max(start, since) : min(end, until)])
        if len(part):
            parts.append(part - np.median(part))
    return np.concatenate(parts) if parts else np.zeros(1)


def _spread(residuals: Vector) -> float:
    """The smaller of two robust standard deviations, of the quartiles and of the middle 80 %."""
    tenths = np.quantile(residuals, (0.1, 0.25, 0.75, 0.9))
    return float(min((tenths[2] - tenths[1]) / 1.349, (tenths[3] - tenths[0]) / 2.563))


def _noise(watch: Watch) -> tuple[float | None, float | None]:
    """Robust spread about the levels, and autocorrelation since the last change that is known."""
    if len(watch.values) < 3:
        return None, None
    residuals = _residuals(watch.values, watch.starts, 0, len(watch.values))
    return float(1.4826 * np.median(np.abs(residuals))), _alike(watch.values[watch.known :])


def _alike(values: Sequence[float]) -> float:
    """Autocorrelation of neighbouring nights, with outliers cut at three robust standard deviations."""
    if len(values) < 10:
        return 0.0
    distances = np.asarray(values) - np.median(values)
    limit = 3.0 * 1.4826 * float(np.median(np.abs(distances)))
    bounded = np.clip(distances, -limit, limit)
    power = float(np.sum(bounded**2))
    return float(np.sum(bounded[1:] * bounded[:-1])) / power if power > 0.0 else 0.0
