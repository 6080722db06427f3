"""Change points in one nightly series: the sensitive first stage of the trend.

Why our own: public detectors assume independent normal noise, so that two modes, fat tails or waves either
raise alarms or hide steps, and some call one spike at the end of a series a change. Here the noise is
whatever the history of the series says. Each night the likelihood of "one level all along" is weighed against
"another level since night t", for every t within reach (a generalised likelihood ratio: Basseville and
Nikiforov, *Detection of abrupt changes*, 1993, section 2.4), with two things estimated from the past:

- how a night is distributed: a kernel density in place of the normal law;
- how neighbouring nights resemble each other (waves look like steps while they last): a Gaussian copula of
  first order on top of that density (Chen and Fan, *Estimation of copula-based semiparametric time series
  models*, Journal of Econometrics 130, 2006). Without autocorrelation it adds nothing.

A night and a pair of nights count for a bounded number of nats, two nights at least must lie behind a change,
and what only one night shows is no level.

Noise is judged about levels that were confirmed or have lasted; any other suspicion may have been noise
itself. Each suspicion that nobody confirmed makes the next one need more.

Everything is computed on logarithms, so a size is relative and no unit matters.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from torchgauge.results.log_ratio import change_of

Vector = npt.NDArray[np.float64]

_STRAY_SHARE = 0.03
"""Share of nights that may lie anywhere: bounds what one night can count for."""
_STRAY_WIDTH = 8.0
"""Scale of those, in robust standard deviations."""
_SMALLEST_NOISE = 0.001
"""Relative noise below which no history is believed: clocks and medians are not finer than that."""
_CELLS = 400
"""Cells of the grid of levels, at most."""
_PER_CRY = 0.2
"""By which share of itself each alarm that nobody confirmed raises the threshold."""
_UNRELATED_SHARE = 0.1
"""Share of nights that owe nothing to the night before: bounds what a pair of nights can count for."""
_BELIEVED_ALIKENESS = 0.1
"""What white noise may show of autocorrelation, as a share of what could still be there."""
_OUTERMOST = 0.003
"""Probability beyond which one night is as far out as another."""
_FAR = 20.0
"""Robust standard deviations beyond which one night is as far out as another."""
_BESIDE = 2
"""Nights by which the beginning of one level may be found beside itself."""
_SETTLING = 21
"""The last nights, which may hold a change already and say nothing of the noise."""


@dataclass(frozen=True)
class DetectorSettings:
    """How sensitive the detector is.

    ``threshold`` is in nats. ``smallest`` is the relative change that is worth a word. ``warm_up`` nights
    must be known before anything is said, ``nights_after`` behind a change and ``nights_before`` between
    two. A change is looked for in the last ``reach`` nights, and ``memory`` nights make the baseline.
    """

    threshold: float = 3.0
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
    number. ``ready`` is false where the history is too short for a verdict.
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
    """A series as it grows, one usable night at a time, in logarithms.

    Behind a start that is ``answered`` another one may come as soon as two nights make a level.
    """

    settings: DetectorSettings = field(default_factory=DetectorSettings)
    values: list[float] = field(default_factory=list)
    starts: list[int] = field(default_factory=lambda: [0])
    known: int = 0
    answered: frozenset[int] = frozenset()

    def night(self, value: float) -> Alarm | None:
        """Take the logarithm of one night's value; an alarm where it completes a change."""
        self.values.append(value)
        best = self.best()
        if best is None:
            return None
        since = max(self.known, len(self.values) - self.settings.memory)
        score = best.score / (1.0 + _PER_CRY * sum(start > since for start in self.starts))
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
        answered = any(abs(self.starts[-1] - each) <= _BESIDE for each in self.answered)
        between = rules.nights_after if answered else rules.nights_before
        low = max(begin + between, count - rules.reach)
        high = count - rules.nights_after
        if count < rules.warm_up or low > high:
            return None
        starts = np.arange(low, high + 1)
        scores = _scores(np.asarray(self.values[begin:]), self.residuals(), starts - begin)
        place = int(scores.argmax())
        return Alarm(int(starts[place]), float(scores[place]))

    def residuals(self) -> Vector:
        """Noise of the past: distances from the median of each level, without the nights that are judged."""
        count = len(self.values)
        until = max(count - _SETTLING, 2 * count // 3)
        return _residuals(self.values, self._lasting(), max(0, count - 2 * self.settings.memory), until)

    def _lasting(self) -> list[int]:
        """Where levels begin that are more than a suspicion: confirmed, or ``reach`` nights long at least."""
        ends = [*self.starts[1:], len(self.values)]
        return [
            start
            for start, end in zip(self.starts, ends, strict=True)
            if start <= self.known or end - start >= self.settings.reach
        ]

    def _size(self, start: int) -> float:
        begin = max(self.starts[-1], len(self.values) - self.settings.memory)
        step = np.median(self.values[start:]) - np.median(self.values[begin:start])
        return change_of(float(step))


def change_points(
    values: Sequence[float | None],
    settings: DetectorSettings | None = None,
    known: Sequence[int] = (),
    answered: Sequence[int] = (),
) -> Findings:
    """All changes in ``values`` (one per night, None where it is missing), as they would have been noticed.

    ``known`` are positions at which a new level is known to begin: they restart the baseline and are reported
    without a score. ``answered`` are those of changes that were measured again: what comes close behind one
    of them is another change, which must not grow in its shadow. Values that are zero, negative or not finite
    are left out and counted.
    """
    places = [place for place, value in enumerate(values) if _usable(value)]
    logs = [math.log(float(values[place] or 0.0)) for place in places]
    given = sorted({_position(places, each) for each in known} - {0, len(places)})
    watch = Watch(
        settings or DetectorSettings(), answered=frozenset(_position(places, each) for each in answered)
    )
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
    """Whether a change is one of those that are known: found a night or two before it."""
    return any(0 <= each - start <= _BESIDE for each in given)


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
        inner = np.arange(1, right - left)
        scores = _scores(logs[left:right], residuals, inner)
        scores = np.where(np.abs(inner + left - alarm.start) <= 7, scores, -np.inf)
        best = int(inner[scores.argmax()]) + left
        first, last = _interval(inner + left, scores)
        before, after = (float(np.median(part)) for part in (logs[left:best], logs[best:right]))
        found.append(
            ChangePoint(
                index=places[best],
                first=places[first],
                last=places[last],
                noticed=places[noticed],
                size=change_of(after - before),
                before=math.exp(before),
                after=math.exp(after),
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


def _scores(values: Vector, residuals: Vector, starts: Any) -> Vector:
    """For each of ``starts``, by how many nats another level since then is likelier than one level all along.

    ``values`` are logarithms, ``starts`` positions in them from 1 to their number less 1. The night at which
    a level begins is weighed alone: of its distance from the night before nothing is known.
    """
    nights, pairs = _likelihood(values, residuals)
    whole = np.cumsum(nights + pairs, axis=0)
    before = whole[starts - 1]
    after = whole[-1] - before - pairs[starts]
    scores: Vector = before.max(axis=1) + after.max(axis=1) - whole[-1].max()
    return scores


def _likelihood(values: Vector, residuals: Vector) -> tuple[Vector, Vector]:
    """Log likelihood of each night (a row) at each level of a grid: alone, and what the night before adds.

    The second follows a Gaussian copula: the joint density of two nights, their own densities divided out.
    """
    noise = _Noise(residuals)
    # A level is what two neighbouring nights share: a lone spike is none, and must not stretch the grid.
    shared = (
        np.sort(np.stack((values[:-2], values[1:-1], values[2:])), axis=0)[1] if len(values) > 2 else values
    )
    low, high = float(shared.min()), float(shared.max())
    cell = max(noise.width / 4.0, (high - low) / (_CELLS - 1))
    cells = int((high - low) / cell) + 2
    limit = cells + int(_FAR * noise.spread / cell) + 1
    density, ranks = noise.at(np.arange(-limit, limit + 1) * cell)
    rows = np.rint((values - low) / cell).astype(np.intp)
    places = np.clip(rows[:, None] - np.arange(cells)[None, :], -limit, limit) + limit
    nights = density[places]
    pairs = np.zeros_like(nights)
    alike = noise.alike()
    if alike > 0.0:
        scores = ranks[places]
        squares = scores**2
        rest = 1.0 - alike**2
        exponents = alike * scores[1:] * scores[:-1] - 0.5 * alike**2 * (squares[1:] + squares[:-1])
        ratios = np.exp(exponents / rest) / math.sqrt(rest)
        pairs[1:] = np.log((1.0 - _UNRELATED_SHARE) * ratios + _UNRELATED_SHARE)
    return nights, pairs


class _Noise:
    """The distribution of a night's noise: kernels on past residuals, and a few nights that lie anywhere."""

    def __init__(self, residuals: Vector) -> None:
        self.residuals = residuals
        self.spread = max(_spread(residuals), _SMALLEST_NOISE)
        # Silverman, 1986, equation 3.31.
        self.width = 0.9 * self.spread * max(len(residuals), 1) ** -0.2

    def at(self, points: Vector) -> tuple[Vector, Vector]:
        """At ``points``: logarithm of the density, and the normal quantile of the probability of less."""
        # Student's t with three degrees of freedom, and Cauchy's law: both have closed forms.
        scaled = (points[:, None] - self.residuals[None, :]) / (self.width * math.sqrt(3.0))
        bells = 1.0 / (1.0 + scaled**2)
        kernels = 2.0 / (math.pi * math.sqrt(3.0) * self.width) * np.mean(bells**2, axis=1)
        below = 0.5 + np.mean(scaled * bells + np.arctan(scaled), axis=1) / math.pi
        far = points / (_STRAY_WIDTH * self.spread)
        strays = 1.0 / (math.pi * _STRAY_WIDTH * self.spread * (1.0 + far**2))
        density = (1.0 - _STRAY_SHARE) * kernels + _STRAY_SHARE * strays
        share = (1.0 - _STRAY_SHARE) * below + _STRAY_SHARE * (0.5 + np.arctan(far) / math.pi)
        return np.log(density), ndtri(np.clip(share, _OUTERMOST, 1.0 - _OUTERMOST))

    def alike(self) -> float:
        """How much a night resembles the one before: correlation of normal quantiles, 0 to 0.9, cautious."""
        if len(self.residuals) < 10:
            return 0.0
        scores = self.at(self.residuals)[1]
        scores = scores - scores.mean()
        power = float(np.sum(scores**2))
        seen = float(np.sum(scores[1:] * scores[:-1])) / power if power > 0.0 else 0.0
        return max(0.0, min(0.9, seen - _BELIEVED_ALIKENESS * (1.0 - seen)))


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
