"""The rule for a live A/B: Student's t over launches, moderated by history, looked at several times.

All functions take arrays over their leading axes, so that the judge and the simulations that prove its
error rates run the same lines. Estimates are log ratios of head to base, one per launch; levels are
one-sided. The rule in prose is ``docs/comparison.md``.

*Error over looks.* For harm each of K planned looks has a K-th of the error (Bonferroni's inequality), which
holds whatever the distribution is: with launches as few as three and tails as heavy as those of a busy
machine, the joint distribution of the looks is nobody's table. For harmlessness the level of a look is
the one at which all looks together make the promised error for normal launches without history, by
simulation; it is almost twice Bonferroni's, and unchanged code is done a launch earlier. History makes
looks more alike, so that they err less often together.

*History.* Two tests, after Smyth (Statistical Applications in Genetics and Molecular Biology 3, 2004, section
3). His moderated t pools (d0 s0^2 + d s^2) / (d0 + d) on d0 + d degrees of freedom; it is the p-value, which
ranks the hypotheses of a run. Pooling keeps the error where variances scatter around the history's as d0
says; on a machine whose launches spread half as much again it errs four times too often. The interval,
without which there is no verdict, therefore takes the larger of s0^2 and s^2, and history adds no more than
d0 / max(1, s^2 / s0^2) degrees of freedom: it is worth less, the less it fits.
``tests/results/comparing/test_sequential.py`` holds what that keeps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt
from scipy import stats

from torchgauge.results.stored_change import Change

Floats = npt.NDArray[np.float64]

LOOKS = (3, 4, 5, 6, 8, 10, 12)
"""Launches after which the rule looks; beyond 12, every third one."""

HARM = 0.01
"""One-sided error of harm per hypothesis, over all looks; improvement is its mirror image."""

POWER = 0.8
"""Probability that ``detectable`` and ``needed`` are for."""

MAX_NEEDED = 1000
TRIALS, SEED = 50_000, 20_240_229


def looks(max_launches: int) -> tuple[int, ...]:
    """Numbers of launches after which the rule looks, when there are ``max_launches`` at most."""
    later = range(LOOKS[-1] + 3, max_launches + 1, 3)
    planned = [look for look in (*LOOKS, *later) if look <= max_launches]
    if planned and planned[-1] < max_launches:
        planned.append(max_launches)
    return tuple(planned)


@dataclass(frozen=True)
class Moderated:
    """Estimates over launches: mean and spread of the log ratio, with the spread's degrees of freedom.

    ``pooled`` is Smyth's spread on ``pooled_df``; None without history, where it is the spread itself.
    """

    n: int
    mean: Floats
    spread: Floats
    df: Floats
    pooled: Floats | None = None
    pooled_df: Floats | None = None

    @property
    def error(self) -> Floats:
        """The standard error of the mean."""
        return self.spread / math.sqrt(self.n)

    def interval(self, level: float) -> tuple[Floats, Floats]:
        """Both ends of the interval that leaves ``level`` on either side."""
        # Large arrays have few distinct degrees of freedom: compute the upper quantile of t once for each.
        distinct, where = np.unique(self.df, return_inverse=True)
        found: Floats = stats.t.isf(level, distinct)[where].reshape(np.shape(self.df))
        reach = found * self.error
        return self.mean - reach, self.mean + reach

    def p_value(self) -> Floats:
        """The two-sided p-value of "no change", for one look."""
        spread = self.spread if self.pooled is None else self.pooled
        df = self.df if self.pooled_df is None else self.pooled_df
        with np.errstate(divide="ignore", invalid="ignore"):
            t = np.where(self.mean == 0, 0.0, np.abs(self.mean) * math.sqrt(self.n) / spread)
        p: Floats = 2 * stats.t.sf(t, df)
        return p


def moderate(
    logs: Floats, prior_spread: Floats | float | None = None, prior_df: Floats | float = 0.0
) -> Moderated:
    """The estimates over the last axis of ``logs`` (two launches at least), with history if there is any.

    ``prior_spread`` is the standard deviation of one launch's log ratio and ``prior_df`` what it is worth.
    Raises ``ValueError`` for fewer than two launches or a non-finite estimate.
    """
    n = logs.shape[-1]
    if n < 2:
        raise ValueError(f"a spread requires at least two launches, not {n}")
    if not np.all(np.isfinite(logs)):
        raise ValueError("the estimate of a launch is not finite")
    mean, variance = logs.mean(axis=-1), logs.var(axis=-1, ddof=1)
    df = np.full_like(mean, n - 1)
    if prior_spread is None or not np.all(np.greater(prior_spread, 0)) or not np.all(np.greater(prior_df, 0)):
        return Moderated(n, mean, np.sqrt(variance), df)
    excess = np.maximum(1.0, variance / np.square(prior_spread))
    pooled = (prior_df * np.square(prior_spread) + (n - 1) * variance) / (prior_df + n - 1)
    wide, known = np.sqrt(excess) * prior_spread, df + prior_df / excess
    return Moderated(n, mean, wide, known, np.sqrt(pooled), df + prior_df)


@dataclass(frozen=True)
class Levels:
    """One-sided error over the ``planned`` looks, and the tolerance (relative) that verdicts rest on."""

    tolerance: float
    planned: tuple[int, ...]
    harm: float = HARM
    harmless: float = 0.05

    @property
    def looks(self) -> int:
        """How often is looked, at most."""
        return max(1, len(self.planned))

    @property
    def harm_now(self) -> float:
        """Error of harm for one look."""
        return self.harm / self.looks

    @property
    def harmless_now(self) -> float:
        """Error of harmlessness for one look."""
        return level_of_look(self.planned, self.harmless)

    @property
    def margin(self) -> float:
        """The tolerance as a log ratio."""
        return math.log1p(self.tolerance)


def live_change(evidence: Moderated, levels: Levels) -> Change:
    """Has a number changed of which both sides are measured in pairs now? The rule of an A/B run.

    With the interval of Student's t over launches, ``mean -+ t(level, df) spread / sqrt(n)``: *more* where at
    :attr:`Levels.harm_now` it lies above 0 and the mean is half the tolerance at least; *less* is its mirror
    image; *the same* where at :attr:`Levels.harmless_now` it lies within the tolerance (two one-sided tests;
    Schuirmann, 1987). Both levels are for one of several looks, and history moderates spread and df.
    """
    least = math.log1p(levels.tolerance / 2)
    low, high = evidence.interval(levels.harm_now)
    inner_low, inner_high = evidence.interval(levels.harmless_now)
    return Change(
        (low > 0) & (evidence.mean >= least),
        (high < 0) & (evidence.mean <= -least),
        (inner_low > -levels.margin) & (inner_high < levels.margin),
    )


def spent_p(evidence: Moderated, levels: Levels) -> Floats:
    """The two-sided p-value that holds however often was looked: one look's, times the number of looks."""
    return np.minimum(1.0, evidence.p_value() * levels.looks)


def detectable(evidence: Moderated, levels: Levels) -> float:
    """The smallest relative slow-down that this many launches of this spread show with :data:`POWER`.

    The usual sum of two quantiles, but not less than what the demand on the estimate's size allows.
    """
    error, df = float(evidence.error), float(evidence.df)
    reach = max(stats.t.isf(levels.harm_now, df) * error, math.log1p(levels.tolerance / 2))
    return math.expm1(reach + stats.t.isf(1 - POWER, df) * error)


def needed(evidence: Moderated, levels: Levels) -> int | None:
    """Launches that would decide it with :data:`POWER`, were estimate and spread the true ones.

    None where :data:`MAX_NEEDED` would not: the estimate lies where neither verdict is true.
    """
    n = np.arange(max(2, evidence.n), MAX_NEEDED + 1)
    mean, df = abs(float(evidence.mean)), float(evidence.df) + n - evidence.n
    error = float(evidence.spread) / np.sqrt(n)
    certain = stats.t.isf(1 - POWER, df)
    harm = (mean >= math.log1p(levels.tolerance / 2)) & (
        mean >= (stats.t.isf(levels.harm_now, df) + certain) * error
    )
    harmless = levels.margin - mean >= (stats.t.isf(levels.harmless_now, df) + certain) * error
    enough = np.flatnonzero(harm | harmless)
    return int(n[enough[0]]) if enough.size else None


@cache
def level_of_look(planned: tuple[int, ...], error: float) -> float:
    """The level of each of ``planned`` looks at which normal launches without a change make ``error`` in all.

    From :data:`TRIALS` simulated series with a fixed seed; never below Bonferroni's share.
    """
    if len(planned) < 2:
        return error
    logs = np.random.default_rng(SEED).standard_normal((TRIALS, planned[-1]))
    smallest = np.ones(TRIALS)
    for look in planned:
        found = moderate(logs[:, :look])
        smallest = np.minimum(smallest, stats.t.sf(found.mean / found.error, look - 1))
    return max(error / len(planned), float(np.quantile(smallest, error)))
